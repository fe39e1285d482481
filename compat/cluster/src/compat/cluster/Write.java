package compat.cluster;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Writes rows until its standard input ends, and records every acknowledged write.
 *
 * <pre>
 *   java compat.cluster.Write TABLE REGIONS THREADS OPERATIONS_PER_SECOND RECORD
 * </pre>
 *
 * Each thread owns its rows and writes them one call at a time: single puts, batches over all
 * regions, increments. All columns of a row get the same number, which grows. It also reads rows
 * back: a read may not return less than was acknowledged before it began. Lines of RECORD:
 *
 * <pre>
 *   put KEY VALUE        acknowledged
 *   put? KEY VALUE       failed: it may be applied
 *   add KEY 1            an acknowledged increment of a counter
 *   add? KEY 1           an increment that failed, and may be applied
 * </pre>
 *
 * A line is written before the write is counted as acknowledged. At the end it prints
 * `acknowledged=N failed=N reads=N stale=N torn=N longest_ms=N`.
 */
public final class Write {
  private static final int ROWS_PER_THREAD = 20_000;
  private static final int COUNTERS_PER_THREAD = 50;
  private static final int BATCH = 20;

  private final Connection connection;
  private final TableName name;
  private final BufferedWriter record;
  private final long pauseNanos;
  private final AtomicLong acknowledged = new AtomicLong();
  private final AtomicLong failed = new AtomicLong();
  private final AtomicLong reads = new AtomicLong();
  private final AtomicLong stale = new AtomicLong();
  private final AtomicLong torn = new AtomicLong();
  private final AtomicLong longestMs = new AtomicLong();
  private volatile boolean isOver;

  private Write(Connection connection, TableName name, BufferedWriter record, long pauseNanos) {
    this.connection = connection;
    this.name = name;
    this.record = record;
    this.pauseNanos = pauseNanos;
  }

  public static void main(String[] arguments) throws Exception {
    TableName name = TableName.valueOf(arguments[0]);
    int threads = Integer.parseInt(arguments[2]);
    long pauseNanos = 1_000_000_000L * threads / Integer.parseInt(arguments[3]);
    try (Connection connection = ConnectionFactory.createConnection(Rows.configuration());
        BufferedWriter record = Files.newBufferedWriter(Path.of(arguments[4]))) {
      Rows.createTable(connection, name, Integer.parseInt(arguments[1]));
      Write write = new Write(connection, name, record, pauseNanos);
      List<Thread> workers = new ArrayList<>();
      for (int thread = 0; thread < threads; thread++) {
        Worker worker = write.new Worker(thread);
        workers.add(new Thread(worker));
      }
      workers.forEach(Thread::start);
      System.out.println("writing");
      while (System.in.read() >= 0) {
        // Only its end counts.
      }
      write.isOver = true;
      for (Thread worker : workers) {
        worker.join();
      }
      System.out.println("acknowledged=" + write.acknowledged + " failed=" + write.failed + " reads=" + write.reads
          + " stale=" + write.stale + " torn=" + write.torn + " longest_ms=" + write.longestMs);
    }
    System.exit(0);
  }

  /** Records outcomes of a call; acknowledged ones count from then on. */
  private synchronized void note(List<String> lines, int acknowledgedNow) throws IOException {
    for (String line : lines) {
      record.write(line);
      record.newLine();
    }
    record.flush();
    acknowledged.addAndGet(acknowledgedNow);
    failed.addAndGet(lines.size() - acknowledgedNow);
  }

  /** A row's numbers: the last acknowledged one, and the last that may be applied. */
  private static final class State {
    long acknowledged = Rows.NONE;
    long tried = Rows.NONE;
  }

  private final class Worker implements Runnable {
    private final int number;
    private final Random random;
    private final State[] rows = new State[ROWS_PER_THREAD];
    private long next;

    Worker(int number) {
      this.number = number;
      this.random = new Random(number);
    }

