package compat.differ;

import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.util.Bytes;

/** Operations on a whole table that keep its rows. */
final class Maintenance {
  private static final long PATIENCE_S = 60;
  /** By then files that two regions shared have been archived. */
  private static final long SETTLED_MS = 300;

  private Maintenance() {
  }

  static Operation flush(Schema schema) {
    return new Operation("flush", () -> "", (table, admin) -> {
      admin.flush(schema.name());
      return "ok";
    });
  }

  /** Compacts some files of each store, as the server's policy selects. */
  static Operation compact(Schema schema) {
    return new Operation("compact", () -> "", (table, admin) -> {
      Compactions.minor(admin, schema.name());
      return "ok";
    });
  }

  /** Compacts all files of each store into one. */
  static Operation majorCompact(Schema schema) {
    return new Operation("majorCompact", () -> "", (table, admin) -> {
      Compactions.major(admin, schema.name());
      return "ok";
    });
  }

  /**
   * Splits the region of a row into two, each with its own files, as HBase creates them immediately
   * unless it is prevented.
   */
  static Operation split(Schema schema, byte[] row) {
    return new Operation("split", () -> Bytes.toStringBinary(row), (table, admin) -> {
      byte[] region = table.getRegionLocator().getRegionLocation(row, true).getRegion().getRegionName();
      admin.splitRegionAsync(region, row).get(PATIENCE_S, TimeUnit.SECONDS);
      Compactions.major(admin, schema.name());
      Thread.sleep(SETTLED_MS);
      return "ok";
    });
  }

  static Operation alter(Schema schema) {
    return new Operation("alter", () -> schema.toString(), schema, (table, admin) -> {
      admin.modifyTable(schema.descriptor());
      return "ok";
    });
  }
}
