package compat.cluster;

import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Compares a table with the record of {@link Write}.
 *
 * <pre>
 *   java compat.cluster.Verify TABLE RECORD
 * </pre>
 *
 * Prints the rows that are wrong, then `lost=N torn=N strange=N doubled=N`. A row
 * is lost if it is missing or older than its last acknowledged value, strange if nothing wrote its
 * value. A counter is lost if it is less than its acknowledged increments, and doubled if it is
 * more than all that were tried.
 */
public final class Verify {
  private static final int SHOWN_MAX = 20;

  private final Map<String, long[]> rows = new HashMap<>();
  private final Map<String, long[]> counters = new HashMap<>();
  private long lost;
  private long torn;
  private long strange;
  private long doubled;
  private int shown;

  private Verify() {
  }

  public static void main(String[] arguments) throws Exception {
    Verify verify = new Verify();
    verify.read(Path.of(arguments[1]));
    try (Connection connection = ConnectionFactory.createConnection(Rows.configuration());
        Table table = connection.getTable(TableName.valueOf(arguments[0]))) {
      verify.scan(table);
    }
    verify.finish();
    System.exit(0);
  }

  /** For each key the acknowledged number, and the greatest that may be applied. */
  private void read(Path record) throws Exception {
    try (BufferedReader lines = Files.newBufferedReader(record)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ");
        long number = Long.parseLong(words[2]);
        boolean isDone = !words[0].endsWith("?");
        if (words[0].startsWith("add")) {
          long[] counts = counters.computeIfAbsent(words[1], key -> new long[2]);
          counts[0] += isDone ? number : 0;
          counts[1] += number;
        } else {
          long[] values = rows.computeIfAbsent(words[1], key -> new long[] {Rows.NONE, Rows.NONE});
          values[0] = isDone ? Math.max(values[0], number) : values[0];
          values[1] = Math.max(values[1], number);
        }
      }
    }
  }

  private void scan(Table table) throws Exception {
    try (ResultScanner scanner = table.getScanner(new Scan().setCaching(1000))) {
      for (Result row = scanner.next(); row != null; row = scanner.next()) {
        String key = Bytes.toString(row.getRow());
        long[] values = rows.remove(key);
        long[] counts = counters.remove(key);
        if (values != null) {
          checkRow(key, Rows.value(row), values);
        } else if (counts != null) {
          checkCounter(key, Rows.counter(row), counts);
        } else {
          strange++;
          show("strange: " + key);
        }
      }
    }
  }

  private void checkRow(String key, long found, long[] values) {
    if (found == Rows.TORN) {
      torn++;
      show("torn: " + key);
    } else if (found < values[0]) {
      lost++;
      show("lost: " + key + " holds " + found + ", acknowledged was " + values[0]);
    } else if (found > values[1]) {
      strange++;
      show("strange: " + key + " holds " + found + ", tried was " + values[1]);
    }
  }

  private void checkCounter(String key, long found, long[] counts) {
    if (found < counts[0]) {
      lost++;
      show("lost: counter " + key + " is " + found + " after " + counts[0] + " acknowledged increments");
    } else if (found > counts[1]) {
      doubled++;
      show("doubled: counter " + key + " is " + found + " after " + counts[1] + " increments");
    }
  }

  private void finish() {
    rows.forEach((key, values) -> checkRow(key, Rows.NONE, values));
    counters.forEach((key, counts) -> checkCounter(key, 0, counts));
    System.out.println("lost=" + lost + " torn=" + torn + " strange=" + strange + " doubled=" + doubled);
  }

  private void show(String what) {
    if (shown++ < SHOWN_MAX) {
      System.out.println(what);
    }
  }
}
