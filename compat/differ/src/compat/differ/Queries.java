package compat.differ;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Query;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;

/** Random reads with every option. */
final class Queries {
  /** A scan with more results than a program can have written is aborted. */
  private static final int RESULTS_MOST = 400;

  private final Dice dice;
  private final Domain domain;
  private final Filters filters;

  Queries(Dice dice, Domain domain, Filters filters) {
    this.dice = dice;
    this.domain = domain;
    this.filters = filters;
  }

  Operation any() throws Exception {
    return switch (dice.weighted(35, 8, 8, 50)) {
      case 0 -> {
        Get get = get();
        yield new Operation("get", () -> get.toString(100), (table, admin) -> table.get(get));
      }
      case 1 -> {
        Get get = get();
        yield new Operation("exists", () -> get.toString(100), (table, admin) -> table.exists(get));
      }
      case 2 -> {
        List<Get> gets = new ArrayList<>();
        for (int left = dice.number(2, 5); left > 0; left--) {
          gets.add(get());
        }
        yield new Operation("gets", () -> gets.toString(), (table, admin) -> table.get(gets));
      }
      default -> asked(scan());
    };
  }

  /** Everything that the program wrote, as stored in the region's files and memory. */
  Operation everything() {
    Scan scan = new Scan().withStartRow(domain.first()).withStopRow(domain.last()).setRaw(true).readAllVersions();
    return asked(scan);
  }

  private static Operation asked(Scan scan) {
    return new Operation("scan", () -> text(scan), (table, admin) -> {
      List<Result> results = new ArrayList<>();
      // A scanner may store its progress in a scan.
      try (ResultScanner scanner = table.getScanner(new Scan(scan))) {
        for (Result result = scanner.next(); result != null && results.size() < RESULTS_MOST; result = scanner.next()) {
          results.add(result);
        }
      }
      return results;
    });
  }

  Get get() throws Exception {
    Get get = new Get(domain.row());
    columns(get);
    common(get);
    if (dice.chance(40)) {
      get.readVersions(dice.of(1, 2, 3, 10, Integer.MAX_VALUE));
    }
    if (dice.chance(20)) {
      get.setTimeRange(dice.number(0, 4), dice.number(4, 11));
    } else if (dice.chance(8)) {
      get.setTimestamp(domain.someTime());
    }
    if (dice.chance(8)) {
      get.setMaxResultsPerColumnFamily(dice.number(1, 3));
    }
    if (dice.chance(8)) {
      get.setRowOffsetPerColumnFamily(dice.number(0, 3));
    }
    get.setCheckExistenceOnly(dice.chance(5));
    if (dice.chance(30)) {
      get.setFilter(filters.any(3));
    }
    return get;
  }

  Scan scan() throws Exception {
    Scan scan = new Scan();
    columns(scan);
    common(scan);
    if (dice.chance(50)) {
      scan.readVersions(dice.of(1, 2, 3, 10, Integer.MAX_VALUE));
    }
    if (dice.chance(20)) {
      scan.setTimeRange(dice.number(0, 4), dice.number(4, 11));
    } else if (dice.chance(5)) {
      scan.setTimestamp(domain.someTime());
    }
    if (dice.chance(8)) {
      scan.setMaxResultsPerColumnFamily(dice.number(1, 3));
    }
    if (dice.chance(8)) {
      scan.setRowOffsetPerColumnFamily(dice.number(0, 3));
    }
    range(scan);
    if (dice.chance(50)) {
      scan.setFilter(filters.any(3));
      if (scan.isReversed()) {
        // HBase refuses these if the filter reads only some families, and leaves the scanner open.
        scan.setLoadColumnFamiliesOnDemand(false);
      }
    }
    if (dice.chance(15) && (scan.getFilter() == null || !scan.getFilter().hasFilterRow())) {
      scan.setBatch(dice.number(1, 4));
    }
    if (dice.chance(40)) {
      scan.setCaching(dice.number(1, 5));
    }
    if (dice.chance(20)) {
      // After each cell or never: HBase counts the size of cells in Java's memory.
      scan.setMaxResultSize(dice.of(1, 1, 100_000, 100_000));
    }
    if (dice.chance(20)) {
      scan.setLimit(dice.number(1, 6));
    }
    scan.setReadType(dice.of(Scan.ReadType.values()));
    raw(scan);
    return scan;
  }

  private void range(Scan scan) {
    boolean reversed = dice.chance(30);
    byte[] low = dice.chance(60) ? domain.first() : domain.key();
    byte[] high = dice.chance(60) ? domain.last() : domain.key();
    if (Bytes.compareTo(low, high) > 0 && dice.chance(90)) {
      byte[] other = low;
      low = high;
      high = other;
    }
    scan.setReversed(reversed);
    scan.withStartRow(reversed ? high : low, dice.chance(80)).withStopRow(reversed ? low : high, dice.chance(30));
  }

  /**
   * HBase refuses a raw scan of single columns. It shows markers of families, which have no
   * qualifier to count by.
   */
  private void raw(Scan scan) {
    boolean hasColumns = scan.getFamilyMap().values().stream().anyMatch(columns -> columns != null && !columns.isEmpty());
    scan.setRaw(!hasColumns && dice.chance(20) && !Filters.counts(scan.getFilter()));
  }

  private void columns(Query query) {
    if (dice.chance(50)) {
      return;
    }
    for (int left = dice.number(1, 2); left > 0; left--) {
      byte[] family = domain.family();
      if (dice.chance(40)) {
        add(query, family, null);
        continue;
      }
      for (byte[] qualifier : domain.qualifiers(1, 3)) {
        add(query, family, qualifier);
      }
    }
  }

  private static void add(Query query, byte[] family, byte[] qualifier) {
    if (query instanceof Get get) {
      if (qualifier == null) {
        get.addFamily(family);
      } else {
        get.addColumn(family, qualifier);
      }
    } else if (query instanceof Scan scan) {
      if (qualifier == null) {
        scan.addFamily(family);
      } else {
        scan.addColumn(family, qualifier);
      }
    }
  }

  private void common(Query query) {
    if (dice.chance(10)) {
      query.setColumnFamilyTimeRange(domain.aFamily(), dice.number(0, 4), dice.number(4, 11));
    }
    if (dice.chance(10)) {
      query.setLoadColumnFamiliesOnDemand(dice.chance(50));
    }
  }

  private static String text(Scan scan) {
    try {
      return scan.toJSON() + (scan.isRaw() ? " raw" : "") + (scan.isReversed() ? " reversed" : "")
          + " start " + Bytes.toStringBinary(scan.getStartRow()) + (scan.includeStartRow() ? "" : " excluded")
          + " stop " + Bytes.toStringBinary(scan.getStopRow()) + (scan.includeStopRow() ? " included" : "")
          + " limit " + scan.getLimit() + " " + scan.getReadType() + " " + scan.getColumnFamilyTimeRange().values()
          + (scan.getFilter() == null ? "" : " filter " + Filters.text(scan.getFilter()));
    } catch (java.io.IOException impossible) {
      throw new java.io.UncheckedIOException(impossible);
    }
  }
}
