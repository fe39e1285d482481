package compat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/**
 * The connection and transcript of a suite, and its tables, whose names all start with
 * `compat_SUITE`.
 */
final class Session implements AutoCloseable {
  final Configuration conf;
  final Connection connection;
  final Admin admin;
  final Transcript out;
  private final String prefix;

  Session(Configuration conf, String suite, Transcript out) throws IOException {
    this.conf = conf;
    this.out = out;
    this.prefix = "compat_" + suite;
    this.connection = ConnectionFactory.createConnection(conf);
    this.admin = connection.getAdmin();
  }

  /** The suite's table of that name. */
  TableName name(String table) {
    return TableName.valueOf(prefix + "_" + table);
  }

  /** Matches all tables of the suite. */
  Pattern ownTables() {
    return Pattern.compile(prefix + "_.*");
  }

  /** A descriptor with default families. */
  TableDescriptor descriptor(TableName name, String... families) {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (String family : families) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.of(family));
    }
    return table.build();
  }

  /** Creates a table with default families and opens it. */
  Table table(String table, String... families) throws IOException {
    return table(descriptor(name(table), families));
  }

  /** Creates a table, split at the given rows, and opens it. */
  Table table(TableDescriptor descriptor, String... splits) throws IOException {
    if (splits.length == 0) {
      admin.createTable(descriptor);
    } else {
      admin.createTable(descriptor, Rows.bytes(splits));
    }
    return connection.getTable(descriptor.getTableName());
  }

  /** Removes every table of the suite, so that an aborted run does not affect the next. */
  void dropAll() throws IOException {
    for (TableName table : admin.listTableNames(ownTables())) {
      drop(table);
    }
  }

  void drop(TableName table) throws IOException {
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
    admin.deleteTable(table);
  }

  /** Compacts each store into one file and waits until this is done. */
  void majorCompact(TableName table) throws Exception {
    awaitCompactions(table);
    long asked = System.currentTimeMillis();
    // A server may drop a request while it cleans up after another, so it is repeated.
    for (int attempt = 0; attempt < 10 && !isCompactedSince(table, asked); attempt++) {
      admin.majorCompact(table);
      for (int wait = 0; wait < 100 && !isCompactedSince(table, asked); wait++) {
        Thread.sleep(50);
      }
    }
    await("major compaction of " + table, () -> isCompactedSince(table, asked));
  }

  /** Waits until no compaction of the table is in progress. */
  void awaitCompactions(TableName table) throws Exception {
    await("end of compactions of " + table, () -> admin.getCompactionState(table) == CompactionState.NONE);
  }

  private boolean isCompactedSince(TableName table, long timeMs) throws IOException {
    return admin.getCompactionState(table) == CompactionState.NONE
        && regionMetrics(table).stream().allMatch(region -> isCompactedSince(region, timeMs));
  }

  private static boolean isCompactedSince(RegionMetrics region, long timeMs) {
    return region.getStoreFileCount() == 0
        || region.getStoreFileCount() <= region.getStoreCount() && region.getLastMajorCompactionTimestamp() >= timeMs;
  }

  /** The region servers' own metrics of a table's regions. */
  List<RegionMetrics> regionMetrics(TableName table) throws IOException {
    List<RegionMetrics> all = new ArrayList<>();
    for (ServerName server : admin.getRegionServers()) {
      all.addAll(admin.getRegionMetrics(server, table));
    }
    return all;
  }

  /** The number of store files of a table. */
  int storeFiles(TableName table) throws IOException {
    return regionMetrics(table).stream().mapToInt(RegionMetrics::getStoreFileCount).sum();
  }

  /** Waits until the condition holds; after a minute, reports which condition did not. */
  void await(String what, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + 60_000_000_000L;
    while (!condition.call()) {
      if (System.nanoTime() > end) {
        throw new IOException("waited for " + what + " in vain");
      }
      Thread.sleep(50);
    }
  }

  /** A second connection with other settings. */
  Connection connect(String... settings) throws IOException {
    Configuration other = new Configuration(conf);
    for (int at = 0; at < settings.length; at += 2) {
      other.set(settings[at], settings[at + 1]);
    }
    return ConnectionFactory.createConnection(other);
  }

  @Override
  public void close() throws IOException {
    admin.close();
    connection.close();
  }
}
