package compat.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.RequestConverter;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos.ClientService;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Writes to a server that is paused, and to those that take its regions over.
 *
 * <pre>
 *   java compat.cluster.Zombie TABLE REGIONS
 * </pre>
 *
 * Commands on standard input, and responses:
 *
 * <pre>
 *   choose       `chosen HOST,PORT REGIONS`: the server with most regions, the victim of the cycle
 *   write        threads begin to write to each of its regions, with calls to this server alone,
 *                which are not repeated elsewhere; `writing`
 *   paused       the server is stopped from now on: further writes to it are queued; `queued N`
 *   overwrite    writes newer values to the same rows through the servers that have the regions now,
 *                and queues reads of these rows on the victim; `overwritten MS`: how long that took
 *   resumed      the server runs again; waits until all calls to it have ended, and checks;
 *                `cycle acknowledged=N queued=N late=N stale=N lost=N refused=N`
 * </pre>
 *
 * `late` writes were sent to the stopped server, and acknowledged by it: they are after the fence.
 * `stale` reads began after newer values were acknowledged, and did not return them. `lost` writes
 * were acknowledged by the victim before the stop, or by the other servers, and are not there.
 */
public final class Zombie {
  private static final byte[] FAMILY = Rows.FAMILIES[0];
  private static final byte[] COLUMN = Bytes.toBytes("q");
  private static final int QUEUED_PER_REGION = 5;
  private static final long PATIENCE_MS = 60_000;

  private final Connection connection;
  private final TableName name;
  /** What a client still holds that knew the victim before. */
  private final ClusterConnection old;
  private Cycle cycle;
  private int cycles;

  private Zombie(Connection connection, ClusterConnection old, TableName name) {
    this.connection = connection;
    this.old = old;
    this.name = name;
  }

