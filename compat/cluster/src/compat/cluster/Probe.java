package compat.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Table;

/**
 * Measures outages of regions and of the master, by a request to each every few milliseconds.
 *
 * <pre>
 *   java compat.cluster.Probe PERIOD_MS TABLE...
 * </pre>
 *
 * Every region of the tables and of hbase:meta has a thread, and the active master too. Prints
 * `ready N` when all N have answered once. Commands on standard input:
 *
 * <pre>
 *   begin ID     prints `again ID` when all have answered a request that began after this line was read
 *   end ID       prints `outage ID REGIONS_MS REGION MASTER_MS`: the longest time since `begin ID` that
 *                any region, and the master, did not answer
 *   meta         prints `meta HOST,PORT`, the server that has hbase:meta; or `meta none`
 * </pre>
 *
 * Clients wait longer the longer an outage lasts. This one hardly waits, so it measures servers.
 */
public final class Probe {
  private static final String META = "hbase:meta";
  private static final String MASTER = "master";

  private final int periodMs;
  private final Map<String, Polled> polled = new ConcurrentHashMap<>();
  private volatile Window window;

  private Probe(int periodMs) {
    this.periodMs = periodMs;
  }

  /** The last answer of a region or of the master. */
  private static final class Polled {
    private long lastAnswer;
    /** The longest time without an answer, of those that ended in the window. */
    private long longest;
  }

  /** The time from `begin` to `end`. */
  private final class Window {
    final String id;
    final long begin = System.nanoTime();
    private final Set<String> missing = new HashSet<>(polled.keySet());

    Window(String id) {
      this.id = id;
      polled.values().forEach(one -> one.longest = 0);
    }

    void answered(String name, Polled one, long callBegin, long now) {
      if (callBegin < begin) {
        return;
      }
      one.longest = Math.max(one.longest, now - Math.max(one.lastAnswer, begin));
      if (missing.remove(name) && missing.isEmpty()) {
        print("again " + id);
      }
    }

    void close() {
      long now = System.nanoTime();
      String worst = META;
      for (Map.Entry<String, Polled> entry : polled.entrySet()) {
        Polled one = entry.getValue();
        one.longest = Math.max(one.longest, now - Math.max(one.lastAnswer, begin));
        if (!entry.getKey().equals(MASTER) && one.longest > polled.get(worst).longest) {
          worst = entry.getKey();
        }
      }
      print("outage " + id + " " + polled.get(worst).longest / 1_000_000 + " " + worst + " "
          + polled.get(MASTER).longest / 1_000_000);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Probe probe = new Probe(Integer.parseInt(arguments[0]));
    try (Connection connection = ConnectionFactory.createConnection(impatient());
        Admin admin = connection.getAdmin();
        Connection patient = ConnectionFactory.createConnection(Rows.configuration());
        Admin lister = patient.getAdmin()) {
      List<Thread> workers = new ArrayList<>();
      for (int at = 1; at < arguments.length; at++) {
        TableName table = TableName.valueOf(arguments[at]);
        for (RegionInfo region : lister.getRegions(table)) {
          byte[] row = rowIn(region);
          workers.add(probe.worker(region.getEncodedName(), () -> get(connection, table, row)));
        }
      }
      workers.add(probe.worker(META, () -> get(connection, TableName.META_TABLE_NAME, rowIn(null))));
      // Only an initialized master answers this.
      workers.add(probe.worker(MASTER, admin::listNamespaceDescriptors));
      workers.forEach(Thread::start);
      probe.awaitAll();
      print("ready " + probe.polled.size());
      BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        if (line.equals("meta")) {
          print("meta " + metaHolder(patient));
        } else {
          probe.command(line);
        }
      }
    }
    System.exit(0);
  }

  /** Settings of a client that notices the end of an outage immediately. */
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

  private interface Request {
    void send() throws IOException;
  }

  private static void get(Connection connection, TableName name, byte[] row) throws IOException {
    try (Table table = connection.getTable(name)) {
      table.exists(new Get(row));
    }
  }

  private Thread worker(String name, Request request) {
    Polled one = new Polled();
    polled.put(name, one);
    Thread thread = new Thread(() -> poll(name, one, request));
    thread.setDaemon(true);
    return thread;
  }

  private void poll(String name, Polled one, Request request) {
    while (true) {
      long begin = System.nanoTime();
      int pauseMs = periodMs;
      try {
        request.send();
        answered(name, one, begin);
      } catch (IOException | RuntimeException outage) {
        pauseMs = 10;
      }
      try {
        Thread.sleep(pauseMs);
      } catch (InterruptedException ended) {
        return;
      }
    }
  }

  private synchronized void answered(String name, Polled one, long begin) {
    long now = System.nanoTime();
    if (window != null) {
      window.answered(name, one, begin, now);
    }
    one.lastAnswer = now;
    notifyAll();
  }

  private synchronized void awaitAll() throws InterruptedException {
    while (polled.values().stream().anyMatch(one -> one.lastAnswer == 0)) {
      wait();
    }
  }

  private static String metaHolder(Connection connection) {
    try (RegionLocator locator = connection.getRegionLocator(TableName.META_TABLE_NAME)) {
      HRegionLocation location = locator.getRegionLocation(HConstants.EMPTY_START_ROW, true);
      return location.getHostname() + "," + location.getPort();
    } catch (IOException outage) {
      return "none";
    }
  }

  private synchronized void command(String line) {
    String[] words = line.split(" ");
    if (words[0].equals("begin")) {
      window = new Window(words[1]);
    } else {
      window.close();
      window = null;
    }
  }

  private static synchronized void print(String line) {
    System.out.println(line);
  }
}
