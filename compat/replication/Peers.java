import compat.hbase.RandomEdits;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The steps of a test of replication: `begin SOURCE SINK`, `write SOURCE SECONDS SEED`, `load SOURCE
 * DIRECTORY`, `compare SOURCE SINK PATIENCE_S`. A cluster is the port of its ZooKeeper.
 */
public final class Peers {
  private static final List<TableName> TABLES = List.of(TableName.valueOf("one"), TableName.valueOf("two"));
  private static final TableName LOADED = TableName.valueOf("loaded");

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "begin" -> begin(arguments[1], arguments[2]);
      case "write" -> write(arguments[1], Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
      case "load" -> load(arguments[1], arguments[2]);
      case "compare" -> compare(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
      default -> throw new IllegalArgumentException(arguments[0]);
    }
    System.exit(0);
  }

  private static Configuration conf(String port) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", port);
    return conf;
  }

  private static void begin(String source, String sink) throws Exception {
    for (String port : List.of(source, sink)) {
      try (Connection connection = ConnectionFactory.createConnection(conf(port)); Admin admin = connection.getAdmin()) {
        for (TableName name : TABLES) {
          // Nothing is dropped, so that all cells can be compared. The regions differ.
          String split = port.equals(source) ? "r3" : "r6";
          admin.createTable(descriptor(name).build(), new byte[][] {Bytes.toBytes(split)});
        }
        admin.createTable(descriptor(LOADED).build());
      }
    }
    try (Connection connection = ConnectionFactory.createConnection(conf(source)); Admin admin = connection.getAdmin()) {
      admin.addReplicationPeer("1", ReplicationPeerConfig.newBuilder()
          .setClusterKey("127.0.0.1:" + sink + ":/hbase").setReplicateAllUserTables(true).build());
    }
  }

  private static TableDescriptorBuilder descriptor(TableName name) {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (String family : RandomEdits.FAMILIES) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(family)).setScope(1)
          .setMaxVersions(Integer.MAX_VALUE).setKeepDeletedCells(KeepDeletedCells.TRUE).build());
    }
    return table;
  }

  /** Random changes of every kind. Prints their number. */
  private static void write(String port, int seconds, long seed) throws Exception {
    Configuration conf = conf(port);
    conf.setInt("hbase.client.retries.number", 100);
    Random random = new Random(seed);
    RandomEdits edits = new RandomEdits(random, 50, true);
    long count = 0;
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      // The first change takes long, because the client reads the locations of regions.
      try (Table table = connection.getTable(TABLES.get(0))) {
        edits.apply(table);
      }
      long end = System.nanoTime() + seconds * 1_000_000_000L;
      while (System.nanoTime() < end) {
        try (Table table = connection.getTable(TABLES.get(random.nextInt(TABLES.size())))) {
          edits.apply(table);
          count++;
        }
      }
    }
    System.out.println(count + " changes");
  }

  /** A bulk load in the source. */
  private static void load(String port, String directory) throws Exception {
    Configuration conf = conf(port);
    FileSystem local = FileSystem.getLocal(conf);
    for (String family : RandomEdits.FAMILIES) {
      Path path = new Path("file://" + directory + "/" + family + "/a");
      local.mkdirs(path.getParent());
      HFile.Writer writer = HFile.getWriterFactory(conf, new CacheConfig(conf)).withPath(local, path)
          .withFileContext(new HFileContextBuilder().build()).create();
      for (int row = 1000; row < 1100; row++) {
        writer.append(new KeyValue(Bytes.toBytes("r" + row), Bytes.toBytes(family), Bytes.toBytes("q"), 5L,
            Bytes.toBytes("loaded")));
      }
      writer.appendFileInfo(HStoreFile.BULKLOAD_TIME_KEY, Bytes.toBytes(1L));
      writer.close();
    }
    Path loaded = new Path("file://" + directory);
    System.out.println(BulkLoadHFiles.create(conf).bulkLoad(LOADED, loaded).size() + " files");
  }

  /** Waits until all cells, with markers and all versions, are equal. */
  private static void compare(String source, String sink, int patience) throws Exception {
    long end = System.nanoTime() + patience * 1_000_000_000L;
    try (Connection left = ConnectionFactory.createConnection(conf(source));
        Connection right = ConnectionFactory.createConnection(conf(sink))) {
      List<TableName> all = new ArrayList<>(TABLES);
      all.add(LOADED);
      for (TableName name : all) {
        while (true) {
          List<String> expected = cells(left, name);
          List<String> found = cells(right, name);
          if (expected.equals(found)) {
            System.out.println(name + ": " + found.size() + " cells are equal");
            break;
          }
          if (System.nanoTime() > end) {
            System.out.println(name + ": " + expected.size() + " cells in the source, " + found.size() + " in the sink");
            int at = 0;
            while (at < Math.min(expected.size(), found.size()) && expected.get(at).equals(found.get(at))) {
              at++;
            }
            System.out.println("  first difference: "
                + (at < expected.size() ? expected.get(at) : "nothing") + " | "
                + (at < found.size() ? found.get(at) : "nothing"));
            System.exit(1);
          }
          Thread.sleep(1000);
        }
      }
    }
  }

  private static List<String> cells(Connection connection, TableName name) throws Exception {
    List<String> cells = new ArrayList<>();
    Scan scan = new Scan().readAllVersions().setRaw(true);
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
      for (Result result : scanner) {
        for (Cell cell : result.rawCells()) {
          cells.add(CellUtil.getCellKeyAsString(cell) + "=" + Bytes.toStringBinary(CellUtil.cloneValue(cell)));
        }
      }
    }
    return cells;
  }
}
