package compat.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.master.RegionState;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hbase.thirdparty.com.google.gson.JsonElement;
import org.apache.hbase.thirdparty.com.google.gson.JsonObject;
import org.apache.hbase.thirdparty.com.google.gson.JsonParser;

/**
 * Changes tables while processes of the cluster are killed, and checks the results.
 *
 * <pre>
 *   java compat.cluster.Steps PATIENCE_S
 * </pre>
 *
 * Commands on standard input, and responses. N is the number of the run, which names its tables.
 *
 * <pre>
 *   prepare OP N       makes the table of three regions with 60 rows, and the snapshot;
 *                      `prepared N table=HOST,PORT meta=HOST,PORT target=HOST,PORT`: the servers of the
 *                      region that the operation changes, of hbase:meta, and the target of a move
 *   begin OP N         `begun N`; later `ended N ok`, or `ended N EXCEPTION`
 *   serve N            `served N` when every region of every enabled table answers
 *   check OP N ok|failed strict|lenient
 *                      waits until the cluster is settled; `wrong N TEXT` for each fault, then
 *                      `checked N STATE`: whether the operation is done or undone, and what was found
 *   clean OP N         deletes the tables and the snapshot; `clean N`
 * </pre>
 *
 * A cluster is settled when no procedure runs, no region is in transition, every region of every
 * enabled table is open on exactly one server, which is the one in hbase:meta, and nothing else is
 * open or in hbase:meta.
 */
public final class Steps {
  private static final byte[] FAMILY = Bytes.toBytes("a");
  private static final byte[] ADDED = Bytes.toBytes("b");
  private static final byte[] COLUMN = Bytes.toBytes("q");
  private static final String ATTRIBUTE = "STEPS";
  private static final byte[][] SPLITS = {Bytes.toBytes("20"), Bytes.toBytes("40")};
  private static final byte[] SPLIT_ROW = Bytes.toBytes("30");
  private static final int ROWS = 60;
  private static final Set<String> FINISHED = Set.of("SUCCESS", "FAILED", "ROLLEDBACK");
  private static final String REGIONS = " regions=[, 20, 40]";

  private final Connection connection;
  private final Admin admin;
  private final long patienceMs;
  /** Where a move of this run leads. */
  private volatile ServerName target;

  private Steps(Connection connection, long patienceMs) throws IOException {
    this.connection = connection;
    this.admin = connection.getAdmin();
    this.patienceMs = patienceMs;
  }

