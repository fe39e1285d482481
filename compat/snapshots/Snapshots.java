// Makes tables and snapshots in a running HBase, for compat/snapshots/run. Run from its source.
//   java -cp CONF:LIBS Snapshots.java

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

public class Snapshots {
  // The version of a description whose snapshot is a tree of directories (SnapshotManifestV1).
  static final int TREE = 0;
  static final int MANIFEST = 2;
  static final int PATIENCE_S = 60;
  static Connection connection;
  static Admin admin;

  public static void main(String[] arguments) throws Exception {
    connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
    admin = connection.getAdmin();
    admin.splitSwitch(true, true);
    admin.compactionSwitch(false, List.of());
    admin.createNamespace(NamespaceDescriptor.create("ns").build());
    plain();
    split();
    mob();
    clone("tclone", "plain");
    take("clone", TableName.valueOf("tclone"), MANIFEST, 0);
    take("clone_v1", TableName.valueOf("tclone"), TREE, 0);
    others();
    connection.close();
  }

  /** Two regions, two families; later changes move files of the snapshots to the archive. */
  static void plain() throws Exception {
    TableName name = TableName.valueOf("t1");
    admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("a"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(bytes("b")).setMaxVersions(3).setTimeToLive(864000000).build())
        .build(), new byte[][] {bytes("m")});
    put(name, "first", 20, "a", "b");
    admin.flush(name);
    take("plain", name, MANIFEST, 0);
    take("plain_v1", name, TREE, 0);
    put(name, "second", 20, "a");
    admin.flush(name);
    admin.compactionSwitch(true, List.of());
    admin.majorCompact(name, bytes("a"));
    // One file of each family in each region.
    await("compaction of " + name, () -> storeFiles(name).equals(List.of(2, 2)));
    admin.compactionSwitch(false, List.of());
    // A region that closes archives its compacted files.
    admin.disableTable(name);
    take("disabled", name, MANIFEST, 0);
    take("disabled_v1", name, TREE, 0);
    admin.enableTable(name);
  }

  /** Daughters with references to the files of their parent. */
  static void split() throws Exception {
    TableName name = TableName.valueOf("ns:t2");
    admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
    put(name, "value", 30, "f");
    admin.flush(name);
    admin.split(name, bytes("row15"));
    await("split of " + name, () -> admin.getRegions(name).size() == 2 && admin.isTableAvailable(name));
    take("split", name, MANIFEST, 0);
    take("split_v1", name, TREE, 0);
  }

  static void mob() throws Exception {
    TableName name = TableName.valueOf("tmob");
    admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(bytes("f")).setMobEnabled(true).setMobThreshold(10).build())
        .build());
    put(name, "a value longer than the threshold", 5, "f");
    admin.flush(name);
    take("mob", name, MANIFEST, 0);
    take("mob_v1", name, TREE, 0);
  }

  static void others() throws Exception {
    TableName empty = TableName.valueOf("tempty");
    admin.createTable(TableDescriptorBuilder.newBuilder(empty).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
    take("empty", empty, MANIFEST, 3600 * 24 * 365);
    for (String kind : new String[] {"lost", "changed"}) {
      TableName name = TableName.valueOf("t" + kind);
      admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).build());
      put(name, "value", 3, "f");
      admin.flush(name);
      take(kind, name, MANIFEST, 0);
      take(kind + "_v1", name, TREE, 0);
    }
  }

  /** The number of store files of each region. */
  static List<Integer> storeFiles(TableName name) throws Exception {
    List<Integer> files = new ArrayList<>();
    for (ServerName server : admin.getRegionServers()) {
      admin.getRegionMetrics(server, name).forEach(region -> files.add(region.getStoreFileCount()));
    }
    return files;
  }

  static void await(String what, Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + PATIENCE_S * 1_000_000_000L;
    while (!condition.call()) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException(what + " takes more than " + PATIENCE_S + " s");
      }
      Thread.sleep(100);
    }
  }

  static void clone(String table, String snapshot) throws Exception {
    admin.cloneSnapshot(snapshot, TableName.valueOf(table));
  }

  static void take(String snapshot, TableName table, int version, long ttl) throws Exception {
    Map<String, Object> properties = ttl == 0 ? null : Map.of("TTL", ttl);
    admin.snapshot(new SnapshotDescription(snapshot, table, SnapshotType.FLUSH, "operator", -1, version, properties));
  }

  static void put(TableName name, String value, int rows, String... families) throws Exception {
    try (Table table = connection.getTable(name)) {
      for (int row = 0; row < rows; row++) {
        for (String family : families) {
          byte[] key = bytes((row % 2 == 0 ? "row" : "even") + String.format("%02d", row));
          table.put(new Put(key).addColumn(bytes(family), bytes("q"), 1000 + row, bytes(value + row)));
        }
      }
    }
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
