package compat;

import static compat.Rows.b;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Splits and merges regions while clients read and write.
 *
 * <pre>
 *   java compat.Storm TABLE SPLITS MERGES THREADS
 * </pre>
 *
 * TABLE has rows that begin with hexadecimal digits, and another program loads it (this one waits
 * for it). THREADS threads load a second table; each knows the expected content of its rows. Both
 * tables are split and merged alternately, at random rows, until each had SPLITS and MERGES. Every
 * exception of a client is an error; so is a row without its expected content, during the run or at
 * the end. The exit code is 0 if there were no errors.
 */
public final class Storm {
  private static final int ROWS_PER_THREAD = 400;
  private static final int BATCH = 20;
  /** The limit of the wait for a region that still has files of its parents. */
  private static final long PATIENCE_MS = 120_000;

  private final Session session;
  private final Admin admin;
  private final Random random = new Random(7);
  private final AtomicLong errors = new AtomicLong();
  private final AtomicLong operations = new AtomicLong();
  private volatile boolean isOver;

  private Storm(Session session) {
    this.session = session;
    this.admin = session.admin;
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    try (Session session = new Session(conf, "storm", new Transcript(System.err))) {
      Storm storm = new Storm(session);
      long errors = storm.run(TableName.valueOf(arguments[0]), Integer.parseInt(arguments[1]),
          Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
      System.exit(errors == 0 ? 0 : 1);
    }
  }

  private long run(TableName others, int splits, int merges, int threads) throws Exception {
    session.dropAll();
    TableName own = session.name("own");
    session.table("own", "f").close();
    List<Thread> workers = new ArrayList<>();
    for (int thread = 0; thread < threads; thread++) {
      Worker worker = new Worker(own, thread);
      workers.add(new Thread(worker));
    }
    workers.forEach(Thread::start);
    session.await(others + " to be loaded", () -> hasRows(others));
    try {
      reshape(List.of(others, own), splits, merges);
    } catch (Exception broken) {
      error("the storm broke off", broken);
    }
    isOver = true;
    for (Thread worker : workers) {
      worker.join();
    }
    check(own, threads);
    System.out.println("operations=" + operations + " errors=" + errors);
    return errors.get();
  }

  /** Splits and merges both tables alternately, two splits per merge while both are left to do. */
  private void reshape(List<TableName> tables, int splits, int merges) throws Exception {
    for (int done = 0, split = 0, merged = 0; split < splits || merged < merges; done++) {
      TableName table = tables.get(done % tables.size());
      boolean canMerge = merged < merges && admin.getRegions(table).size() > 1;
      boolean isSplit = split < splits && (!canMerge || split <= 2 * merged + 1);
      if (!isSplit && !canMerge) {
        continue;
      }
      long start = System.currentTimeMillis();
      if (isSplit) {
        insist(() -> split(table));
        split++;
      } else {
        insist(() -> merge(table));
        merged++;
      }
      System.out.println((isSplit ? "split " + split : "merge " + merged) + " of " + table + " after "
          + (System.currentTimeMillis() - start) + " ms, regions=" + admin.getRegions(table).size());
    }
  }

  /** Retries while the server reports that the region cannot be split or merged yet. */
  private void insist(Transcript.Action action) throws Exception {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (true) {
      try {
        action.run();
        return;
      } catch (ExecutionException refused) {
        if (!(refused.getCause() instanceof DoNotRetryIOException) || System.currentTimeMillis() > end) {
          throw refused;
        }
        admin.runCatalogJanitor();
        Thread.sleep(200);
      }
    }
  }

  private void split(TableName table) throws Exception {
    List<RegionInfo> regions = admin.getRegions(table);
    RegionInfo region = regions.get(random.nextInt(regions.size()));
    admin.splitRegionAsync(region.getRegionName(), middle(region)).get(PATIENCE_MS, TimeUnit.MILLISECONDS);
  }

  /** A row within a region, as eight hexadecimal digits. */
  private static byte[] middle(RegionInfo region) {
    long start = number(region.getStartKey(), 0);
    long end = number(region.getEndKey(), 1L << 32);
    return b(String.format("%08x", start + (end - start) / 2));
  }

  private static long number(byte[] key, long none) {
    if (key.length == 0) {
      return none;
    }
    String digits = (Bytes.toString(key) + "00000000").substring(0, 8);
    return Long.parseLong(digits, 16);
  }

  private void merge(TableName table) throws Exception {
    List<RegionInfo> regions = admin.getRegions(table);
    int first = random.nextInt(regions.size() - 1);
    admin.mergeRegionsAsync(regions.get(first).getEncodedNameAsBytes(), regions.get(first + 1).getEncodedNameAsBytes(),
        false).get(PATIENCE_MS, TimeUnit.MILLISECONDS);
  }

  private void error(String what, Throwable thrown) {
    errors.incrementAndGet();
    System.out.println("ERROR " + what + (thrown == null ? "" : ": " + Show.exceptionWithMessage(thrown)));
  }

  /**
   * Whether a table is being loaded. Before that, its loader disables it to alter it, and it cannot
   * be split.
   */
  private boolean hasRows(TableName name) throws Exception {
    if (!admin.tableExists(name)) {
      return false;
    }
    try (Table table = session.connection.getTable(name)) {
      return !Rows.all(table, new Scan().setLimit(1)).isEmpty();
    } catch (TableNotEnabledException notYet) {
      return false;
    }
  }

  /** Checks that every row exists once, in order, and no other row. */
  private void check(TableName own, int threads) throws Exception {
    try (Table table = session.connection.getTable(own)) {
      int rows = Rows.all(table, new Scan().setCaching(500)).size();
      int reversed = Rows.all(table, new Scan().setCaching(500).setReversed(true)).size();
      if (rows != threads * ROWS_PER_THREAD || reversed != rows) {
        error("rows=" + rows + " reversed=" + reversed + " instead of " + threads * ROWS_PER_THREAD, null);
      }
    }
  }

  /** Writes and reads its own rows, spread over the whole table. */
  private final class Worker implements Runnable {
    private final TableName name;
    private final int number;
    private final Random random;
    private final long[] puts = new long[ROWS_PER_THREAD];
    private final long[] counts = new long[ROWS_PER_THREAD];
    private final int[] appended = new int[ROWS_PER_THREAD];

    Worker(TableName name, int number) {
      this.name = name;
      this.number = number;
      this.random = new Random(number);
    }

    @Override
    public void run() {
      try (Table table = session.connection.getTable(name)) {
        for (int row = 0; row < ROWS_PER_THREAD; row += BATCH) {
          putBatch(table, row);
        }
        while (!isOver) {
          step(table);
        }
        for (int row = 0; row < ROWS_PER_THREAD; row++) {
          verify(table, row);
        }
      } catch (Exception broken) {
        error("thread " + number, broken);
      }
    }

    private void step(Table table) throws Exception {
      int row = random.nextInt(ROWS_PER_THREAD);
      operations.incrementAndGet();
      switch (random.nextInt(6)) {
        case 0 -> putBatch(table, random.nextInt(ROWS_PER_THREAD / BATCH) * BATCH);
        case 1 -> {
          counts[row]++;
          table.incrementColumnValue(row(row), b("f"), b("count"), 1);
        }
        case 2 -> {
          appended[row]++;
          table.append(new Append(row(row)).addColumn(b("f"), b("text"), b("x")));
        }
        case 3 -> scan(table);
        default -> verify(table, row);
      }
    }

    private void putBatch(Table table, int first) throws Exception {
      List<Put> batch = new ArrayList<>();
      for (int row = first; row < first + BATCH; row++) {
        puts[row]++;
        batch.add(new Put(row(row)).addColumn(b("f"), b("put"), Bytes.toBytes(puts[row])));
      }
      table.put(batch);
    }

    private void verify(Table table, int row) throws Exception {
      Result result = table.get(new Get(row(row)));
      byte[] count = result.getValue(b("f"), b("count"));
      byte[] text = result.getValue(b("f"), b("text"));
      boolean isRight = Bytes.equals(result.getValue(b("f"), b("put")), Bytes.toBytes(puts[row]))
          && (count == null ? 0 : Bytes.toLong(count)) == counts[row] && (text == null ? 0 : text.length) == appended[row];
      if (!isRight) {
        error("row " + Bytes.toString(row(row)) + " holds " + Show.result(result) + " instead of " + puts[row] + ", "
            + counts[row] + ", " + appended[row], null);
      }
    }

    /** All rows that the table has from the start, in order. */
    private void scan(Table table) throws Exception {
      Scan scan = new Scan().setCaching(50 + random.nextInt(500)).setReversed(random.nextBoolean());
      byte[] last = null;
      Set<String> missing = new TreeSet<>();
      for (int row = 0; row < ROWS_PER_THREAD; row++) {
        missing.add(Bytes.toString(row(row)));
      }
      for (Result result : Rows.all(table, scan)) {
        int order = last == null ? 1 : Bytes.compareTo(result.getRow(), last) * (scan.isReversed() ? -1 : 1);
        if (order <= 0) {
          error("row " + Bytes.toString(result.getRow()) + " comes after " + Bytes.toString(last), null);
        }
        last = result.getRow();
        missing.remove(Bytes.toString(last));
      }
      if (!missing.isEmpty()) {
        error("a scan" + (scan.isReversed() ? ", reversed," : "") + " with " + scan.getCaching() + " rows a call found no "
            + missing + ", but " + Rows.all(table, new Scan()).size() + " rows are there", null);
      }
    }

    private byte[] row(int row) {
      // Fibonacci hashing spreads them over the whole range of keys.
      long spread = (row * 0x9E3779B9L + number * 0x1000193L) & 0xFFFFFFFFL;
      return b(String.format("%08x-%d-%d", spread, row, number));
    }
  }
}
