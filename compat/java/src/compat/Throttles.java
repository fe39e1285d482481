package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.quotas.QuotaFilter;
import org.apache.hadoop.hbase.quotas.QuotaScope;
import org.apache.hadoop.hbase.quotas.QuotaSettings;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.SpaceViolationPolicy;
import org.apache.hadoop.hbase.quotas.ThrottleType;
import org.apache.hadoop.hbase.security.User;

/**
 * Quotas while they are on: how they are stored, and how they affect requests. Limits per hour do
 * not refill during the test.
 */
final class Throttles implements Suite {
  private static final TableName QUOTA = TableName.valueOf("hbase:quota");
  /**
   * Four refreshes; after five, HBase forgets quotas that were not queried, and the next call is
   * not throttled.
   */
  private static final long KNOWN_MS = 1600;
  private Session s;
  private Transcript out;
  private TableName name;
  private String user;
  /** Does not retry throttled calls. */
  private Connection once;

  @Override
  public Map<String, String> settings() {
    return Map.of("hbase.quota.enabled", "true", "hbase.quota.refresh.period", "400",
        "hbase.rpc.rows.warning.threshold", "50", "hbase.rpc.rows.size.threshold.reject", "true",
        "hbase.server.keyvalue.maxsize", "100000");
  }

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    name = s.name("t");
    user = User.getCurrent().getShortName();
    once = s.connect("hbase.client.retries.number", "0");
    s.await("hbase:quota", () -> s.admin.tableExists(QUOTA) && s.admin.isTableAvailable(QUOTA));
    clear();
    out.topic("the table of quotas");
    out.see("its descriptor", () -> s.admin.getDescriptor(QUOTA));
    s.table("t", "f").close();
    kept();
    refused();
    switches();
    requests();
    limits();
    clear();
    once.close();
  }

  private void set(String what, QuotaSettings settings) {
    out.doesMessage(what, () -> s.admin.setQuota(settings));
  }

  private void kept() throws Exception {
    out.topic("what is kept");
    set("a table", QuotaSettingsFactory.throttleTable(name, ThrottleType.REQUEST_NUMBER, 100, TimeUnit.SECONDS));
    set("a second kind", QuotaSettingsFactory.throttleTable(name, ThrottleType.WRITE_SIZE, 1 << 20, TimeUnit.MINUTES));
    set("changed", QuotaSettingsFactory.throttleTable(name, ThrottleType.REQUEST_NUMBER, 50, TimeUnit.HOURS));
    set("a user", QuotaSettingsFactory.throttleUser("someone", ThrottleType.READ_NUMBER, 7, TimeUnit.DAYS));
    set("a user of a table", QuotaSettingsFactory.throttleUser("someone", name, ThrottleType.READ_SIZE, 1024,
        TimeUnit.SECONDS));
    set("a user of a namespace", QuotaSettingsFactory.throttleUser("someone", "default", ThrottleType.WRITE_NUMBER, 5,
        TimeUnit.SECONDS));
    set("a namespace", QuotaSettingsFactory.throttleNamespace("default", ThrottleType.REQUEST_SIZE, 1 << 30,
        TimeUnit.SECONDS));
    set("all servers", QuotaSettingsFactory.throttleRegionServer("all", ThrottleType.REQUEST_CAPACITY_UNIT, 100000,
        TimeUnit.SECONDS));
    set("in the cluster", QuotaSettingsFactory.throttleTable(name, ThrottleType.READ_NUMBER, 1000, TimeUnit.SECONDS,
        QuotaScope.CLUSTER));
    set("no globals", QuotaSettingsFactory.bypassGlobals("other", true));
    set("space", QuotaSettingsFactory.limitTableSpace(name, 1L << 30, SpaceViolationPolicy.NO_INSERTS));
    set("space of a namespace", QuotaSettingsFactory.limitNamespaceSpace("default", 1L << 40,
        SpaceViolationPolicy.DISABLE));
    listed("all");
    cells();
    out.see("of a user", () -> texts(new QuotaFilter().setUserFilter("some.*")));
    out.see("of a table", () -> texts(new QuotaFilter().setTableFilter(name.getNameAsString())));
    out.see("of a namespace", () -> texts(new QuotaFilter().setNamespaceFilter("def.*")));
    set("one kind of a table gone", QuotaSettingsFactory.unthrottleTableByThrottleType(name, ThrottleType.REQUEST_NUMBER));
    set("globals again", QuotaSettingsFactory.bypassGlobals("other", false));
    set("a user gone", QuotaSettingsFactory.unthrottleUser("someone"));
    set("space gone", QuotaSettingsFactory.removeTableSpaceLimit(name));
    listed("left");
    cells();
    set("a table gone", QuotaSettingsFactory.unthrottleTable(name));
    set("again", QuotaSettingsFactory.unthrottleTable(name));
    clear();
    listed("nothing");
  }

  private void refused() throws Exception {
    out.topic("refused");
    set("a table that is not there", QuotaSettingsFactory.throttleTable(s.name("nosuch"), ThrottleType.REQUEST_NUMBER,
        1, TimeUnit.SECONDS));
    set("a namespace that is not there", QuotaSettingsFactory.throttleNamespace("compat_nosuch",
        ThrottleType.REQUEST_NUMBER, 1, TimeUnit.SECONDS));
    set("one server", QuotaSettingsFactory.throttleRegionServer("one", ThrottleType.REQUEST_NUMBER, 1,
        TimeUnit.SECONDS));
    set("the limit 0", QuotaSettingsFactory.throttleTable(name, ThrottleType.REQUEST_NUMBER, 0, TimeUnit.SECONDS));
    listed("left");
    clear();
  }

  private void switches() throws Exception {
    out.topic("switches");
    out.see("on", () -> s.admin.isRpcThrottleEnabled());
    out.see("switched off", () -> s.admin.switchRpcThrottle(false));
    out.see("again", () -> s.admin.switchRpcThrottle(false));
    out.see("on", () -> s.admin.isRpcThrottleEnabled());
    out.see("switched on", () -> s.admin.switchRpcThrottle(true));
    out.doesMessage("exceed without a quota of servers", () -> s.admin.exceedThrottleQuotaSwitch(true));
    set("all servers read", QuotaSettingsFactory.throttleRegionServer("all", ThrottleType.READ_NUMBER, 1000,
        TimeUnit.SECONDS));
    out.doesMessage("exceed without one of writes", () -> s.admin.exceedThrottleQuotaSwitch(true));
    set("all servers write", QuotaSettingsFactory.throttleRegionServer("all", ThrottleType.WRITE_NUMBER, 1000,
        TimeUnit.SECONDS));
    out.see("exceed", () -> s.admin.exceedThrottleQuotaSwitch(true));
    out.see("exceed again", () -> s.admin.exceedThrottleQuotaSwitch(true));
    cells();
    out.see("exceed no longer", () -> s.admin.exceedThrottleQuotaSwitch(false));
    clear();
  }

  private void requests() throws Exception {
    out.topic("requests");
    try (Table table = once.getTable(name)) {
      table.put(put("a", "f:q@1=a", "f:r@1=" + "x".repeat(3000)));
      clear();
      throttled(table, "reads", ThrottleType.READ_NUMBER, 3);
      throttled(table, "writes", ThrottleType.WRITE_NUMBER, 3);
      throttled(table, "requests", ThrottleType.REQUEST_NUMBER, 5);
      throttled(table, "bytes read", ThrottleType.READ_SIZE, 5000);
      throttled(table, "bytes written", ThrottleType.WRITE_SIZE, 500);
      throttled(table, "bytes", ThrottleType.REQUEST_SIZE, 5000);
      throttled(table, "units read", ThrottleType.READ_CAPACITY_UNIT, 5);
      throttled(table, "units written", ThrottleType.WRITE_CAPACITY_UNIT, 3);
      throttled(table, "units", ThrottleType.REQUEST_CAPACITY_UNIT, 5);
      out.topic("whose");
      out.does("the user's", () -> limit(QuotaSettingsFactory.throttleUser(user, ThrottleType.READ_NUMBER, 2,
          TimeUnit.HOURS)));
      calls(table);
      out.does("another table of the user's", () -> limit(QuotaSettingsFactory.throttleUser(user, s.name("u"),
          ThrottleType.READ_NUMBER, 1, TimeUnit.HOURS)));
      calls(table);
      clear();
      out.does("the namespace's", () -> limit(QuotaSettingsFactory.throttleNamespace("default",
          ThrottleType.READ_NUMBER, 2, TimeUnit.HOURS)));
      calls(table);
      out.does("but not the user's", () -> limit(QuotaSettingsFactory.bypassGlobals(user, true)));
      calls(table);
      clear();
      out.does("all servers'", () -> limit(QuotaSettingsFactory.throttleRegionServer("all",
          ThrottleType.READ_NUMBER, 2, TimeUnit.HOURS)));
      calls(table);
      out.does("in the cluster", () -> limit(QuotaSettingsFactory.throttleTable(name, ThrottleType.WRITE_NUMBER, 2,
          TimeUnit.HOURS, QuotaScope.CLUSTER)));
      calls(table);
      out.see("switched off", () -> s.admin.switchRpcThrottle(false));
      calls(table);
      out.see("switched on", () -> s.admin.switchRpcThrottle(true));
      clear();
    }
  }

  private void throttled(Table table, String what, ThrottleType type, long limit) throws Exception {
    out.topic(what);
    limit(QuotaSettingsFactory.throttleTable(name, type, limit, TimeUnit.HOURS));
    calls(table);
    clear();
  }

  /** Sets a quota and waits until it is effective. */
  private void limit(QuotaSettings settings) throws Exception {
    s.admin.setQuota(settings);
    Thread.sleep(KNOWN_MS);
  }

  private void calls(Table table) {
    List<String> got = new ArrayList<>();
    for (int at = 0; at < 4; at++) {
      got.add(outcome(() -> table.get(get("a"))));
    }
    for (int at = 0; at < 4; at++) {
      got.add(outcome(() -> {
        table.put(put("b", "f:q@1=" + "y".repeat(150)));
        return null;
      }));
    }
    got.add(outcome(() -> table.increment(new Increment(b("i")).addColumn(b("f"), b("n"), 1))));
    got.add(outcome(() -> Rows.all(table, new Scan())));
    got.forEach(out::line);
  }

  private static String outcome(java.util.concurrent.Callable<?> call) {
    try {
      call.call();
      return "ok";
    } catch (Throwable thrown) {
      for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
        if (cause.getClass().getName().endsWith("RpcThrottlingException")) {
          String message = cause.getMessage().split("\n")[0];
          return cause.getClass().getSimpleName() + ": "
              + message.replaceAll("wait (\\d+hrs, )?(\\d+mins, )?(\\d+sec, )?\\d+ms", "wait");
        }
      }
      return Show.exceptionWithMessage(thrown);
    }
  }

  private void limits() throws Exception {
    out.topic("limits");
    try (Connection unlimited = s.connect("hbase.client.retries.number", "0", "hbase.client.keyvalue.maxsize", "0");
        Table table = unlimited.getTable(name)) {
      out.doesMessage("a cell that is too large", () -> table.put(new Put(b("large")).addColumn(b("f"), b("q"),
          Rows.value(100_000))));
      out.does("one that is not", () -> table.put(new Put(b("large")).addColumn(b("f"), b("q"), 1,
          Rows.value(99_000))));
      List<Put> puts = new ArrayList<>();
      for (int at = 0; at < 50; at++) {
        puts.add(put("many" + at, "f:q@1=a"));
      }
      out.does("as many rows as may be", () -> table.put(puts));
      puts.add(put("many", "f:q@1=a"));
      out.does("more rows than may be", () -> table.batch(puts, new Object[puts.size()]));
    }
  }

  private void listed(String what) {
    out.see(what, () -> texts(new QuotaFilter()));
  }

  private List<String> texts(QuotaFilter filter) throws Exception {
    TreeSet<String> texts = new TreeSet<>();
    for (QuotaSettings settings : s.admin.getQuota(filter)) {
      texts.add(settings.toString());
    }
    return new ArrayList<>(texts);
  }

  /** The content of the table, without timestamps. */
  private void cells() throws Exception {
    try (Table table = s.connection.getTable(QUOTA); ResultScanner scanner = table.getScanner(new Scan())) {
      for (Result row : scanner) {
        row.getNoVersionMap().forEach((family, columns) -> columns.forEach((qualifier, value) ->
            out.line("    " + Show.bytes(row.getRow()) + "/" + Show.bytes(family) + ":" + Show.bytes(qualifier) + "="
                + Show.bytes(value))));
      }
    }
  }

  /** Removes all quotas, in a way that users do not. */
  private void clear() throws Exception {
    try (Table table = s.connection.getTable(QUOTA)) {
      for (Result row : Rows.all(table, new Scan())) {
        table.delete(new Delete(row.getRow()));
      }
    }
    if (!s.admin.tableExists(name)) {
      return;
    }
    // Calls that may still be throttled, so that the quotas are not forgotten meanwhile.
    try (Table table = once.getTable(name)) {
      for (int at = 0; at < 8; at++) {
        Thread.sleep(KNOWN_MS / 8);
        outcome(() -> table.exists(get("a")));
      }
    }
  }
}
