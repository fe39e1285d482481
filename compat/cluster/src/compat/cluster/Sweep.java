package compat.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Tables of very many regions.
 *
 * <pre>
 *   java compat.cluster.Sweep TABLE REGIONS ROWS_PER_REGION
 * </pre>
 *
 * Creates the table and writes its rows; prints `created MS`. For each line on standard input it
 * reads every row with a new connection, repeating failed reads, and prints
 * `swept MS missing=N`: how long that took, and how many rows are not there.
 */
public final class Sweep {
  private static final int THREADS = 32;
  private static final byte[] VALUE = Bytes.toBytes("v".repeat(100));

  private Sweep() {
  }

  public static void main(String[] arguments) throws Exception {
    TableName name = TableName.valueOf(arguments[0]);
    int regions = Integer.parseInt(arguments[1]);
    List<byte[]> rows = new ArrayList<>();
    long begin = System.nanoTime();
    try (Connection connection = connect()) {
      Rows.createTable(connection, name, regions);
      try (BufferedMutator mutator = connection.getBufferedMutator(name)) {
        Random random = new Random(1);
        for (RegionInfo region : connection.getAdmin().getRegions(name)) {
          byte[] start = region.getStartKey().length == 0 ? Bytes.toBytes("00000000") : region.getStartKey();
          for (int row = 0; row < Integer.parseInt(arguments[2]); row++) {
            byte[] key = Bytes.add(start, Bytes.toBytes("-" + random.nextInt(1_000_000)));
            rows.add(key);
            mutator.mutate(new Put(key).addColumn(Rows.FAMILIES[0], Rows.COUNTER, VALUE));
          }
        }
      }
    }
    System.out.println("created " + passedMs(begin));
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    while (commands.readLine() != null) {
      begin = System.nanoTime();
      try (Connection connection = connect()) {
        int missing = sweep(connection, name, rows);
        System.out.println("swept " + passedMs(begin) + " missing=" + missing);
      }
    }
    System.exit(0);
  }

  private static Connection connect() throws IOException {
    return ConnectionFactory.createConnection(Rows.configuration("hbase.client.pause=50", "hbase.rpc.timeout=5000",
        "hbase.client.retries.number=100", "hbase.ipc.client.failed.servers.expiry=50",
        "hbase.client.operation.timeout=600000"));
  }

  private static int sweep(Connection connection, TableName name, List<byte[]> rows) throws Exception {
    AtomicInteger missing = new AtomicInteger();
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    for (int thread = 0; thread < THREADS; thread++) {
      int first = thread;
      threads.submit(() -> {
        try (Table table = connection.getTable(name)) {
          for (int at = first; at < rows.size(); at += THREADS) {
            if (!table.exists(new Get(rows.get(at)))) {
              missing.incrementAndGet();
            }
          }
        } catch (IOException failed) {
          System.out.println("FAILED " + failed);
          missing.addAndGet(1);
        }
      });
    }
    threads.shutdown();
    threads.awaitTermination(1, TimeUnit.HOURS);
    return missing.get();
  }

  private static long passedMs(long begin) {
    return (System.nanoTime() - begin) / 1_000_000;
  }
}
