package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BigDecimalComparator;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryComponentComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.BitComparator;
import org.apache.hadoop.hbase.filter.ColumnCountGetFilter;
import org.apache.hadoop.hbase.filter.ColumnPaginationFilter;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.ColumnValueFilter;
import org.apache.hadoop.hbase.filter.DependentColumnFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.InclusiveStopFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.LongComparator;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.MultipleColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.NullComparator;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RandomRowFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueExcludeFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.SkipFilter;
import org.apache.hadoop.hbase.filter.SubstringComparator;
import org.apache.hadoop.hbase.filter.TimestampsFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.filter.WhileMatchFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;

/**
 * Every filter and comparator of the client, alone and in lists, forward and reversed, in scans and
 * gets.
 */
final class Filters implements Suite {
  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(TableDescriptorBuilder.newBuilder(s.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), "r3", "r6");
    for (int row = 0; row < 9; row++) {
      table.put(put("r" + row, "f:a@10=old" + row, "f:a@20=v" + row % 3, "f:b@15=" + row, "f:ab@30=x", "g:c@10=c" + row % 2));
      if (row % 4 == 0) {
        table.put(put("r" + row, "f:only@40=there"));
      }
    }
    rows();
    columns();
    values();
    counting();
    lists();
    comparators();
    withOthers();
    table.close();
  }

  private void rows() throws Exception {
    out.topic("by row");
    see("prefix", new PrefixFilter(b("r2")));
    see("page of 2", new PageFilter(2));
    see("inclusive stop", new InclusiveStopFilter(b("r4")));
    see("row equal", new RowFilter(CompareOperator.EQUAL, new BinaryComparator(b("r5"))));
    see("row greater", new RowFilter(CompareOperator.GREATER, new BinaryComparator(b("r6"))));
    see("row not", new RowFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(b("r1"))));
    see("row by expression", new RowFilter(CompareOperator.EQUAL, new RegexStringComparator("r[13]$")));
    see("fuzzy", new FuzzyRowFilter(new ArrayList<>(List.of(new Pair<>(b("?5"), new byte[] {1, 0})))));
    see("ranges", new MultiRowRangeFilter(new ArrayList<>(List.of(
        new MultiRowRangeFilter.RowRange("r1", true, "r3", false),
        new MultiRowRangeFilter.RowRange("r6", false, "r7", true)))));
    see("random, always", new RandomRowFilter(1.5f));
    see("random, never", new RandomRowFilter(-1f));
  }

  private void columns() {
    out.topic("by column");
    see("family", new FamilyFilter(CompareOperator.EQUAL, new BinaryComparator(b("g"))));
    see("qualifier", new QualifierFilter(CompareOperator.LESS_OR_EQUAL, new BinaryComparator(b("ab"))));
    see("column prefix", new ColumnPrefixFilter(b("a")));
    see("column prefixes", new MultipleColumnPrefixFilter(new byte[][] {b("b"), b("on")}));
    see("column range", new ColumnRangeFilter(b("a"), false, b("b"), true));
    see("timestamps", new TimestampsFilter(List.of(10L, 40L)));
    see("dependent", new DependentColumnFilter(b("f"), b("a")));
    see("dependent, dropping, by value", new DependentColumnFilter(b("f"), b("a"), true, CompareOperator.EQUAL,
        new BinaryComparator(b("v1"))));
    see("key only", new KeyOnlyFilter());
    see("key only with lengths", new KeyOnlyFilter(true));
    see("first key only", new FirstKeyOnlyFilter());
  }

  private void values() {
    out.topic("by value");
    see("value", new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("v1"))));
    see("value not", new ValueFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(b("x"))));
    see("column value", new ColumnValueFilter(b("f"), b("a"), CompareOperator.EQUAL, b("v2")));
    see("single column value", new SingleColumnValueFilter(b("f"), b("a"), CompareOperator.EQUAL, b("v1")));
    SingleColumnValueFilter missing = new SingleColumnValueFilter(b("f"), b("only"), CompareOperator.EQUAL, b("there"));
    see("single column value, missing passes", missing);
    SingleColumnValueFilter strict = new SingleColumnValueFilter(b("f"), b("only"), CompareOperator.EQUAL, b("there"));
    strict.setFilterIfMissing(true);
    see("single column value, missing fails", strict);
    SingleColumnValueFilter anyVersion = new SingleColumnValueFilter(b("f"), b("a"), CompareOperator.EQUAL, b("old4"));
    anyVersion.setLatestVersionOnly(false);
    see("single column value, any version", anyVersion);
    see("and without the column", new SingleColumnValueExcludeFilter(b("f"), b("a"), CompareOperator.EQUAL, b("v1")));
    see("skip", new SkipFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(b("v1")))));
    see("while", new WhileMatchFilter(new ValueFilter(CompareOperator.NOT_EQUAL, new BinaryComparator(b("4")))));
  }

  private void counting() {
    out.topic("by count");
    see("columns", new ColumnCountGetFilter(2));
    see("columns by page", new ColumnPaginationFilter(2, 1));
    see("columns by page from a column", new ColumnPaginationFilter(1, b("b")));
  }

  private void lists() {
    Filter prefix = new ColumnPrefixFilter(b("a"));
    Filter value = new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("v1")));
    Filter page = new PageFilter(2);
    out.topic("lists");
    see("all", new FilterList(FilterList.Operator.MUST_PASS_ALL, prefix, value));
    see("one", new FilterList(FilterList.Operator.MUST_PASS_ONE, prefix, value));
    see("all with a page", new FilterList(FilterList.Operator.MUST_PASS_ALL, value, page));
    see("one with a page", new FilterList(FilterList.Operator.MUST_PASS_ONE, value, page));
    see("in each other", new FilterList(FilterList.Operator.MUST_PASS_ONE, new FilterList(prefix, value),
        new RowFilter(CompareOperator.EQUAL, new BinaryComparator(b("r8")))));
    see("empty", new FilterList());
  }

  private void comparators() throws Exception {
    out.topic("comparators");
    see("prefix", new ValueFilter(CompareOperator.EQUAL, new BinaryPrefixComparator(b("c"))));
    see("substring", new ValueFilter(CompareOperator.EQUAL, new SubstringComparator("HER")));
    see("expression", new ValueFilter(CompareOperator.EQUAL, new RegexStringComparator("^v[02]$")));
    see("null", new ValueFilter(CompareOperator.EQUAL, new NullComparator()));
    see("bits", new ValueFilter(CompareOperator.EQUAL, new BitComparator(b("c1"), BitComparator.BitwiseOp.XOR)));
    table.put(new org.apache.hadoop.hbase.client.Put(b("r9")).addColumn(b("f"), b("long"), 1, Bytes.toBytes(-5L)));
    see("long", new SingleColumnValueFilter(b("f"), b("long"), CompareOperator.LESS, new LongComparator(3)));
    for (String value : List.of("-1.5", "12345678901234567890.25", "2")) {
      table.put(new org.apache.hadoop.hbase.client.Put(b("r8")).addColumn(b("f"), b("decimal" + value), 1,
          Bytes.toBytes(new BigDecimal(value))));
    }
    FilterList decimals = new FilterList(new PrefixFilter(b("r8")), new QualifierFilter(CompareOperator.EQUAL,
        new BinaryPrefixComparator(b("decimal"))), new ValueFilter(CompareOperator.GREATER_OR_EQUAL,
        new BigDecimalComparator(new BigDecimal("2.000"))));
    see("decimal", decimals);
    see("component", new RowFilter(CompareOperator.GREATER, new BinaryComponentComparator(b("2"), 1)));
    see("component of several bytes", new RowFilter(CompareOperator.EQUAL, new BinaryComponentComparator(b("r3"), 0)));
  }

  private void withOthers() {
    out.topic("with other settings");
    Filter value = new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(b("v1")));
    out.see("all versions", () -> Rows.all(table, new Scan().setFilter(value).readAllVersions()));
    out.see("caching 1", () -> Rows.all(table, new Scan().setFilter(value).setCaching(1)));
    out.see("limit", () -> Rows.all(table, new Scan().setFilter(value).setLimit(2)));
    out.see("batch", () -> Rows.all(table, new Scan().setFilter(new ColumnPrefixFilter(b("a"))).setBatch(1).setLimit(3)));
    out.see("batch and a filter over rows", () -> Rows.all(table, new Scan().setFilter(new PageFilter(1)).setBatch(1)));
    out.see("get", () -> table.get(get("r1").setFilter(value)));
    out.see("get, nothing passes", () -> table.get(get("r2").setFilter(value)));
  }

  private void see(String what, Filter filter) {
    out.see(what, () -> Rows.all(table, new Scan().setFilter(filter)));
    out.see(what + ", reversed", () -> Rows.all(table, new Scan().setFilter(filter).setReversed(true)));
  }
}
