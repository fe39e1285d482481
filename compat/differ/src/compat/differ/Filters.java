package compat.differ;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.BinaryComponentComparator;
import org.apache.hadoop.hbase.filter.BinaryPrefixComparator;
import org.apache.hadoop.hbase.filter.BitComparator;
import org.apache.hadoop.hbase.filter.ByteArrayComparable;
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
import org.apache.hadoop.hbase.filter.FirstKeyValueMatchingQualifiersFilter;
import org.apache.hadoop.hbase.filter.FuzzyRowFilter;
import org.apache.hadoop.hbase.filter.InclusiveStopFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
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
 * Random trees of filters. RandomRowFilter occurs only with probabilities that make the result
 * certain.
 */
final class Filters {
  private static final Pattern COUNTING = Pattern.compile("ColumnCountGetFilter|ColumnPaginationFilter");

  private final Dice dice;
  private final Domain domain;
  /** The number of SkipFilters and lists that enclose the filter being made. */
  private int skips;
  private int lists;

  Filters(Dice dice, Domain domain) {
    this.dice = dice;
    this.domain = domain;
  }

  /** A tree of at most this depth. */
  Filter any(int depth) throws Exception {
    if (depth > 1 && dice.chance(35)) {
      return switch (dice.weighted(70, 15, 15)) {
        case 0 -> list(depth);
        case 1 -> skip(depth);
        default -> new WhileMatchFilter(any(depth - 1));
      };
    }
    return switch (dice.weighted(30, 40, 30)) {
      case 0 -> ofRows();
      case 1 -> ofColumns();
      default -> ofValues();
    };
  }

  private Filter skip(int depth) throws Exception {
    skips++;
    Filter skipped = any(depth - 1);
    skips--;
    return new SkipFilter(skipped);
  }

  private Filter list(int depth) throws Exception {
    List<Filter> children = new ArrayList<>();
    lists++;
    for (int left = dice.weighted(3, 10, 40, 30); left > 0; left--) {
      children.add(any(depth - 1));
    }
    lists--;
    return new FilterList(dice.of(FilterList.Operator.values()), children);
  }

  private Filter ofRows() throws Exception {
    return switch (dice.number(0, 6)) {
      case 0 -> new RowFilter(operator(), dice.chance(20) ? component() : comparator());
      case 1 -> new PrefixFilter(domain.key());
      case 2 -> new InclusiveStopFilter(domain.key());
      case 3 -> new PageFilter(dice.number(1, 4));
      // Within a SkipFilter, which does not pass row keys on, HBase fails and leaves the scanner
      // open.
      case 4 -> skips > 0 ? new PrefixFilter(domain.key()) : ranges();
      // In a list HBase fails if the filter has no next row to seek to.
      case 5 -> lists > 0 ? new InclusiveStopFilter(domain.key()) : fuzzy();
      default -> new RandomRowFilter(dice.of(-1f, 2f));
    };
  }

  private Filter ranges() throws Exception {
    List<MultiRowRangeFilter.RowRange> ranges = new ArrayList<>();
    for (int left = dice.number(1, 3); left > 0; left--) {
      byte[] low = domain.key();
      byte[] high = domain.key();
      boolean swap = Bytes.compareTo(low, high) > 0;
      // The client refuses an empty range.
      boolean includesStop = dice.chance(50) || Bytes.equals(low, high);
      ranges.add(new MultiRowRangeFilter.RowRange(swap ? high : low, true, swap ? low : high, includesStop));
    }
    return new MultiRowRangeFilter(ranges);
  }

  private Filter fuzzy() {
    List<Pair<byte[], byte[]>> keys = new ArrayList<>();
    for (int left = dice.number(1, 2); left > 0; left--) {
      byte[] row = domain.row();
      byte[] mask = new byte[row.length];
      for (int at = 0; at < mask.length; at++) {
        mask[at] = (byte) (dice.chance(30) ? 1 : 0);
      }
      keys.add(new Pair<>(row, mask));
    }
    return new FuzzyRowFilter(keys);
  }