  public static void main(String[] arguments) throws Exception {
    TableName name = TableName.valueOf(arguments[0]);
    try (Connection connection = ConnectionFactory.createConnection(Rows.configuration("hbase.client.pause=20",
            "hbase.rpc.timeout=2000", "hbase.client.retries.number=200", "hbase.ipc.client.failed.servers.expiry=50"));
        ClusterConnection old = (ClusterConnection) ConnectionFactory.createConnection(
            Rows.configuration("hbase.rpc.timeout=120000", "hbase.client.operation.timeout=120000",
                "hbase.ipc.client.failed.servers.expiry=50"))) {
      Rows.createTable(connection, name, Integer.parseInt(arguments[1]));
      Zombie zombie = new Zombie(connection, old, name);
      BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        zombie.command(line);
      }
    }
    System.exit(0);
  }

  private void command(String line) throws Exception {
    switch (line) {
      case "choose" -> choose();
      case "write" -> cycle.write();
      case "paused" -> cycle.queueWrites();
      case "overwrite" -> cycle.overwrite();
      case "resumed" -> cycle.check();
      default -> throw new IllegalArgumentException(line);
    }
  }

  private void choose() throws IOException {
    Map<ServerName, List<HRegionLocation>> servers = new TreeMap<>();
    connection.clearRegionLocationCache();
    for (HRegionLocation location : connection.getRegionLocator(name).getAllRegionLocations()) {
      servers.computeIfAbsent(location.getServerName(), server -> new ArrayList<>()).add(location);
    }
    Map.Entry<ServerName, List<HRegionLocation>> most = servers.entrySet().stream()
        .max((left, right) -> Integer.compare(left.getValue().size(), right.getValue().size())).orElseThrow();
    cycle = new Cycle(++cycles, most.getKey(), most.getValue());
    System.out.println("chosen " + most.getKey().getHostname() + "," + most.getKey().getPort() + " "
        + most.getValue().size());
  }

  private final class Cycle {
    final int number;
    final ServerName victim;
    final List<HRegionLocation> regions;
    final List<Thread> threads = new ArrayList<>();
    /** Acknowledged writes, of rows that are written once. */
    final Map<String, String> acknowledged = new ConcurrentHashMap<>();
    final AtomicLong next = new AtomicLong();
    final AtomicInteger queued = new AtomicInteger();
    final AtomicInteger late = new AtomicInteger();
    final AtomicInteger stale = new AtomicInteger();
    final AtomicInteger refused = new AtomicInteger();
    private volatile boolean isPaused;

    Cycle(int number, ServerName victim, List<HRegionLocation> regions) {
      this.number = number;
      this.victim = victim;
      this.regions = regions;
    }

    private String prefix(HRegionLocation region) {
      byte[] start = region.getRegion().getStartKey();
      return start.length == 0 ? "00000000" : Bytes.toString(start);
    }

    /** The row of a region that is overwritten in each cycle. */
    private String shared(HRegionLocation region) {
      return prefix(region) + "-shared";
    }

    void write() throws Exception {
      ClientService.BlockingInterface client = old.getClient(victim);
      for (HRegionLocation region : regions) {
        put(client, region, shared(region), "old-" + number);
        start(() -> {
          while (!isPaused) {
            write(client, region, false);
          }
        });
      }
      System.out.println("writing");
    }

    /** One write of a new row, to the victim only. */
    private void write(ClientService.BlockingInterface client, HRegionLocation region, boolean isQueued) {
      String row = prefix(region) + "-" + number + "-" + next.incrementAndGet();
      try {
        put(client, region, row, row);
        acknowledged.put(row, row);
        if (isQueued) {
          late.incrementAndGet();
          System.out.println("LATE " + row + " was acknowledged by " + victim + " after it was fenced");
        }
      } catch (Exception failed) {
        refused.incrementAndGet();
        pause(failed);
      }
    }

    private void put(ClientService.BlockingInterface client, HRegionLocation region, String row, String value)
        throws Exception {
      Put put = new Put(Bytes.toBytes(row)).addColumn(FAMILY, COLUMN, Bytes.toBytes(value));
      client.mutate(null, RequestConverter.buildMutateRequest(region.getRegion().getRegionName(), put));
    }

    void queueWrites() throws Exception {
      // Calls that began before may still be acknowledged: their edits may be in the log.
      isPaused = true;
      ClientService.BlockingInterface client = old.getClient(victim);
      for (HRegionLocation region : regions) {
        for (int at = 0; at < QUEUED_PER_REGION; at++) {
          queued.incrementAndGet();
          start(() -> write(client, region, true));
        }
        queued.incrementAndGet();
        start(() -> {
          try {
            put(client, region, shared(region), "zombie-" + number);
            late.incrementAndGet();
            System.out.println("LATE " + shared(region) + " was acknowledged by " + victim + " after it was fenced");
          } catch (Exception failed) {
            refused.incrementAndGet();
          }
        });
      }
      System.out.println("queued " + queued);
    }

    void overwrite() throws Exception {
      long begin = System.nanoTime();
      connection.clearRegionLocationCache();
      try (Table table = connection.getTable(name)) {
        for (HRegionLocation region : regions) {
          table.put(new Put(Bytes.toBytes(shared(region))).addColumn(FAMILY, COLUMN, Bytes.toBytes("new-" + number)));
        }
      }
      ClientService.BlockingInterface client = old.getClient(victim);
      for (HRegionLocation region : regions) {
        for (int at = 0; at < QUEUED_PER_REGION; at++) {
          start(() -> read(client, region));
        }
      }
      System.out.println("overwritten " + (System.nanoTime() - begin) / 1_000_000);
    }

    /** Reads from the victim until it refuses. */
    private void read(ClientService.BlockingInterface client, HRegionLocation region) {
      try {
        while (true) {
          Get get = new Get(Bytes.toBytes(shared(region)));
          Result result = ProtobufUtil.toResult(client.get(null, RequestConverter.buildGetRequest(
              region.getRegion().getRegionName(), get)).getResult());
          String found = Bytes.toString(result.getValue(FAMILY, COLUMN));
          if (!("new-" + number).equals(found)) {
            stale.incrementAndGet();
            System.out.println("STALE " + shared(region) + " is " + found + " on " + victim + " in cycle " + number);
          }
        }
      } catch (Exception refusedByServer) {
        refused.incrementAndGet();
      }
    }

    void check() throws Exception {
      long end = System.currentTimeMillis() + PATIENCE_MS;
      for (Thread thread : threads) {
        thread.join(Math.max(1, end - System.currentTimeMillis()));
      }
      int unanswered = (int) threads.stream().filter(Thread::isAlive).count();
      int lost = 0;
      try (Table table = connection.getTable(name)) {
        for (HRegionLocation region : regions) {
          lost += check(table, shared(region), "new-" + number);
        }
        for (Map.Entry<String, String> write : new HashMap<>(acknowledged).entrySet()) {
          lost += check(table, write.getKey(), write.getValue());
        }
      }
      System.out.println("cycle acknowledged=" + acknowledged.size() + " queued=" + queued + " late=" + late
          + " stale=" + stale + " lost=" + lost + " refused=" + refused + " unanswered=" + unanswered);
    }

    private int check(Table table, String row, String value) throws IOException {
      String found = Bytes.toString(table.get(new Get(Bytes.toBytes(row))).getValue(FAMILY, COLUMN));
      if (value.equals(found)) {
        return 0;
      }
      System.out.println("LOST " + row + " is " + found + " instead of " + value + " in cycle " + number);
      return 1;
    }

    private void start(Runnable work) {
      Thread thread = new Thread(work);
      thread.setDaemon(true);
      threads.add(thread);
      thread.start();
    }

    private void pause(Exception failed) {
      try {
        Thread.sleep(20);
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
