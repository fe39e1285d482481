package compat.differ;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;

/** Random writes of every kind. */
final class Mutations {
  private final Dice dice;
  private final Domain domain;
  private final Filters filters;
  private final Queries queries;

  Mutations(Dice dice, Domain domain, Filters filters, Queries queries) {
    this.dice = dice;
    this.domain = domain;
    this.filters = filters;
    this.queries = queries;
  }

  Operation any() throws Exception {
    return switch (dice.weighted(40, 22, 8, 6, 10, 8, 8)) {
      case 0 -> put();
      case 1 -> delete();
      case 2 -> increment();
      case 3 -> append();
      case 4 -> check();
      case 5 -> rowMutations();
      default -> batch();
    };
  }

  private Operation put() throws Exception {
    Put put = put(domain.row());
    return new Operation("put", () -> text(put), (table, admin) -> {
      table.put(put);
      return "ok";
    });
  }

  private Operation delete() throws Exception {
    Delete delete = delete(domain.row());
    return new Operation("delete", () -> text(delete), (table, admin) -> {
      table.delete(delete);
      return "ok";
    });
  }

  private Operation increment() throws Exception {
    Increment increment = increment(domain.row());
    return new Operation("increment", () -> text(increment), (table, admin) -> table.increment(increment));
  }

  private Operation append() throws Exception {
    Append append = append(domain.row());
    return new Operation("append", () -> text(append), (table, admin) -> table.append(append));
  }

  private Operation rowMutations() throws Exception {
    RowMutations mutations = mutations(domain.row());
    return new Operation("mutateRow", () -> text(mutations), (table, admin) -> table.mutateRow(mutations));
  }

  /**
   * Rows in one request, with a response each.
   *
   * The server executes some of them together, with one timestamp, and chooses which ones. So
   * values that the server timestamps are written at most once per row.
   */
  private Operation batch() throws Exception {
    List<Row> actions = new ArrayList<>();
    TreeSet<byte[]> written = new TreeSet<>(Bytes.BYTES_COMPARATOR);
    for (int left = dice.number(2, 8); left > 0; left--) {
      byte[] row = domain.row();
      actions.add(switch (dice.weighted(40, 20, 10, 8, 14, 6)) {
        case 4 -> queries.get();
        case 0 -> written.add(row) ? put(row) : timed(row);
        case 1 -> written.add(row) ? delete(row) : timed(row);
        case 2 -> written.add(row) ? increment(row) : timed(row);
        case 3 -> written.add(row) ? append(row) : timed(row);
        default -> written.add(row) ? mutations(row) : timed(row);
      });
    }
    return new Operation("batch", () -> actions.stream().map(Mutations::text).toList(), (table, admin) -> {
      Object[] answers = new Object[actions.size()];
      try {
        table.batch(actions, answers);
      } catch (org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException partly) {
        // Failures are among the responses.
      }
      return answers;
    });
  }

  /** A put with explicit times. */
  private Put timed(byte[] row) {
    return new Put(row).addColumn(domain.family(), domain.writtenQualifier(), domain.someTime(), domain.value());
  }

  private Operation check() throws Exception {
    byte[] row = domain.row();
    CheckAndMutate.Builder builder = CheckAndMutate.newBuilder(row);
    byte[] family = domain.family();
    byte[] qualifier = domain.qualifier();
    switch (dice.weighted(20, 15, 30, 20)) {
      case 0 -> builder.ifNotExists(family, qualifier);
      case 1 -> builder.ifEquals(family, qualifier, domain.value());
      case 2 -> builder.ifMatches(family, qualifier, comparing(), domain.value());
      default -> builder.ifMatches(filters.any(2));
    }
    if (dice.chance(20)) {
      int from = dice.number(0, Domain.TIME_MOST);
      builder.timeRange(TimeRange.between(from, dice.number(from, Domain.TIME_MOST + 1)));
    }
    CheckAndMutate check = switch (dice.weighted(50, 20, 10, 8, 12)) {
      case 0 -> builder.build(put(row));
      case 1 -> builder.build(delete(row));
      case 2 -> builder.build(increment(row));
      case 3 -> builder.build(append(row));
      default -> builder.build(conditional(row));
    };
    return new Operation("checkAndMutate", () -> text(check), (table, admin) -> {
      CheckAndMutateResult result = table.checkAndMutate(check);
      List<Object> both = new ArrayList<>();
      both.add(result.isSuccess());
      both.add(result.getResult());
      return both;
    });
  }

  private CompareOperator comparing() {
    return dice.of(CompareOperator.LESS, CompareOperator.LESS_OR_EQUAL, CompareOperator.EQUAL, CompareOperator.NOT_EQUAL,
        CompareOperator.GREATER_OR_EQUAL, CompareOperator.GREATER);
  }

  private RowMutations mutations(byte[] row) throws Exception {
    return mutations(row, 50, 10, true);
  }

  /**
   * Mutations for a condition. HBase timestamps puts when it has checked, and increments, appends
   * and deletes when it writes, sometimes a millisecond later: of the same column either may be
   * newer, and a marker of the newest version hides the put or not. So a request never has both.
   */
  private RowMutations conditional(byte[] row) throws Exception {
    return dice.chance(70) ? mutations(row, 50, 0, false) : mutations(row, 0, 20, true);
  }

