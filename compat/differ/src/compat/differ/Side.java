package compat.differ;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** One of the two servers. */
final class Side implements AutoCloseable {
  private static final long PATIENCE_MS = 60_000;
  private static final long DROPPED_MS = 3_000;

  final Connection connection;
  final Admin admin;

  Side(Configuration conf) throws Exception {
    connection = ConnectionFactory.createConnection(conf);
    admin = connection.getAdmin();
  }

  /** When the requests of a program were under way: a time that the server chose is shown as its request. */
  static final class Clock {
    private final TreeMap<Long, Integer> begins = new TreeMap<>();
    private long last;

    /** Begins the request of a number, in a millisecond of its own. */
    void begin(int number) throws InterruptedException {
      while (System.currentTimeMillis() <= last) {
        Thread.sleep(1);
      }
      begins.put(System.currentTimeMillis(), number);
    }

    void end() {
      last = System.currentTimeMillis();
    }

    String text(long time) {
      var request = begins.floorEntry(time);
      return request == null ? Long.toString(time) : "request" + request.getValue();
    }
  }

  /** Asks, and gives the answer's text or its exception's. */
  String ask(TableName name, Operation operation, Clock clock, int number) throws Exception {
    clock.begin(number);
    try (var table = connection.getTable(name)) {
      return new Texts(clock).answer(operation.call().ask(table, admin));
    } catch (Exception failed) {
      return Texts.exception(failed);
    } finally {
      clock.end();
    }
  }

  void create(Schema schema) throws Exception {
    drop(schema.name());
    admin.createTable(schema.descriptor());
  }

  void drop(TableName name) throws Exception {
    if (admin.tableExists(name)) {
      if (admin.isTableEnabled(name)) {
        admin.disableTable(name);
      }
      admin.deleteTable(name);
    }
  }

  /** Makes one file of each store and waits for it. */
  static void majorCompact(Admin admin, TableName name) throws Exception {
    long asked = System.currentTimeMillis();
    admin.majorCompact(name);
    for (int polls = 0; !isCompactedSince(admin, name, asked); polls++) {
      Thread.sleep(10);
      if (polls % 200 == 199) {
        // A request may be dropped while the server tidies up after another.
        admin.majorCompact(name);
      }
      if (System.currentTimeMillis() - asked > PATIENCE_MS) {
        throw new IllegalStateException("a major compaction never ended");
      }
    }
  }

  private static boolean isCompactedSince(Admin admin, TableName name, long time) throws Exception {
    List<RegionMetrics> regions = new ArrayList<>();
    for (ServerName server : admin.getRegionServers()) {
      regions.addAll(admin.getRegionMetrics(server, name));
    }
    // Where all cells have expired HBase removes them, and calls it no major compaction.
    boolean isLong = System.currentTimeMillis() - time > DROPPED_MS;
    return !regions.isEmpty() && admin.getCompactionState(name) == CompactionState.NONE
        && regions.stream().allMatch(region -> region.getStoreFileCount() == 0
            || region.getStoreFileCount() <= region.getStoreCount()
                && (isLong || region.getLastMajorCompactionTimestamp() >= time));
  }

  @Override
  public void close() throws Exception {
    admin.close();
    connection.close();
  }
}
