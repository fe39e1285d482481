package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Operations that read and write a row atomically: increment, append, check and mutate, several
 * mutations of a row.
 */
final class Atomics implements Suite {
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    out = session.out;
    table = session.table(TableDescriptorBuilder.newBuilder(session.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), "m");
    increments();
    appends();
    checks();
    conditions();
    rowMutations();
    cellTimeToLive();
    table.close();
  }

  private void increments() throws Exception {
    out.topic("increments");
    out.see("of nothing", () -> table.incrementColumnValue(b("i"), b("f"), b("n"), 5));
    out.see("again", () -> table.incrementColumnValue(b("i"), b("f"), b("n"), -7));
    out.see("by 0", () -> table.incrementColumnValue(b("i"), b("f"), b("n"), 0));
    goOn();
    out.see("several columns", () -> table.increment(new Increment(b("i")).addColumn(b("f"), b("n"), 10)
        .addColumn(b("f"), b("m"), 20).addColumn(b("g"), b("x"), 30)));
    out.see("without an answer", () -> table.increment(new Increment(b("i")).addColumn(b("f"), b("n"), 1)
        .setReturnResults(false)));
    out.see("the row", () -> table.get(get("i")).size());
    table.put(new Put(b("wrap")).addColumn(b("f"), b("n"), 1, Bytes.toBytes(Long.MAX_VALUE)));
    out.see("past the largest", () -> table.incrementColumnValue(b("wrap"), b("f"), b("n"), 1) == Long.MIN_VALUE);
    table.put(put("text", "f:n@1=text"));
    out.does("of what is no number", () -> table.incrementColumnValue(b("text"), b("f"), b("n"), 1));
    out.does("in a family that does not exist", () -> table.incrementColumnValue(b("i"), b("nosuch"), b("n"), 1));
    out.see("many", () -> {
      long last = 0;
      for (int at = 0; at < 200; at++) {
        last = table.incrementColumnValue(b("many"), b("f"), b("n"), 3);
      }
      return last;
    });
    out.see("with a time range", () -> table.increment(new Increment(b("i")).addColumn(b("f"), b("n"), 1)
        .setTimeRange(0, 10)).getValue(b("f"), b("n")));
  }

  /**
   * Ensures that the next cell has a later timestamp, not the same millisecond or one above the
   * previous cell.
   */
  private static void goOn() throws InterruptedException {
    Thread.sleep(2);
  }

  private void appends() throws Exception {
    out.topic("appends");
    out.see("to nothing", () -> table.append(new Append(b("a")).addColumn(b("f"), b("q"), b("one"))));
    goOn();
    out.see("again", () -> table.append(new Append(b("a")).addColumn(b("f"), b("q"), b("two"))));
    goOn();
    out.see("several columns", () -> table.append(new Append(b("a")).addColumn(b("f"), b("q"), b("three"))
        .addColumn(b("g"), b("r"), b("four"))));
    Thread.sleep(5);
    out.see("without an answer", () -> table.append(new Append(b("a")).addColumn(b("f"), b("q"), b("!"))
        .setReturnResults(false)));
    out.see("the row", () -> table.get(get("a")));
    out.does("in a family that does not exist", () -> table.append(new Append(b("a")).addColumn(b("nosuch"), b("q"), b("v"))));
  }

  private void checks() throws Exception {
    out.topic("check and mutate");
    table.put(put("c", "f:q@10=5", "f:empty@10="));
    for (CompareOperator operator : CompareOperator.values()) {
      if (operator == CompareOperator.NO_OP) {
        continue; // HBase answers with an error that clients retry for minutes.
      }
      for (String value : List.of("3", "5", "7")) {
        out.see(value + " " + operator + " cell", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
            .ifMatches(b("f"), b("q"), operator, b(value)).build(put("c", "g:hit@1=v"))).isSuccess());
      }
      out.see("a missing cell " + operator, () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
          .ifMatches(b("f"), b("nosuch"), operator, b("5")).build(put("c", "g:hit@1=v"))).isSuccess());
    }
    for (String qualifier : List.of("q", "empty", "nosuch")) {
      out.see("absent: " + qualifier, () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
          .ifNotExists(b("f"), b(qualifier)).build(put("c", "g:absent" + qualifier + "@1=v"))).isSuccess());
    }
    out.see("a delete", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c")).ifEquals(b("f"), b("q"), b("5"))
        .build(delete("c").addColumns(b("g"), b("hit")))).isSuccess());
    out.see("the row", () -> table.get(get("c")));
    out.does("a row of its own and another's", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
        .ifNotExists(b("f"), b("x")).build(put("d", "f:q@1=v"))));
    out.does("a family that does not exist", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
        .ifNotExists(b("nosuch"), b("x")).build(put("c", "f:q@1=v"))));
  }

  private void conditions() {
    out.topic("conditions of other kinds");
    out.see("a filter", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c")).ifMatches(
        new SingleColumnValueFilter(b("f"), b("q"), CompareOperator.EQUAL, new BinaryComparator(b("5"))))
        .build(put("c", "g:filter@1=v"))).isSuccess());
    out.see("a filter and a time", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("c")).ifMatches(
        new SingleColumnValueFilter(b("f"), b("q"), CompareOperator.EQUAL, new BinaryComparator(b("5"))))
        .timeRange(org.apache.hadoop.hbase.io.TimeRange.between(20, 30)).build(put("c", "g:timed@1=v"))).isSuccess());
    out.see("an increment", () -> shown(table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
        .ifEquals(b("f"), b("q"), b("5")).build(new Increment(b("c")).addColumn(b("f"), b("n"), 4)))));
    out.see("an append", () -> shown(table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
        .ifEquals(b("f"), b("q"), b("5")).build(new Append(b("c")).addColumn(b("f"), b("t"), b("more"))))));
    out.see("several mutations", () -> shown(table.checkAndMutate(CheckAndMutate.newBuilder(b("c"))
        .ifEquals(b("f"), b("q"), b("5")).build(RowMutations.of(List.of(put("c", "g:rm@1=v"),
            delete("c").addColumns(b("g"), b("filter"))))))));
    out.see("a list of checks", () -> table.checkAndMutate(List.of(
        CheckAndMutate.newBuilder(b("c")).ifEquals(b("f"), b("q"), b("5")).build(put("c", "g:l1@1=v")),
        CheckAndMutate.newBuilder(b("x")).ifEquals(b("f"), b("q"), b("5")).build(put("x", "g:l2@1=v"))))
        .stream().map(CheckAndMutateResult::isSuccess).toList());
    out.see("the row", () -> table.get(get("c").addFamily(b("g"))));
  }

  private static String shown(CheckAndMutateResult result) {
    return result.isSuccess() + " " + (result.getResult() == null ? "none" : Show.result(result.getResult()));
  }

  private void rowMutations() {
    out.topic("several mutations of a row");
    out.see("puts and deletes", () -> table.mutateRow(RowMutations.of(List.of(put("m", "f:a@1=v", "f:b@1=v"),
        delete("m").addColumns(b("f"), b("b"), 5), put("m", "g:c@2=v")))));
    out.see("the row", () -> table.get(get("m")));
    out.see("with an increment and an append", () -> table.mutateRow(RowMutations.of(List.of(
        new Increment(b("m")).addColumn(b("f"), b("n"), 3), new Append(b("m")).addColumn(b("f"), b("t"), b("x"))))));
    out.does("one of a bad family", () -> table.mutateRow(RowMutations.of(List.of(put("m2", "f:a@1=v"),
        put("m2", "nosuch:a@1=v")))));
    out.see("leaves nothing", () -> table.exists(get("m2")));
    out.does("of two rows", () -> RowMutations.of(List.of(put("m", "f:a@1=v"), put("n", "f:a@1=v"))));
  }

  private void cellTimeToLive() throws Exception {
    out.topic("time to live of cells");
    // Short, but longer than a busy disk delays a put.
    table.put(put("ttl", "f:q=brief").setTTL(3000));
    out.see("at once", () -> table.get(get("ttl")));
    table.put(put("ttl2", "f:q=long").setTTL(600_000));
    Thread.sleep(3600);
    out.see("later", () -> table.get(get("ttl")));
    out.see("one that lives longer", () -> table.get(get("ttl2")));
  }
}
