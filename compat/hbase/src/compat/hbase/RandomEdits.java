package compat.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Random edits of every kind, to tables that two clusters must have with equal cells. */
public final class RandomEdits {
  /** The families of the tables. */
  public static final List<String> FAMILIES = List.of("f", "g");
  /** A time to live that no test exceeds. It is in tags of the cells. */
  private static final long TTL_MS = 1_000_000_000L;

  private final Random random;
  private final int rowsPerDigit;
  private final boolean keepsAll;

  /**
   * The row keys are `r`, a digit, and a number below `rowsPerDigit`. With `keepsAll`, the tables
   * keep all versions and delete markers. Otherwise, which cells exist must not depend on
   * compactions: there are no explicit timestamps, no deletes of single versions, and no puts and
   * deletes in one call.
   */
  public RandomEdits(Random random, int rowsPerDigit, boolean keepsAll) {
    this.random = random;
    this.rowsPerDigit = rowsPerDigit;
    this.keepsAll = keepsAll;
  }

  /** Sends one edit or one batch. */
  public void apply(Table table) throws IOException, InterruptedException {
    byte[] row = row();
    switch (random.nextInt(8)) {
      case 0 -> table.delete(delete(row));
      case 1 -> table.increment(new Increment(row).addColumn(family(), Bytes.toBytes("n"), 1));
      case 2 -> table.append(new Append(row).addColumn(family(), Bytes.toBytes("s"), Bytes.toBytes("x")));
      case 3 -> {
        if (keepsAll) {
          table.mutateRow(RowMutations.of(List.of(put(row), delete(row))));
        }
      }
      case 4 -> {
        List<Row> batch = new ArrayList<>();
        for (int at = 0; at < 20; at++) {
          batch.add(keepsAll && random.nextInt(4) == 0 ? delete(row()) : put());
        }
        table.batch(batch, new Object[batch.size()]);
      }
      default -> table.put(put(row));
    }
  }

  /** A put of both families to a random row. */
  public Put put() {
    return put(row());
  }

  private Put put(byte[] row) {
    Put put = new Put(row);
    for (String family : FAMILIES) {
      byte[] value = new byte[random.nextInt(30)];
      random.nextBytes(value);
      if (keepsAll && random.nextBoolean()) {
        // Few timestamps, so that later puts replace earlier ones with the same timestamp.
        put.addColumn(Bytes.toBytes(family), qualifier(), timestamp(), value);
      } else {
        put.addColumn(Bytes.toBytes(family), qualifier(), value);
      }
    }
    if (random.nextInt(10) == 0) {
      put.setTTL(TTL_MS);
    }
    return put;
  }

  private Delete delete(byte[] row) {
    Delete delete = new Delete(row);
    if (!keepsAll) {
      return random.nextBoolean() ? delete.addColumns(family(), qualifier()) : delete.addFamily(family());
    }
    return switch (random.nextInt(5)) {
      case 0 -> delete.addColumn(family(), qualifier(), timestamp());
      case 1 -> delete.addColumns(family(), qualifier(), timestamp());
      case 2 -> delete.addFamily(family(), timestamp());
      case 3 -> delete.addFamilyVersion(family(), timestamp());
      default -> delete.addColumns(family(), qualifier());
    };
  }

  private byte[] row() {
    return Bytes.toBytes("r" + random.nextInt(10) + random.nextInt(rowsPerDigit));
  }

  private byte[] family() {
    return Bytes.toBytes(FAMILIES.get(random.nextInt(FAMILIES.size())));
  }

  private byte[] qualifier() {
    return Bytes.toBytes("q" + random.nextInt(4));
  }

  private long timestamp() {
    return 1 + random.nextInt(100);
  }
}
