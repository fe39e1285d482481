package compat.cluster;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** The rows of the tests: their tables, keys and values. */
final class Rows {
  static final byte[][] FAMILIES = {Bytes.toBytes("a"), Bytes.toBytes("b")};
  /** The family of counters, which are incremented. */
  static final byte[] COUNTERS = Bytes.toBytes("c");
  static final byte[] COUNTER = Bytes.toBytes("n");
  /** Columns of a row per family. All hold the same value, so a torn row shows. */
  private static final int COLUMNS = 3;
  /** Makes values as long as those of PerformanceEvaluation. */
  private static final String PADDING = "-".repeat(80);
  static final int TORN = -2;
  static final int NONE = -1;

  private Rows() {
  }

  /** The configuration of the class path, with further settings `key=value`. */
  static Configuration configuration(String... settings) {
    Configuration conf = HBaseConfiguration.create();
    for (String setting : settings) {
      String[] parts = setting.split("=", 2);
      conf.set(parts[0], parts[1]);
    }
    return conf;
  }

  /** Creates a table of that many regions of equal key ranges, unless it exists. */
  static void createTable(Connection connection, TableName name, int regions) throws IOException {
    try (Admin admin = connection.getAdmin()) {
      if (admin.tableExists(name)) {
        return;
      }
      TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
      for (byte[] family : new byte[][] {FAMILIES[0], FAMILIES[1], COUNTERS}) {
        table.setColumnFamily(ColumnFamilyDescriptorBuilder.of(family));
      }
      byte[][] splits = new byte[regions - 1][];
      for (int at = 1; at < regions; at++) {
        splits[at - 1] = Bytes.toBytes(String.format("%08x", (1L << 32) * at / regions));
      }
      admin.createTable(table.build(), splits.length == 0 ? null : splits);
    }
  }

  /** A row key; keys of consecutive numbers are spread over the whole range. */
  static String key(int thread, int number) {
    long spread = (number * 0x9E3779B9L + thread * 0x1000193L) & 0xFFFFFFFFL;
    return String.format("%08x-%d-%d", spread, thread, number);
  }

  /** A put of a whole row. The value is its time too, so a late repetition does not hide later values. */
  static Put put(String key, long value) {
    Put put = new Put(Bytes.toBytes(key));
    byte[] text = Bytes.toBytes(value + PADDING);
    for (byte[] family : FAMILIES) {
      for (int column = 0; column < COLUMNS; column++) {
        put.addColumn(family, Bytes.toBytes(column), value, text);
      }
    }
    return put;
  }

  /** The value of a row: NONE if there is no row, TORN if its columns differ. */
  static long value(Result row) {
    long value = NONE;
    int found = 0;
    for (byte[] family : FAMILIES) {
      for (int column = 0; column < COLUMNS; column++) {
        byte[] text = row.getValue(family, Bytes.toBytes(column));
        if (text == null) {
          continue;
        }
        String digits = Bytes.toString(text);
        long one = Long.parseLong(digits.substring(0, digits.length() - PADDING.length()));
        if (found > 0 && one != value) {
          return TORN;
        }
        value = one;
        found++;
      }
    }
    return found == 0 || found == FAMILIES.length * COLUMNS ? value : TORN;
  }

  static long counter(Result row) {
    byte[] count = row.getValue(COUNTERS, COUNTER);
    return count == null ? 0 : Bytes.toLong(count);
  }
}
