package compat.async;

import static compat.async.Table.b;
import static compat.async.Table.bytes;

import java.util.ArrayList;
import java.util.List;
import org.hbase.async.ColumnPrefixFilter;
import org.hbase.async.GetRequest;
import org.hbase.async.GetResultOrException;

/** Single gets and lists of them. */
final class Gets implements Suite {
  @Override
  public void run(Table t) throws Exception {
    for (int version = 1; version <= 7; version++) {
      Table.wait(t.client.put(t.put("r", "f:q", "v" + version, version * 10)));
    }
    Table.wait(t.client.put(t.put("r", "f:p", "p", 15)));
    Table.wait(t.client.put(t.put("r", "g:x", "x", 15)));
    Table.wait(t.client.put(t.put("r", "g:", "empty qualifier", 15)));
    t.topic("one");
    t.seeGet("a row", t.get("r"));
    t.seeGet("a family", t.get("r").family("g"));
    t.seeGet("a column", t.get("r").family("f").qualifier("q"));
    t.seeGet("columns", t.get("r").family("f").qualifiers(bytes("q", "p", "nosuch")));
    t.seeGet("versions", t.get("r").family("f").maxVersions(3));
    t.seeGet("all versions", t.get("r").maxVersions(Integer.MAX_VALUE));
    t.seeGet("from a time", withMin(t.get("r").maxVersions(10), 40));
    t.seeGet("a range of times", t.get("r").setTimeRange(20, 41).maxVersions(10));
    t.seeGet("a filter", t.get("r").setFilter(new ColumnPrefixFilter("p")));
    t.seeGet("a row that is not there", t.get("nosuch"));
    t.seeGet("a family that is not there", t.get("r").family("nosuch"));
    t.seeGet("a table that is not there", new GetRequest("compat_async_nosuch", "r"));
    t.topic("many");
    List<GetRequest> gets = new ArrayList<>();
    for (String row : new String[] {"r", "nosuch", "r05", "r25", "r45"}) {
      Table.wait(t.client.put(t.put(row.equals("nosuch") ? "r01" : row, "f:z", row, 5)));
      gets.add(t.get(row).family("f"));
    }
    t.see("of all regions", () -> results(t, gets));
    gets.add(t.get("r").family("nosuch"));
    t.see("one is bad", () -> results(t, gets));
  }

  private static GetRequest withMin(GetRequest get, long timestamp) {
    get.setMinTimestamp(timestamp);
    return get;
  }

  private static String results(Table t, List<GetRequest> gets) throws Exception {
    StringBuilder text = new StringBuilder();
    for (GetResultOrException result : Table.wait(t.client.get(gets))) {
      text.append("\n    ");
      if (result.getException() != null) {
        text.append('!').append(result.getException().getClass().getSimpleName());
      } else {
        text.append(result.getCells().size()).append(" cells");
        for (org.hbase.async.KeyValue cell : result.getCells()) {
          text.append(' ').append(Table.text(cell.qualifier())).append('=').append(Table.text(cell.value()));
        }
      }
    }
    return text.toString();
  }
}