  private Filter ofColumns() {
    return switch (dice.number(0, 12)) {
      case 0 -> new FamilyFilter(operator(), new BinaryComparator(domain.family()));
      case 1 -> new QualifierFilter(operator(), comparator());
      case 2 -> new ColumnPrefixFilter(domain.qualifier());
      case 3 -> new MultipleColumnPrefixFilter(domain.distinctQualifiers(1, 3).toArray(byte[][]::new));
      case 4 -> new ColumnRangeFilter(bound(), dice.chance(50), bound(), dice.chance(50));
      // Whether HBase passes older versions of a column without a qualifier to a filter may depend
      // on their position.
      case 5 -> domain.writesEmptyQualifiers() ? new PageFilter(2) : new ColumnCountGetFilter(dice.number(1, 4));
      case 6 -> domain.writesEmptyQualifiers() ? new FirstKeyOnlyFilter()
          : dice.chance(70) ? new ColumnPaginationFilter(dice.number(1, 3), dice.number(0, 3))
          : new ColumnPaginationFilter(dice.number(1, 3), domain.qualifier());
      case 7 -> times();
      case 8 -> new FirstKeyOnlyFilter();
      case 9 -> new KeyOnlyFilter(dice.chance(50));
      case 11 -> upTo();
      case 10 -> new DependentColumnFilter(domain.family(), domain.qualifier(), dice.chance(50));
      default -> new DependentColumnFilter(domain.family(), domain.qualifier(), dice.chance(50), operator(), comparator());
    };
  }

  private Filter upTo() {
    TreeSet<byte[]> qualifiers = new TreeSet<>(Bytes.BYTES_COMPARATOR);
    qualifiers.addAll(domain.qualifiers(1, 3));
    return new FirstKeyValueMatchingQualifiersFilter(qualifiers);
  }

  private byte[] bound() {
    return dice.chance(20) ? null : domain.qualifier();
  }

  private Filter times() {
    List<Long> times = new ArrayList<>();
    for (int left = dice.number(1, 3); left > 0; left--) {
      times.add(domain.someTime());
    }
    return new TimestampsFilter(times, dice.chance(50));
  }

  private Filter ofValues() {
    switch (dice.number(0, 3)) {
      case 0:
        return new ValueFilter(operator(), comparator());
      case 1:
        return new ColumnValueFilter(domain.family(), domain.qualifier(), operator(), comparator());
      default:
        byte[] family = domain.family();
        byte[] qualifier = domain.qualifier();
        SingleColumnValueFilter filter = dice.chance(70)
            ? new SingleColumnValueFilter(family, qualifier, operator(), comparator())
            : new SingleColumnValueExcludeFilter(family, qualifier, operator(), comparator());
        filter.setFilterIfMissing(dice.chance(50));
        filter.setLatestVersionOnly(dice.chance(60));
        return filter;
    }
  }

  private CompareOperator operator() {
    return dice.of(CompareOperator.LESS, CompareOperator.LESS_OR_EQUAL, CompareOperator.EQUAL, CompareOperator.EQUAL,
        CompareOperator.NOT_EQUAL, CompareOperator.GREATER_OR_EQUAL, CompareOperator.GREATER);
  }

  private ByteArrayComparable comparator() {
    byte[] bytes = dice.chance(60) ? domain.value() : dice.chance(50) ? domain.key() : domain.qualifier();
    return switch (dice.weighted(40, 20, 10, 8, 8, 6)) {
      case 0 -> new BinaryComparator(bytes);
      case 1 -> new BinaryPrefixComparator(bytes);
      case 2 -> new SubstringComparator(dice.of("a", "V", "value", "1", ""));
      case 3 -> new RegexStringComparator(dice.of("^v", "[a-c]$", "1|2", "", "x+", "^.{8}$", "(?i)VALUE"));
      case 4 -> new BitComparator(bytes, dice.of(BitComparator.BitwiseOp.values()));
      default -> new NullComparator();
    };
  }

  /**
   * Only on rows, which are all long enough: HBase fails if there is no such byte, and leaves the
   * scanner open.
   */
  private ByteArrayComparable component() {
    return new BinaryComponentComparator(Bytes.toBytes(dice.of("a", "1", "0")), dice.number(0, 7));
  }

  /** Whether a filter, or one within it, counts columns. */
  static boolean counts(Filter filter) {
    return filter != null && COUNTING.matcher(text(filter)).find();
  }

  /** Nearly the whole content of a filter; the classes' own texts omit much. */
  static String text(Filter filter) {
    try {
      return filter + " (" + Bytes.toStringBinary(filter.toByteArray()) + ")";
    } catch (java.io.IOException impossible) {
      throw new java.io.UncheckedIOException(impossible);
    }
  }
}
