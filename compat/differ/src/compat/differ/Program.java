package compat.differ;

import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;

/** A seed's operations over one table, one after the other. */
final class Program {
  private final Dice dice;
  private final Schema schema;
  private final Mutations mutations;
  private final Queries queries;

  Program(long seed, Schema schema) {
    dice = new Dice(seed);
    this.schema = schema;
    Domain domain = new Domain(dice, String.format("%06d-", seed), schema);
    Filters filters = new Filters(dice, domain);
    queries = new Queries(dice, domain, filters);
    mutations = new Mutations(dice, domain, filters, queries);
  }

  Operation next() throws Exception {
    return switch (dice.weighted(50, 45, 4, 1)) {
      case 0 -> mutations.any();
      case 1 -> queries.any();
      case 2 -> maintenance();
      default -> queries.everything();
    };
  }

  private Operation maintenance() {
    return switch (dice.weighted(65, 28, 7)) {
      case 0 -> new Operation("flush", "", (table, admin) -> {
        admin.flush(schema.name());
        return "ok";
      });
      case 1 -> new Operation("majorCompact", "", (table, admin) -> {
        Side.majorCompact(admin, schema.name());
        return "ok";
      });
      default -> {
        ColumnFamilyDescriptor family = schema.alter(dice);
        yield new Operation("alter", family.toString(), (table, admin) -> {
          admin.modifyColumnFamily(schema.name(), family);
          return "ok";
        });
      }
    };
  }
}
