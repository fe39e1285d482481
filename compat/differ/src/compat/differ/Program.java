package compat.differ;

import java.util.ArrayList;
import java.util.List;

/** The operations of a seed over one table, in sequence. */
final class Program {
  private final Dice dice;
  private final Domain domain;
  private final Mutations mutations;
  private final Queries queries;
  private Schema schema;

  private Program(long seed, String prefix, Schema schema) {
    dice = new Dice(seed);
    this.schema = schema;
    domain = new Domain(dice, prefix, schema);
    Filters filters = new Filters(dice, domain);
    queries = new Queries(dice, domain, filters);
    mutations = new Mutations(dice, domain, filters, queries);
  }

  /** The operations of a seed; only the prefix of the rows can vary. */
  static List<Operation> operations(long seed, String prefix, Schema schema, int count) throws Exception {
    Program program = new Program(seed, prefix, schema);
    List<Operation> operations = new ArrayList<>();
    for (int left = count; left > 0; left--) {
      operations.add(program.next());
    }
    return operations;
  }

  private Operation next() throws Exception {
    return switch (dice.weighted(505, 450, 30, 15)) {
      case 0 -> mutations.any();
      case 1 -> queries.any();
      case 2 -> maintenance();
      default -> queries.everything();
    };
  }

  private Operation maintenance() {
    return switch (dice.weighted(60, 17, 13, schema.hasOneBlock() ? 10 : 0, 6)) {
      case 0 -> Maintenance.flush(schema);
      case 1 -> Maintenance.majorCompact(schema);
      case 2 -> Maintenance.compact(schema);
      case 3 -> Maintenance.split(schema, domain.row());
      default -> {
        schema = schema.altered(dice);
        yield Maintenance.alter(schema);
      }
    };
  }
}