  public static void main(String[] arguments) throws Exception {
    long patienceMs = TimeUnit.SECONDS.toMillis(Long.parseLong(arguments[0]));
    try (Connection connection = connect(patienceMs)) {
      Steps steps = new Steps(connection, patienceMs);
      BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        steps.command(line.split(" "));
      }
    }
    System.exit(0);
  }

  private static Connection connect(long patienceMs) throws IOException {
    Configuration conf = Rows.configuration("hbase.client.pause=20", "hbase.client.pause.server.overloaded=20",
        "hbase.client.retries.number=200", "hbase.rpc.timeout=10000", "hbase.ipc.client.failed.servers.expiry=50",
        "hbase.client.operation.timeout=" + patienceMs, "hbase.client.sync.wait.timeout.msec=" + patienceMs,
        "hbase.client.meta.operation.timeout=" + patienceMs);
    return ConnectionFactory.createConnection(conf);
  }

  private void command(String[] words) {
    boolean isServe = words[0].equals("serve");
    String operation = isServe ? "" : words[1];
    String number = words[isServe ? 1 : 2];
    Run run = new Run(operation, number);
    try {
      switch (words[0]) {
        case "prepare" -> run.prepare();
        case "begin" -> run.begin();
        case "serve" -> run.serve();
        case "check" -> run.check(words[3].equals("ok"), words[4].equals("strict"));
        case "clean" -> run.clean();
        default -> throw new IllegalArgumentException(words[0]);
      }
    } catch (Exception failed) {
      print("wrong " + number + " " + words[0] + " failed: " + line(failed));
      failed.printStackTrace();
      print(Map.of("prepare", "prepared ", "serve", "served ", "check", "checked ", "clean", "clean ").get(words[0])
          + number);
    }
  }

  private static synchronized void print(String line) {
    System.out.println(line);
  }

  private static String line(Throwable failed) {
    String text = String.valueOf(failed).replace('\n', ' ');
    return text.substring(0, Math.min(300, text.length()));
  }

  private interface Step {
    void run() throws Exception;
  }

  private final class Run {
    final String operation;
    final String number;
    /** The table that the operation changes or makes. */
    final TableName table;
    final String snapshot;
    /** The table from which the snapshot of a clone is. */
    final TableName source;
    /** The clone by which a snapshot is read. */
    final TableName copy;

    Run(String operation, String number) {
      this.operation = operation;
      this.number = number;
      table = TableName.valueOf("steps" + number);
      source = operation.equals("clone") ? TableName.valueOf("source" + number) : table;
      copy = TableName.valueOf("copy" + number);
      snapshot = "snapshot" + number;
    }

    private void wrong(String text) {
      print("wrong " + number + " " + text);
    }

    private TableDescriptorBuilder descriptor(TableName name) {
      return TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY));
    }

    // Preparation.

    void prepare() throws Exception {
      if (!operation.equals("create")) {
        admin.createTable(descriptor(source).build(), SPLITS);
        // Half of the rows are in files, and half in memstores and logs.
        write(source, 0, ROWS, 2, "old");
        admin.flush(source);
        write(source, 1, ROWS, 2, "old");
      }
      switch (operation) {
        case "clone" -> admin.snapshot(snapshot, source);
        case "restore" -> {
          admin.snapshot(snapshot, source);
          write(source, 0, ROWS, 1, "new");
          admin.disableTable(source);
        }
        case "truncate" -> admin.disableTable(source);
        default -> { }
      }
      List<ServerName> live = new ArrayList<>(new TreeSet<>(admin.getRegionServers()));
      ServerName holder = live.get(Integer.parseInt(number) % live.size());
      connection.clearRegionLocationCache();
      if (admin.tableExists(source) && admin.isTableEnabled(source)) {
        holder = locate(source, SPLITS[0]);
      }
      ServerName meta = locate(TableName.META_TABLE_NAME, HConstants.EMPTY_START_ROW);
      live.remove(holder);
      target = live.get(Integer.parseInt(number) % live.size());
      print("prepared " + number + " table=" + address(holder) + " meta=" + address(meta) + " target="
          + address(target));
    }

    private void write(TableName name, int first, int end, int step, String value) throws IOException {
      try (Table open = connection.getTable(name)) {
        List<Put> puts = new ArrayList<>();
        for (int row = first; row < end; row += step) {
          puts.add(put(String.format("%02d", row), value));
        }
        open.put(puts);
      }
    }

    private Put put(String key, String value) {
      return new Put(Bytes.toBytes(key)).addColumn(FAMILY, COLUMN, Bytes.toBytes(value + key));
    }

    private ServerName locate(TableName name, byte[] row) throws IOException {
      try (RegionLocator locator = connection.getRegionLocator(name)) {
        return locator.getRegionLocation(row, true).getServerName();
      }
    }

    private String address(ServerName server) {
      return server.getHostname() + "," + server.getPort();
    }

    // The operation.

    void begin() throws Exception {
      Step step = step();
      print("begun " + number);
      Thread thread = new Thread(() -> {
        try {
          step.run();
          print("ended " + number + " ok");
        } catch (Throwable failed) {
          failed.printStackTrace();
          print("ended " + number + " " + line(failed));
        }
      });
      thread.setDaemon(true);
      thread.start();
    }

    private Step step() throws IOException {
      List<RegionInfo> regions = Set.of("split", "merge", "move").contains(operation) ? admin.getRegions(table) : List.of();
      return switch (operation) {
        case "create" -> () -> admin.createTable(descriptor(table).build(), SPLITS);
        case "drop" -> () -> {
          try {
            admin.disableTable(table);
          } catch (TableNotEnabledException repeated) {
            // A call that was sent again after the first one had been carried out.
          }
          admin.deleteTable(table);
        };
        case "alter" -> () -> admin.modifyTable(descriptor(table)
            .setColumnFamily(ColumnFamilyDescriptorBuilder.of(ADDED)).setValue(ATTRIBUTE, number).build());
        case "truncate" -> () -> admin.truncateTable(table, true);
        case "split" -> () -> admin.splitRegionAsync(regions.get(1).getRegionName(), SPLIT_ROW)
            .get(patienceMs, TimeUnit.MILLISECONDS);
        case "merge" -> () -> admin.mergeRegionsAsync(new byte[][] {regions.get(1).getRegionName(),
            regions.get(2).getRegionName()}, false).get(patienceMs, TimeUnit.MILLISECONDS);
        case "move" -> () -> admin.move(regions.get(1).getEncodedNameAsBytes(), target);
        case "snapshot" -> () -> admin.snapshot(snapshot, table);
        case "clone" -> () -> admin.cloneSnapshot(snapshot, table);
        case "restore" -> () -> admin.restoreSnapshot(snapshot, false);
        case "crash" -> () -> { };
        default -> throw new IllegalArgumentException(operation);
      };
    }

    void serve() throws Exception {
      try (Connection fresh = connect(patienceMs); Admin lister = fresh.getAdmin()) {
        for (TableName name : lister.listTableNames((Pattern) null, true)) {
          if (!name.equals(TableName.META_TABLE_NAME) && lister.isTableEnabled(name)) {
            for (RegionInfo region : lister.getRegions(name)) {
              try (Table open = fresh.getTable(name)) {
                byte[] start = region.getStartKey();
                open.exists(new Get(start.length == 0 ? new byte[] {0} : start));
              }
            }
          }
        }
      }
      print("served " + number);
    }

    // The check.

    void check(boolean isOk, boolean isStrict) throws Exception {
      List<String> problems = settle();
      problems.forEach(problem -> wrong("unsettled: " + problem));
      String found;
      try (Connection fresh = connect(patienceMs); Admin reader = fresh.getAdmin()) {
        found = new Reader(fresh, reader).state();
      }
      boolean isDone = done().contains(found);
      boolean isUndone = undone().contains(found);
      if (!isDone && !isUndone) {
        wrong("neither done nor undone: " + found);
      } else if (isOk && !isDone) {
        wrong("reported as done, but it is not: " + found);
      }
      if (operation.equals("move") && isOk && isStrict && problems.isEmpty()
          && !locate(table, SPLITS[0]).equals(target)) {
        wrong("reported as moved, but the region is on " + locate(table, SPLITS[0]) + ", not on " + target);
      }
      for (String problem : problems.isEmpty() ? settle() : List.<String>of()) {
        wrong("unsettled after the check: " + problem);
      }
      print("checked " + number + " " + (isDone ? "done" : isUndone ? "undone" : "neither") + " " + found);
    }

    private Set<String> done() {
      return switch (operation) {
        case "create" -> Set.of("enabled families=a" + REGIONS + " rows=none");
        case "drop" -> Set.of("absent");
        case "alter" -> Set.of("enabled families=ab " + number + REGIONS + " rows=old");
        case "truncate" -> Set.of("enabled families=a" + REGIONS + " rows=none");
        case "split" -> Set.of("enabled families=a regions=[, 20, 30, 40] rows=old");
        case "merge" -> Set.of("enabled families=a regions=[, 20] rows=old");
        case "snapshot" -> Set.of("enabled families=a" + REGIONS + " rows=old; copy: enabled families=a" + REGIONS
            + " rows=old");
        case "restore" -> Set.of("disabled families=a" + REGIONS + " rows=old");
        default -> Set.of("enabled families=a" + REGIONS + " rows=old");
      };
    }

    private Set<String> undone() {
      String old = " families=a" + REGIONS + " rows=old";
      return switch (operation) {
        case "create", "clone" -> Set.of("absent");
        case "drop" -> Set.of("enabled" + old, "disabled" + old);
        case "truncate" -> Set.of("disabled" + old);
        case "restore" -> Set.of("disabled families=a" + REGIONS + " rows=new");
        case "snapshot" -> Set.of("enabled" + old + "; no snapshot");
        default -> Set.of("enabled" + old);
      };
    }

    /** Waits until the cluster is settled; returns what is not. */
    private List<String> settle() throws Exception {
      long end = System.currentTimeMillis() + patienceMs;
      while (true) {
        List<String> problems;
        try (Connection fresh = connect(patienceMs); Admin reader = fresh.getAdmin()) {
          problems = new Reader(fresh, reader).problems();
        } catch (IOException failed) {
          problems = List.of(line(failed));
        }
        if (problems.isEmpty() || System.currentTimeMillis() > end) {
          return problems;
        }
        Thread.sleep(100);
      }
    }

    void clean() throws Exception {
      for (TableName name : new TreeSet<>(List.of(table, source, copy))) {
        if (admin.tableExists(name)) {
          if (!admin.isTableDisabled(name)) {
            admin.disableTable(name);
          }
          admin.deleteTable(name);
        }
      }
      for (SnapshotDescription one : admin.listSnapshots(Pattern.compile(snapshot))) {
        admin.deleteSnapshot(one.getName());
      }
      print("clean " + number);
    }

    /** Reads the state of the cluster and the tables by a connection that knows nothing yet. */
    private final class Reader {
      final Connection connection;
      final Admin admin;

      Reader(Connection connection, Admin admin) {
        this.connection = connection;
        this.admin = admin;
      }

      List<String> problems() throws IOException {
        List<String> problems = new ArrayList<>();
        ClusterMetrics metrics = admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.LIVE_SERVERS,
            ClusterMetrics.Option.REGIONS_IN_TRANSITION));
        for (RegionState state : metrics.getRegionStatesInTransition()) {
          problems.add("in transition: " + state.toDescriptiveString());
        }
        for (JsonElement element : JsonParser.parseString(admin.getProcedures()).getAsJsonArray()) {
          JsonObject procedure = element.getAsJsonObject();
          if (!FINISHED.contains(procedure.get("state").getAsString())) {
            problems.add("running: " + procedure.get("className").getAsString() + " " + procedure.get("procId"));
          }
        }
        Map<String, List<ServerName>> online = new TreeMap<>();
        for (ServerName server : metrics.getLiveServerMetrics().keySet()) {
          for (RegionInfo region : admin.getRegions(server)) {
            online.computeIfAbsent(region.getRegionNameAsString(), name -> new ArrayList<>()).add(server);
          }
        }
        Set<TableName> tables = new TreeSet<>(List.of(admin.listTableNames((Pattern) null, true)));
        tables.add(TableName.META_TABLE_NAME);
        for (TableName name : tables) {
          compare(name, online, problems);
        }
        online.forEach((region, servers) -> problems.add(region + " is open on " + servers + " but of no enabled table"));
        addStrayRows(tables, problems);
        return problems;
      }

      /** Compares the regions of a table with those that are open, and removes these from `online`. */
      private void compare(TableName name, Map<String, List<ServerName>> online, List<String> problems)
          throws IOException {
        boolean isEnabled = name.equals(TableName.META_TABLE_NAME) || admin.isTableEnabled(name);
        if (!isEnabled && !admin.isTableDisabled(name)) {
          problems.add(name + " is neither enabled nor disabled");
        }
        if (!isEnabled) {
          return;
        }
        Map<String, ServerName> locations = new HashMap<>();
        try (RegionLocator locator = connection.getRegionLocator(name)) {
          for (HRegionLocation location : locator.getAllRegionLocations()) {
            locations.put(location.getRegion().getRegionNameAsString(), location.getServerName());
          }
        }
        for (RegionInfo region : admin.getRegions(name)) {
          String regionName = region.getRegionNameAsString();
          List<ServerName> servers = online.remove(regionName);
          if (servers == null || servers.size() != 1) {
            problems.add(regionName + " is open on " + (servers == null ? "no server" : servers));
          } else if (!servers.get(0).equals(locations.get(regionName))) {
            problems.add(regionName + " is open on " + servers + ", but hbase:meta has " + locations.get(regionName));
          }
        }
      }

      /** Rows of hbase:meta whose table does not exist. */
      private void addStrayRows(Set<TableName> tables, List<String> problems) throws IOException {
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME);
            ResultScanner scanner = meta.getScanner(new Scan())) {
          for (Result result : scanner) {
            String row = Bytes.toStringBinary(result.getRow());
            String name = row.contains(",") ? row.substring(0, row.indexOf(',')) : row;
            if (tables.stream().noneMatch(one -> one.getNameAsString().equals(name))
                && !name.equals("hbase:namespace") && !name.startsWith("\\x")) {
              problems.add("hbase:meta has the row " + row + " of a table that does not exist");
            }
          }
        }
      }

      String state() throws IOException {
        String state = describe(table);
        if (operation.equals("clone") && !describe(source).equals("enabled families=a" + REGIONS + " rows=old")) {
          return state + "; source: " + describe(source);
        }
        if (!operation.equals("snapshot")) {
          return state;
        }
        if (admin.listSnapshots(Pattern.compile(snapshot)).isEmpty()) {
          return state + "; no snapshot";
        }
        admin.cloneSnapshot(snapshot, copy);
        return state + "; copy: " + describe(copy);
      }

      /** The state of a table. Enables it if it is disabled. All its regions are also written to. */
      private String describe(TableName name) throws IOException {
        if (!admin.tableExists(name)) {
          return "absent";
        }
        boolean isDisabled = admin.isTableDisabled(name);
        if (isDisabled) {
          admin.enableTable(name);
        }
        TableDescriptor descriptor = admin.getDescriptor(name);
        String families = "";
        for (byte[] family : descriptor.getColumnFamilyNames()) {
          families += Bytes.toString(family);
        }
        String attribute = descriptor.getValue(ATTRIBUTE);
        List<String> starts = new ArrayList<>();
        for (RegionInfo region : admin.getRegions(name)) {
          starts.add(Bytes.toString(region.getStartKey()));
        }
        String rows = rows(name);
        for (String start : starts) {
          for (byte[] family : descriptor.getColumnFamilyNames()) {
            writeAndRead(name, Bytes.toBytes(start + "!"), family);
          }
        }
        return (isDisabled ? "disabled" : "enabled") + " families=" + families
            + (attribute == null ? "" : " " + attribute) + " regions=" + starts + " rows=" + rows;
      }

      private void writeAndRead(TableName name, byte[] row, byte[] family) throws IOException {
        try (Table open = connection.getTable(name)) {
          open.put(new Put(row).addColumn(family, COLUMN, row));
          if (!Bytes.equals(row, open.get(new Get(row)).getValue(family, COLUMN))) {
            wrong("a new row of " + name + " was not read back: " + Bytes.toString(row));
          }
        }
      }

      /** `none`, `old` or `new` if the table has exactly these rows. */
      private String rows(TableName name) throws IOException {
        Map<String, String> found = new TreeMap<>();
        try (Table open = connection.getTable(name); ResultScanner scanner = open.getScanner(new Scan())) {
          for (Result result : scanner) {
            String key = Bytes.toString(result.getRow());
            // Rows that an earlier check wrote are no rows of the test.
            if (!key.endsWith("!") && found.put(key, Bytes.toString(result.getValue(FAMILY, COLUMN))) != null) {
              wrong("a scan of " + name + " returned the row " + key + " twice");
            }
          }
        }
        if (found.isEmpty()) {
          return "none";
        }
        for (String value : List.of("old", "new")) {
          if (found.size() == ROWS && found.entrySet().stream().allMatch(row -> row.getValue().equals(value + row.getKey()))) {
            return value;
          }
        }
        return found.toString();
      }
    }
  }
}