    @Override
    public void run() {
      try (Table table = connection.getTable(name)) {
        while (!isOver) {
          long begin = System.nanoTime();
          step(table);
          long took = System.nanoTime() - begin;
          longestMs.accumulateAndGet(took / 1_000_000, Math::max);
          if (took < pauseNanos) {
            Thread.sleep((pauseNanos - took) / 1_000_000, (int) ((pauseNanos - took) % 1_000_000));
          }
        }
      } catch (Exception broken) {
        System.out.println("ERROR thread " + number + ": " + broken);
        broken.printStackTrace();
      }
    }

    private void step(Table table) throws Exception {
      switch (random.nextInt(10)) {
        case 0 -> increment(table);
        case 1 -> batch(table);
        case 2, 3 -> read(table);
        default -> put(table);
      }
    }

    private int row() {
      int row = random.nextInt(ROWS_PER_THREAD);
      if (rows[row] == null) {
        rows[row] = new State();
      }
      return row;
    }

    private String key(int row) {
      return Rows.key(number, row);
    }

    private void put(Table table) throws IOException {
      int row = row();
      rows[row].tried = ++next;
      try {
        table.put(Rows.put(key(row), next));
        note(List.of("put " + key(row) + " " + next), 1);
        rows[row].acknowledged = next;
      } catch (IOException unknown) {
        complain(unknown);
        note(List.of("put? " + key(row) + " " + next), 0);
      }
    }

    private void batch(Table table) throws Exception {
      List<Integer> chosen = random.ints(BATCH, 0, ROWS_PER_THREAD).distinct().boxed().toList();
      List<Row> puts = new ArrayList<>();
      long value = ++next;
      for (int row : chosen) {
        rows[row] = rows[row] == null ? new State() : rows[row];
        rows[row].tried = value;
        puts.add(Rows.put(key(row), value));
      }
      Object[] outcomes = new Object[puts.size()];
      try {
        table.batch(puts, outcomes);
      } catch (IOException some) {
        complain(some);
      }
      List<String> lines = new ArrayList<>();
      int done = 0;
      for (int at = 0; at < outcomes.length; at++) {
        boolean isDone = outcomes[at] instanceof Result;
        lines.add((isDone ? "put " : "put? ") + key(chosen.get(at)) + " " + value);
        done += isDone ? 1 : 0;
      }
      note(lines, done);
      for (int at = 0; at < outcomes.length; at++) {
        if (outcomes[at] instanceof Result) {
          rows[chosen.get(at)].acknowledged = value;
        }
      }
    }

    private void increment(Table table) throws IOException {
      String key = Rows.key(number, ROWS_PER_THREAD + random.nextInt(COUNTERS_PER_THREAD));
      try {
        table.incrementColumnValue(Bytes.toBytes(key), Rows.COUNTERS, Rows.COUNTER, 1);
        note(List.of("add " + key + " 1"), 1);
      } catch (IOException unknown) {
        complain(unknown);
        note(List.of("add? " + key + " 1"), 0);
      }
    }

    private void read(Table table) {
      int row = row();
      try {
        long found = Rows.value(table.get(new Get(Bytes.toBytes(key(row)))));
        reads.incrementAndGet();
        if (found == Rows.TORN) {
          torn.incrementAndGet();
          System.out.println("TORN " + key(row));
        } else if (found < rows[row].acknowledged || found > rows[row].tried) {
          stale.incrementAndGet();
          System.out.println("STALE " + key(row) + " holds " + found + ", acknowledged was "
              + rows[row].acknowledged + ", tried " + rows[row].tried);
        }
      } catch (IOException failed) {
        complain(failed);
      }
    }

    private void complain(Exception failed) {
      String text = failed.toString();
      String start = text.substring(0, Math.min(300, text.length())).replace('\n', ' ');
      System.out.println("FAILED thread " + number + ": " + start);
    }
  }
}
