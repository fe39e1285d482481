package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.LogEntry;
import org.apache.hadoop.hbase.client.OnlineLogRecord;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.ServerType;
import org.apache.hadoop.hbase.client.Table;

/**
 * The calls that a server records because they were slow or large: here all are large, and none is
 * slow.
 */
final class Slow implements Suite {
  private static final long PATIENCE_MS = 20_000;
  private Session s;
  private TableName name;

  @Override
  public Map<String, String> settings() {
    return Map.of("hbase.ipc.warn.response.size", "0", "hbase.ipc.warn.response.time", "-1",
        "hbase.regionserver.slowlog.buffer.enabled", "true");
  }

  @Override
  public void run(Session session) throws Exception {
    s = session;
    name = s.name("t");
    Transcript out = s.out;
    try (Table table = s.table("t", "f")) {
      out.topic("large calls");
      table.put(put("a", "f:q=1"));
      table.put(List.of(put("b", "f:q=2"), put("c", "f:q=3")));
      table.get(get("a"));
      table.get(List.of(get("a"), get("b"), get("c")));
      try (ResultScanner scanner = table.getScanner(new Scan().withStartRow(b("b")))) {
        for (Result row : scanner) {
          row.isEmpty();
        }
      }
    }
    out.see("of the table", () -> described(await("LARGE_LOG", Map.of("tableName", name.getNameAsString()), 5)));
    out.see("of another table", () -> described(entries("LARGE_LOG", Map.of("tableName", "nobody"), 100)));
    out.see("of another table, or of the user", () -> {
      Map<String, Object> either = new HashMap<>(Map.of("tableName", "nobody"));
      either.put("userName", user());
      return entries("LARGE_LOG", either, 3).size();
    });
    out.see("of another table, and of the user", () -> {
      Map<String, Object> both = new HashMap<>(Map.of("tableName", "nobody", "filterByOperator", "AND"));
      both.put("userName", user());
      return entries("LARGE_LOG", both, 3).size();
    });
    out.see("the newest", () -> entries("LARGE_LOG", Map.of("tableName", name.getNameAsString()), 2).size());
    out.topic("slow calls");
    out.see("of the table", () -> described(entries("SLOW_LOG", Map.of("tableName", name.getNameAsString()), 100)));
    out.topic("forgotten");
    out.see("servers that forgot", () -> s.admin.clearSlowLogResponses(Collections.singleton(server())));
    out.see("of the table", () -> described(entries("LARGE_LOG", Map.of("tableName", name.getNameAsString()), 100)));
  }

  private String user() throws Exception {
    return org.apache.hadoop.hbase.security.User.getCurrent().getShortName();
  }

  private ServerName server() throws Exception {
    return s.admin.getRegionServers().iterator().next();
  }

  private List<LogEntry> entries(String kind, Map<String, Object> filter, int limit) throws Exception {
    return s.admin.getLogEntries(Collections.singleton(server()), kind, ServerType.REGION_SERVER, limit, filter);
  }

  /** HBase records them a moment later. */
  private List<LogEntry> await(String kind, Map<String, Object> filter, int count) throws Exception {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    List<LogEntry> found = entries(kind, filter, 100);
    while (found.size() < count && System.currentTimeMillis() < end) {
      Thread.sleep(50);
      found = entries(kind, filter, 100);
    }
    return found;
  }

  private List<String> described(List<LogEntry> entries) throws Exception {
    List<String> described = new ArrayList<>();
    for (LogEntry entry : entries) {
      OnlineLogRecord call = (OnlineLogRecord) entry;
      String details = call.getCallDetails();
      described.add(call.getMethodName() + " " + details.substring(details.lastIndexOf('.') + 1)
          + " of " + call.getServerClass() + " region " + call.getRegionName().startsWith(name + ",")
          + " user " + call.getUserName().equals(user()) + " gets " + call.getMultiGetsCount()
          + " mutations " + call.getMultiMutationsCount() + " calls " + call.getMultiServiceCalls()
          + " size " + (call.getResponseSize() > 0) + " from " + call.getClientAddress().split(":").length);
    }
    return described;
  }
}
