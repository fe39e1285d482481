package compat.differ;

/** What happens to a table as a whole, while its rows stay. */
final class Maintenance {
  private Maintenance() {
  }

  static Operation flush(Schema schema) {
    return new Operation("flush", "", (table, admin) -> {
      admin.flush(schema.name());
      return "ok";
    });
  }

  static Operation majorCompact(Schema schema) {
    return new Operation("majorCompact", "", (table, admin) -> {
      Side.majorCompact(admin, schema.name());
      return "ok";
    });
  }

  static Operation alter(Schema schema) {
    return new Operation("alter", schema.toString(), schema, (table, admin) -> {
      admin.modifyTable(schema.descriptor());
      return "ok";
    });
  }
}
