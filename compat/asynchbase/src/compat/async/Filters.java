package compat.async;

import static compat.async.Table.b;
import static compat.async.Table.bytes;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.hbase.async.BinaryComparator;
import org.hbase.async.BinaryPrefixComparator;
import org.hbase.async.BitComparator;
import org.hbase.async.ColumnPaginationFilter;
import org.hbase.async.ColumnPrefixFilter;
import org.hbase.async.ColumnRangeFilter;
import org.hbase.async.CompareFilter.CompareOp;
import org.hbase.async.DependentColumnFilter;
import org.hbase.async.FamilyFilter;
import org.hbase.async.FilterList;
import org.hbase.async.FirstKeyOnlyFilter;
import org.hbase.async.FuzzyRowFilter;
import org.hbase.async.KeyOnlyFilter;
import org.hbase.async.KeyRegexpFilter;
import org.hbase.async.MultipleColumnPrefixFilter;
import org.hbase.async.QualifierFilter;
import org.hbase.async.RegexStringComparator;
import org.hbase.async.RowFilter;
import org.hbase.async.ScanFilter;
import org.hbase.async.SubstringComparator;
import org.hbase.async.TimestampsFilter;
import org.hbase.async.ValueFilter;

/** Every filter and comparator of the library. */
final class Filters implements Suite {
  @Override
  public void run(Table t) throws Exception {
    t.fill();
    t.topic("filters");
    for (Map.Entry<String, ScanFilter> filter : filters().entrySet()) {
      t.seeScan(filter.getKey(), scanner -> {
        scanner.setFilter(filter.getValue());
        scanner.setMaxVersions(2);
      });
    }
    t.seeScan("the key by a regex", scanner -> scanner.setKeyRegexp("r[24]5"));
    t.topic("filters of a Get");
    for (Map.Entry<String, ScanFilter> filter : filters().entrySet()) {
      t.seeGet(filter.getKey(), t.get("r30").setFilter(filter.getValue()));
    }
  }

  private static Map<String, ScanFilter> filters() {
    Map<String, ScanFilter> all = new LinkedHashMap<>();
    all.put("row", new RowFilter(CompareOp.LESS, new BinaryComparator(b("r03"))));
    all.put("row by prefix", new RowFilter(CompareOp.EQUAL, new BinaryPrefixComparator(b("r3"))));
    all.put("row not", new RowFilter(CompareOp.NOT_EQUAL, new SubstringComparator("1")));
    all.put("key by regex", new KeyRegexpFilter("^r.5$"));
    all.put("fuzzy row", new FuzzyRowFilter(new FuzzyRowFilter.FuzzyFilterPair(b("r?5"), new byte[] {0, 1, 0})));
    all.put("first key only", new FirstKeyOnlyFilter());
    all.put("key only", new KeyOnlyFilter());
    all.put("key only, lengths", new KeyOnlyFilter(true));
    all.put("family", new FamilyFilter(CompareOp.EQUAL, new BinaryComparator(b("g"))));
    all.put("qualifier", new QualifierFilter(CompareOp.GREATER_OR_EQUAL, new BinaryComparator(b("only"))));
    all.put("value", new ValueFilter(CompareOp.EQUAL, new BinaryComparator(b("x30"))));
    all.put("value by substring", new ValueFilter(CompareOp.EQUAL, new SubstringComparator("W3")));
    all.put("value by regex", new ValueFilter(CompareOp.EQUAL, new RegexStringComparator("^[bx]3.$")));
    all.put("value by bits", new ValueFilter(CompareOp.EQUAL, new BitComparator(b("x30"), BitComparator.BitwiseOp.XOR)));
    all.put("value by bits and", new ValueFilter(CompareOp.NOT_EQUAL, new BitComparator(b("b30"), BitComparator.BitwiseOp.AND)));
    all.put("column prefix", new ColumnPrefixFilter("on"));
    all.put("column prefixes", new MultipleColumnPrefixFilter(bytes("a", "x")));
    all.put("column range", new ColumnRangeFilter("a", false, "only", true));
    all.put("column page", new ColumnPaginationFilter(1, 1));
    all.put("column page from a column", new ColumnPaginationFilter(2, "b"));
    all.put("timestamps", new TimestampsFilter(10L, 15L));
    all.put("dependent column", new DependentColumnFilter(b("f"), b("b")));
    all.put("dependent column of a value", new DependentColumnFilter(b("f"), b("b"), true, CompareOp.EQUAL,
        new BinaryComparator(b("b30"))));
    ScanFilter prefix = new RowFilter(CompareOp.EQUAL, new BinaryPrefixComparator(b("r3")));
    ScanFilter small = new QualifierFilter(CompareOp.LESS, new BinaryComparator(b("b")));
    all.put("all of", new FilterList(List.of(prefix, small)));
    all.put("one of", new FilterList(List.of(prefix, small), FilterList.Operator.MUST_PASS_ONE));
    return all;
  }
}
