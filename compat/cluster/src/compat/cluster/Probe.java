package compat.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Table;

/**
 * Measures when all regions serve again, by a get per region every few milliseconds.
 *
 * <pre>
 *   java compat.cluster.Probe PERIOD_MS TABLE...
 * </pre>
 *
 * Every region of the tables and of hbase:meta has a thread, and the active master too. Prints
 * `ready N` when all N regions have served once. Commands on standard input:
 *
 * <pre>
 *   mark ID      prints `regions ID MS REGION` when every region has answered a get that began after
 *                this line was read: how long the last one took, and which it was; and
 *                `master ID MS` when the master has answered such a request
 * </pre>
 *
 * Clients wait longer the longer an outage lasts. This one hardly waits, so it measures servers.
 */
public final class Probe {
  private static final String META = "hbase:meta";

  private final int periodMs;
  private final List<Mark> marks = new CopyOnWriteArrayList<>();
  private final Set<String> regions = new HashSet<>();

  private Probe(int periodMs) {
    this.periodMs = periodMs;
  }

  /** What has answered since a moment. */
  private final class Mark {
    final String id;
    final long begin = System.nanoTime();
    private final Set<String> missing = new HashSet<>(regions);
    private boolean hasMaster;

    Mark(String id) {
      this.id = id;
    }

    synchronized void regionAnswered(String region, long callBegin) {
      if (callBegin >= begin && missing.remove(region) && missing.isEmpty()) {
        print("regions " + id + " " + passedMs() + " " + region);
        endIfComplete();
      }
    }

    synchronized void masterAnswered(long callBegin) {
      if (callBegin >= begin && !hasMaster) {
        hasMaster = true;
        print("master " + id + " " + passedMs());
        endIfComplete();
      }
    }

    private long passedMs() {
      return (System.nanoTime() - begin) / 1_000_000;
    }

    private void endIfComplete() {
      if (hasMaster && missing.isEmpty()) {
        marks.remove(this);
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    Probe probe = new Probe(Integer.parseInt(arguments[0]));
    try (Connection connection = ConnectionFactory.createConnection(impatient());
        Admin admin = connection.getAdmin()) {
      List<Runnable> workers = new ArrayList<>();
      AtomicInteger served = new AtomicInteger();
      for (int at = 1; at < arguments.length; at++) {
        TableName table = TableName.valueOf(arguments[at]);
        for (RegionInfo region : admin.getRegions(table)) {
          probe.regions.add(region.getEncodedName());
          workers.add(() -> probe.poll(connection, table, region.getEncodedName(), rowIn(region), served));
        }
      }
      probe.regions.add(META);
      workers.add(() -> probe.poll(connection, TableName.META_TABLE_NAME, META, rowIn(null), served));
      workers.add(() -> probe.pollMaster(admin));
      for (Runnable worker : workers) {
        Thread thread = new Thread(worker);
        thread.setDaemon(true);
        thread.start();
      }
      while (served.get() < probe.regions.size()) {
        Thread.sleep(10);
      }
      print("ready " + probe.regions.size());
      BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        probe.marks.add(probe.new Mark(line.split(" ")[1]));
      }
    }
    System.exit(0);
  }

  /** Settings of a client that notices the end of an outage at once. */
  private static Configuration impatient() {
    Configuration conf = Rows.configuration(
        "hbase.client.pause=20", "hbase.client.pause.server.overloaded=20", "hbase.rpc.timeout=1000",
        "hbase.client.operation.timeout=1500", "hbase.client.meta.operation.timeout=1500",
        "hbase.client.scanner.timeout.period=1500", "hbase.ipc.client.failed.servers.expiry=50",
        "hbase.ipc.client.socket.timeout.connect=1000", "zookeeper.recovery.retry=1",
        "zookeeper.recovery.retry.intervalmill=50", "zookeeper.registry.async.get.timeout=1000",
        "hbase.read.rpc.timeout=1000", "hbase.client.meta.read.rpc.timeout=1000");
    conf.setInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, 3);
    return conf;
  }

  private static byte[] rowIn(RegionInfo region) {
    return region == null || region.getStartKey().length == 0 ? new byte[] {'0'} : region.getStartKey();
  }

  private void poll(Connection connection, TableName name, String region, byte[] row, AtomicInteger served) {
    boolean hasServed = false;
    while (true) {
      long begin = System.nanoTime();
      try (Table table = connection.getTable(name)) {
        table.exists(new Get(row));
        if (!hasServed) {
          hasServed = true;
          served.incrementAndGet();
        }
        marks.forEach(mark -> mark.regionAnswered(region, begin));
        Thread.sleep(periodMs);
      } catch (IOException | InterruptedException outage) {
        pause();
      }
    }
  }

  private void pollMaster(Admin admin) {
    while (true) {
      long begin = System.nanoTime();
      try {
        // Only an initialized master answers.
        admin.listNamespaceDescriptors();
        marks.forEach(mark -> mark.masterAnswered(begin));
        Thread.sleep(periodMs);
      } catch (IOException | InterruptedException outage) {
        pause();
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(10);
    } catch (InterruptedException ignored) {
      Thread.currentThread().interrupt();
    }
  }

  private static synchronized void print(String line) {
    System.out.println(line);
  }
}
