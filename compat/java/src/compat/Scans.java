package compat;

import static compat.Rows.b;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.client.metrics.ScanMetrics;

/** What a Scan returns, in which pieces, and which concurrent writes it sees. */
final class Scans implements Suite {
  private static final int ROWS = 60;

  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(TableDescriptorBuilder.newBuilder(s.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), "r20", "r40");
    fill();
    questions("in the memstore");
    s.admin.flush(s.name("main"));
    questions("in files");
    scannerCalls();
    snapshots();
    sizes();
    slow();
    refused();
    table.close();
  }

  private void fill() throws Exception {
    List<Put> puts = new ArrayList<>();
    for (int row = 0; row < ROWS; row++) {
      String name = String.format("r%02d", row);
      puts.add(put(name, "f:a@10=old" + row, "f:a@20=new" + row, "f:b@15=b" + row, "f:c@30=c" + row));
      if (row % 2 == 0) {
        puts.add(put(name, "g:x@10=x" + row));
      }
      if (row % 15 == 0) {
        puts.add(put(name, "f:only@12=" + row));
      }
    }
    table.put(puts);
  }

  private void questions(String where) throws Exception {
    out.topic("rows " + where);
    bounds();
    reversed();
    cachingAndLimit();
    batches();
    columnsVersionsTimes();
    hints();
  }

  private void bounds() {
    see("everything", new Scan());
    see("one row", new Scan().withStartRow(b("r07")).withStopRow(b("r07"), true));
    see("from a row", new Scan().withStartRow(b("r57")));
    see("after a row", new Scan().withStartRow(b("r57"), false));
    see("before a row", new Scan().withStopRow(b("r02")));
    see("up to a row", new Scan().withStopRow(b("r02"), true));
    see("between", new Scan().withStartRow(b("r18")).withStopRow(b("r22")));
    see("between, ends swapped in and out", new Scan().withStartRow(b("r18"), false).withStopRow(b("r22"), true));
    see("from between two rows", new Scan().withStartRow(b("r05x")).withStopRow(b("r07x")));
    see("start is stop", new Scan().withStartRow(b("r07")).withStopRow(b("r07")));
    see("start is stop, start out", new Scan().withStartRow(b("r07"), false).withStopRow(b("r07")));
    see("start after stop", new Scan().withStartRow(b("r30")).withStopRow(b("r10")));
    see("from a region's start", new Scan().withStartRow(b("r40")).withStopRow(b("r42")));
    see("after a region's start", new Scan().withStartRow(b("r40"), false).withStopRow(b("r42")));
    see("up to a region's start", new Scan().withStartRow(b("r38")).withStopRow(b("r40"), true));
    see("before all", new Scan().withStopRow(b("a")));
    see("after all", new Scan().withStartRow(b("s")));
    see("by prefix", new Scan().setStartStopRowForPrefixScan(b("r1")).addColumn(b("f"), b("b")));
  }

  private void reversed() throws Exception {
    see("reversed", new Scan().setReversed(true));
    see("reversed from a row", new Scan().setReversed(true).withStartRow(b("r02")));
    see("reversed after a row", new Scan().setReversed(true).withStartRow(b("r02"), false));
    see("reversed before a row", new Scan().setReversed(true).withStopRow(b("r57")));
    see("reversed up to a row", new Scan().setReversed(true).withStopRow(b("r57"), true));
    see("reversed across a border", new Scan().setReversed(true).withStartRow(b("r41")).withStopRow(b("r38")));
    see("reversed after a region's start", new Scan().setReversed(true).withStartRow(b("r40"), false).withStopRow(b("r37")));
    see("reversed from between two rows", new Scan().setReversed(true).withStartRow(b("r05x")).withStopRow(b("r03x")));
    see("reversed, limit", new Scan().setReversed(true).setLimit(3));
    see("reversed, limit across borders", new Scan().setReversed(true).setLimit(45).setCaching(4));
    see("reversed, caching", new Scan().setReversed(true).setCaching(7));
    see("reversed, versions", new Scan().setReversed(true).readAllVersions().withStartRow(b("r01")));
    see("reversed, batch", new Scan().setReversed(true).setBatch(2).withStartRow(b("r01")));
    see("reversed, a column few rows have", new Scan().setReversed(true).addColumn(b("f"), b("only")));
    see("reversed, times", new Scan().setReversed(true).setTimeRange(10, 15).setLimit(3));
  }

  private void cachingAndLimit() {
    for (int caching : new int[] {1, 7, 20, 1000}) {
      see("caching " + caching, new Scan().setCaching(caching));
    }
    see("limit 5", new Scan().setLimit(5));
    see("limit 20, just one region", new Scan().setLimit(20));
    see("limit 25, into the next region", new Scan().setLimit(25).setCaching(10));
    see("limit beyond the end", new Scan().setLimit(100));
    see("limit 1", new Scan().withStartRow(b("r39x")).setLimit(1));
    see("one row limit", new Scan().withStartRow(b("r10")).setOneRowLimit());
    see("limit with caching below it", new Scan().setLimit(9).setCaching(2));
    see("limit among rows few have", new Scan().addColumn(b("f"), b("only")).setLimit(3));
  }

  private void batches() {
    see("batch 1", new Scan().setBatch(1).setLimit(2));
    see("batch 2", new Scan().setBatch(2).withStopRow(b("r03")));
    see("batch 3 of all versions", new Scan().setBatch(3).readAllVersions().withStopRow(b("r02")));
    see("batch 4, the row's width", new Scan().setBatch(4).withStartRow(b("r02")).withStopRow(b("r04")));
    see("batch and caching", new Scan().setBatch(2).setCaching(3));
    see("batch with limits a family", new Scan().setBatch(2).setMaxResultsPerColumnFamily(1).withStopRow(b("r03")));
    see("partial results, one cell each", new Scan().setAllowPartialResults(true).setMaxResultSize(1).withStopRow(b("r02")));
    see("the same size without partial results", new Scan().setMaxResultSize(1).withStopRow(b("r03")));
    see("partial results reversed", new Scan().setReversed(true).setAllowPartialResults(true).setMaxResultSize(1)
        .withStartRow(b("r01")));
    see("small results over everything", new Scan().setMaxResultSize(100));
    see("batch with small results", new Scan().setBatch(2).setMaxResultSize(1).withStopRow(b("r03")));
    see("partial results over all versions", new Scan().setAllowPartialResults(true).setMaxResultSize(1)
        .readAllVersions().withStopRow(b("r01")));
  }

  private void columnsVersionsTimes() throws Exception {
    see("a family", new Scan().addFamily(b("g")).withStopRow(b("r05")));
    see("a column", new Scan().addColumn(b("f"), b("b")).withStopRow(b("r05")));
    see("a column few rows have", new Scan().addColumn(b("f"), b("only")));
    see("columns of both families", new Scan().addColumn(b("f"), b("c")).addColumn(b("g"), b("x")).withStopRow(b("r05")));
    see("a column nobody has", new Scan().addColumn(b("f"), b("nosuch")));
    see("a family that does not exist", new Scan().addFamily(b("nosuch")));
    see("all versions", new Scan().readAllVersions().withStopRow(b("r02")));
    see("two versions", new Scan().readVersions(2).withStopRow(b("r02")));
    see("from 10 to before 20", new Scan().setTimeRange(10, 20).withStopRow(b("r02")));
    see("at 20", new Scan().setTimestamp(20).withStopRow(b("r02")));
    see("at no time", new Scan().setTimeRange(100, 200));
    see("a range of a family", new Scan().setColumnFamilyTimeRange(b("f"), 15, 25).withStopRow(b("r02")));
    see("limits a family", new Scan().setMaxResultsPerColumnFamily(2).setRowOffsetPerColumnFamily(1).withStopRow(b("r02")));
    see("raw", new Scan().setRaw(true).readAllVersions().withStopRow(b("r01")));
  }

  private void hints() {
    Scan few = new Scan().withStopRow(b("r01"));
    see("small, by position", copy(few).setReadType(Scan.ReadType.PREAD));
    see("stream", copy(few).setReadType(Scan.ReadType.STREAM));
    see("stream over everything", new Scan().setReadType(Scan.ReadType.STREAM));
    see("by position over everything", new Scan().setReadType(Scan.ReadType.PREAD).setLimit(30));
    see("uncached", copy(few).setCacheBlocks(false));
    see("uncommitted", copy(few).setIsolationLevel(IsolationLevel.READ_UNCOMMITTED));
    see("from any replica", copy(few).setConsistency(Consistency.TIMELINE));
    see("families on demand", copy(few).setLoadColumnFamiliesOnDemand(true));
    see("with an attribute", copy(few).setAttribute("colour", b("green")).setPriority(3));
    see("fetched ahead", new Scan().setAsyncPrefetch(true).setCaching(5));
    out.see("metrics: rows and regions", () -> metrics(new Scan().setScanMetricsEnabled(true).setCaching(1000)));
  }

  private static Scan copy(Scan scan) {
    try {
      return new Scan(scan);
    } catch (java.io.IOException impossible) {
      throw new IllegalStateException("a scan is copied in memory", impossible);
    }
  }

  private String metrics(Scan scan) throws Exception {
    try (ResultScanner scanner = table.getScanner(scan)) {
      int rows = 0;
      while (scanner.next() != null) {
        rows++;
      }
      ScanMetrics metrics = scanner.getScanMetrics();
      return rows + " rows, scanned " + metrics.countOfRowsScanned.get() + ", filtered "
          + metrics.countOfRowsFiltered.get() + ", regions " + metrics.countOfRegions.get();
    }
  }

  private void scannerCalls() throws Exception {
    out.topic("calls on a scanner");
    try (ResultScanner scanner = table.getScanner(new Scan().setCaching(3))) {
      out.see("renew before the first row", scanner::renewLease);
      out.see("first", scanner::next);
      out.see("renew", scanner::renewLease);
      out.see("renew again", scanner::renewLease);
      out.see("three more", () -> scanner.next(3));
      out.see("many at once", () -> scanner.next(1000).length);
      out.see("past the end", scanner::next);
      out.see("and again", scanner::next);
    }
    ResultScanner closed = table.getScanner(new Scan().setCaching(2));
    out.see("first of another", closed::next);
    closed.close();
    out.does("closed twice", closed::close);
    out.see("many open at once", () -> {
      List<ResultScanner> open = new ArrayList<>();
      int rows = 0;
      for (int at = 0; at < 50; at++) {
        open.add(table.getScanner(new Scan().withStartRow(b(String.format("r%02d", at))).setCaching(1)));
      }
      for (int round = 0; round < 5; round++) {
        for (ResultScanner scanner : open) {
          rows += scanner.next() == null ? 0 : 1;
        }
      }
      open.forEach(ResultScanner::close);
      return rows;
    });
  }

  private void snapshots() throws Exception {
    out.topic("writes beside a scan");
    beside("nothing", changed -> { });
    beside("puts, deletes and overwriting", changed -> unchecked(() -> change(changed)));
    beside("and a flush", changed -> unchecked(() -> {
      change(changed);
      s.admin.flush(s.name("beside"));
    }));
    beside("a flush and a major compaction", changed -> unchecked(() -> {
      change(changed);
      s.admin.flush(s.name("beside"));
      s.majorCompact(s.name("beside"));
    }));
  }

  /**
   * Reads a row, changes the table, and reads on: within a region, a scan has the read point of its
   * first row.
   */
  private void beside(String what, Consumer<Table> change) throws Exception {
    try (Table other = s.table("beside", "f")) {
      for (int row = 0; row < 8; row++) {
        other.put(put("r" + row, "f:q@10=" + row));
      }
      Scan scan = new Scan().setCaching(1).readAllVersions();
      out.see(what, () -> {
        try (ResultScanner scanner = other.getScanner(scan)) {
          List<Result> seen = new ArrayList<>(List.of(scanner.next()));
          change.accept(other);
          for (Result result = scanner.next(); result != null; result = scanner.next()) {
            seen.add(result);
          }
          return seen;
        }
      });
      out.see("a new scan", () -> Rows.all(other, new Scan()));
    }
    s.drop(s.name("beside"));
  }

  private static void change(Table table) throws Exception {
    table.put(put("r3x", "f:q@10=new"));
    table.put(put("r4", "f:q@10=over", "f:other@10=new"));
    table.delete(Rows.delete("r5"));
    table.put(put("r9", "f:q@10=new"));
  }

  private static void unchecked(Transcript.Action action) {
    try {
      action.run();
    } catch (Exception failed) {
      throw new IllegalStateException(failed);
    }
  }

  private void sizes() throws Exception {
    out.topic("wide rows and large cells");
    try (Table wide = s.table("wide", "f")) {
      List<Put> puts = new ArrayList<>();
      for (int row = 0; row < 3; row++) {
        Put put = new Put(b("wide" + row));
        for (int column = 0; column < 5000; column++) {
          put.addColumn(b("f"), b(String.format("%05d", column)), 1, Rows.value(100 + row));
        }
        puts.add(put);
      }
      for (int row = 0; row < 12; row++) {
        puts.add(new Put(b(String.format("xl%02d", row))).addColumn(b("f"), b("q"), 1, Rows.value((1 << 20) - row)));
      }
      wide.put(puts);
      for (String where : List.of("memstore", "file")) {
        out.see("whole rows from the " + where, () -> Rows.all(wide, new Scan()));
        out.see("batches of 1000", () -> sizes(Rows.all(wide, new Scan().setBatch(1000).withStopRow(b("x")))));
        out.see("batches of 4096, reversed", () -> sizes(Rows.all(wide, new Scan().setBatch(4096).setReversed(true)
            .withStartRow(b("wide9")))));
        out.see("rows of 1 MiB, 3 MiB at a time", () -> Rows.all(wide, new Scan().withStartRow(b("xl"))
            .setMaxResultSize(3 << 20)));
        out.see("cells in partial results of 100 kB", () -> cells(Rows.all(wide, new Scan().setAllowPartialResults(true)
            .setMaxResultSize(100_000).withStopRow(b("x")))));
        s.admin.flush(s.name("wide"));
      }
    }
  }

  private static List<Integer> sizes(List<Result> results) {
    return results.stream().map(Result::size).toList();
  }

  private static int cells(List<Result> results) {
    return results.stream().mapToInt(Result::size).sum();
  }

  private void slow() throws Exception {
    out.topic("a scan longer than its time limit");
    try (Table many = s.table("slow", "f")) {
      List<Put> puts = new ArrayList<>();
      for (int row = 0; row < 30_000; row++) {
        puts.add(put(String.format("%06d", row), "f:q@1=" + row));
      }
      puts.add(put("last", "f:rare@1=found"));
      many.put(puts);
    }
    // The server responds before half of this time has passed, with or without rows: heartbeats
    // keep the scan alive.
    try (Connection hasty = s.connect("hbase.client.scanner.timeout.period", "200");
        Table many = hasty.getTable(s.name("slow"))) {
      out.see("rows", () -> Rows.all(many, new Scan()).size());
      out.see("a column that only the last row has", () -> Rows.all(many, new Scan().addColumn(b("f"), b("rare"))));
    }
  }

  private void refused() throws Exception {
    out.topic("refused");
    out.does("a range the wrong way round", () -> new Scan().setTimeRange(20, 10));
    out.does("a raw scan of columns", () -> Rows.all(table, new Scan().setRaw(true).addColumn(b("f"), b("a"))));
    try (Table missing = s.connection.getTable(s.name("nosuch"))) {
      out.does("a table that does not exist", () -> Rows.all(missing, new Scan()));
    }
    out.does("a family that does not exist", () -> Rows.all(table, new Scan().addFamily(b("nosuch"))));
    out.does("reversed as well", () -> Rows.all(table, new Scan().setReversed(true).addFamily(b("nosuch"))));
  }

  private void see(String what, Scan scan) {
    out.see(what, () -> Rows.all(table, scan));
  }
}