  private RowMutations mutations(byte[] row, int puts, int counts, boolean deletesNewest) throws Exception {
    List<Mutation> parts = new ArrayList<>();
    for (int left = dice.number(1, 4); left > 0; left--) {
      parts.add(switch (dice.weighted(puts, 30, counts, counts)) {
        case 0 -> put(row);
        case 1 -> delete(row, deletesNewest);
        case 2 -> increment(row);
        default -> append(row);
      });
    }
    return RowMutations.of(parts);
  }

  private static String text(CheckAndMutate check) {
    return Bytes.toStringBinary(check.getRow()) + " if "
        + (check.hasFilter() ? Filters.text(check.getFilter())
            : Bytes.toStringBinary(check.getFamily()) + ":" + Bytes.toStringBinary(check.getQualifier()) + " "
                + check.getCompareOp() + " " + Bytes.toStringBinary(check.getValue()))
        + " " + check.getTimeRange() + " then "
        + text(check.getAction());
  }

  private static String text(RowMutations mutations) {
    return mutations.getMutations().stream().map(Mutations::text).toList().toString();
  }

  /** A mutation as text; the client's own texts omit which markers a delete consists of. */
  private static String text(Mutation mutation) {
    StringBuilder text = new StringBuilder(mutation.getClass().getSimpleName() + " "
        + Bytes.toStringBinary(mutation.getRow()) + time(mutation.getTimestamp()));
    mutation.getFamilyCellMap().forEach((family, cells) -> {
      for (Cell cell : cells) {
        text.append(' ').append(Bytes.toString(family)).append(':')
            .append(Bytes.toStringBinary(CellUtil.cloneQualifier(cell))).append(time(cell.getTimestamp()))
            .append(cell.getType() == Cell.Type.Put ? "" : "!" + cell.getType())
            .append('=').append(Texts.bytes(CellUtil.cloneValue(cell)));
      }
    });
    return text + (mutation.getTTL() == Long.MAX_VALUE ? "" : " ttl " + mutation.getTTL())
        + (mutation.getDurability() == Durability.USE_DEFAULT ? "" : " " + mutation.getDurability());
  }

  private static String time(long time) {
    return time == HConstants.LATEST_TIMESTAMP ? "" : "@" + time;
  }

  private static String text(Row action) {
    return action instanceof RowMutations mutations ? text(mutations)
        : action instanceof Mutation mutation ? text(mutation) : action.toString();
  }

  private Put put(byte[] row) throws Exception {
    Put put = dice.chance(70) ? new Put(row) : new Put(row, domain.someTime());
    for (int left = dice.number(1, 4); left > 0; left--) {
      if (dice.chance(60)) {
        put.addColumn(domain.family(), domain.writtenQualifier(), domain.time(), domain.value());
      } else {
        put.addColumn(domain.family(), domain.writtenQualifier(), domain.value());
      }
    }
    if (dice.chance(5)) {
      put.setTTL(3_600_000);
    }
    durability(put);
    return put;
  }

  private Delete delete(byte[] row) throws Exception {
    return delete(row, true);
  }

  /**
   * Markers of all kinds; markers of the newest version, whatever its time, only if
   * `deletesNewest`.
   */
  private Delete delete(byte[] row, boolean deletesNewest) throws Exception {
    Delete delete = dice.chance(70) ? new Delete(row) : new Delete(row, domain.someTime());
    // A delete without columns deletes all families.
    for (int left = dice.number(domain.deletesFamilies() ? 0 : 1, 2); left > 0; left--) {
      byte[] family = domain.family();
      int ofFamilies = domain.deletesFamilies() ? 15 : 0;
      switch (dice.weighted(20, 20, 10, 10, ofFamilies, ofFamilies, ofFamilies)) {
        case 0 -> {
          byte[] qualifier = domain.deletedQualifier();
          delete = deletesNewest ? delete.addColumn(family, qualifier) : delete.addColumns(family, qualifier);
        }
        case 1 -> delete.addColumn(family, domain.deletedQualifier(), domain.someTime());
        case 2 -> delete.addColumns(family, domain.deletedQualifier());
        case 3 -> delete.addColumns(family, domain.deletedQualifier(), domain.someTime());
        case 4 -> delete.addFamily(family);
        case 5 -> delete.addFamily(family, domain.someTime());
        default -> delete.addFamilyVersion(family, domain.someTime());
      }
    }
    durability(delete);
    return delete;
  }

  private Increment increment(byte[] row) throws Exception {
    Increment increment = new Increment(row);
    for (int left = dice.number(1, 2); left > 0; left--) {
      increment.addColumn(domain.family(), domain.writtenQualifier(), dice.number(-2, 5));
    }
    if (dice.chance(15)) {
      increment.setReturnResults(false);
    }
    if (dice.chance(10)) {
      increment.setTimeRange(0, HConstants.LATEST_TIMESTAMP);
    }
    return increment;
  }

  private Append append(byte[] row) throws Exception {
    Append append = new Append(row);
    for (int left = dice.number(1, 2); left > 0; left--) {
      append.addColumn(domain.family(), domain.writtenQualifier(), Bytes.toBytes(dice.of("", "+", "more")));
    }
    if (dice.chance(15)) {
      append.setReturnResults(false);
    }
    return append;
  }

  private void durability(Mutation mutation) {
    if (dice.chance(10)) {
      mutation.setDurability(dice.of(Durability.values()));
    }
  }
}
