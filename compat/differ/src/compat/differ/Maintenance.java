package compat.differ;

import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.util.Bytes;

/** What happens to a table as a whole, while its rows stay. */
final class Maintenance {
  private static final long PATIENCE_S = 60;
  /** Files that two regions shared are gone by then. */
  private static final long SETTLED_MS = 300;

  private Maintenance() {
  }

  static Operation flush(Schema schema) {
    return new Operation("flush", () -> "", (table, admin) -> {
      admin.flush(schema.name());
      return "ok";
    });
  }

  /** Some files of each store become one, as many as the server chooses. */
  static Operation compact(Schema schema) {
    return new Operation("compact", () -> "", (table, admin) -> {
      Compactions.minor(admin, schema.name());
      return "ok";
    });
  }

  /** All files of each store become one. */
  static Operation majorCompact(Schema schema) {
    return new Operation("majorCompact", () -> "", (table, admin) -> {
      Compactions.major(admin, schema.name());
      return "ok";
    });
  }

  /**
   * The region of a row becomes two, each with files of its own, as HBase makes them at once unless it is kept from it.
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
