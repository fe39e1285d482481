package compat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.filter.RowFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.mapreduce.MultiTableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableMapReduceUtil;
import org.apache.hadoop.hbase.util.Bytes;

/** Tables read with TableInputFormat, by each of its settings and by serialized scans. */
final class Reads {
  static void settings(Session session) {
    Map<String, String[]> settings = new LinkedHashMap<>();
    settings.put("all", new String[] {});
    settings.put("one family", new String[] {TableInputFormat.SCAN_COLUMN_FAMILY, "g"});
    settings.put("columns", new String[] {TableInputFormat.SCAN_COLUMNS, "f:q0 f:q2 g"});
    settings.put("three versions", new String[] {TableInputFormat.SCAN_MAXVERSIONS, "3"});
    settings.put("a timestamp", new String[] {TableInputFormat.SCAN_TIMESTAMP, "1204"});
    settings.put("a time range", new String[] {
      TableInputFormat.SCAN_TIMERANGE_START, "1100", TableInputFormat.SCAN_TIMERANGE_END, "2300"});
    settings.put("a time range and versions", new String[] {
      TableInputFormat.SCAN_TIMERANGE_START, "1000", TableInputFormat.SCAN_TIMERANGE_END, "5000",
      TableInputFormat.SCAN_MAXVERSIONS, "2", TableInputFormat.SCAN_COLUMN_FAMILY, "f"});
    settings.put("a range of rows", new String[] {
      TableInputFormat.SCAN_ROW_START, "row0490", TableInputFormat.SCAN_ROW_STOP, "row1010"});
    settings.put("a range within a region", new String[] {
      TableInputFormat.SCAN_ROW_START, "row1003", TableInputFormat.SCAN_ROW_STOP, "row1006",
      TableInputFormat.SCAN_COLUMN_FAMILY, "f"});
    settings.put("caching 7", new String[] {TableInputFormat.SCAN_CACHEDROWS, "7"});
    settings.put("caching 5000", new String[] {TableInputFormat.SCAN_CACHEDROWS, "5000"});
    settings.put("batch 2", new String[] {TableInputFormat.SCAN_BATCHSIZE, "2"});
    settings.put("no caching of blocks", new String[] {TableInputFormat.SCAN_CACHEBLOCKS, "false"});
    settings.put("five mappers per region", new String[] {TableInputFormat.NUM_MAPPERS_PER_REGION, "5"});
    settings.forEach((what, values) ->
      session.printRows(what, session.rows(session.input(Tables.MAIN, values)), 20));
    for (String registry : new String[] {"zk", "rpc", "master"}) {
      Configuration conf = session.input(Tables.MAIN, TableInputFormat.SCAN_COLUMN_FAMILY, "f");
      String prefix = "compat.registry." + registry + ".";
      conf.getPropsWithPrefix(prefix).forEach(conf::set);
      session.printRows("registry " + registry, session.rows(conf));
    }
  }

  static void scans(Session session) throws Exception {
    byte[] f = Tables.bytes("f");
    Map<String, Scan> scans = new LinkedHashMap<>();
    scans.put("prefix", new Scan().setFilter(new PrefixFilter(Tables.bytes("row049"))));
    scans.put("a value", new Scan().addFamily(f).setFilter(new SingleColumnValueFilter(f, Tables.bytes("number"),
      CompareOperator.GREATER_OR_EQUAL, new BinaryComparator(Bytes.toBytes(1995L)))));
    scans.put("first keys", new Scan().setFilter(new FilterList(new FirstKeyOnlyFilter(), new KeyOnlyFilter(true))));
    scans.put("a page in each region", new Scan().addFamily(f).setFilter(new PageFilter(2)));
    scans.put("regular expression", new Scan().addFamily(f)
      .setFilter(new RowFilter(CompareOperator.EQUAL, new RegexStringComparator("^row.*99[0-4]$"))));
    scans.put("ranges of rows", new Scan().addFamily(f).setFilter(new MultiRowRangeFilter(Arrays.asList(
      new MultiRowRangeFilter.RowRange("row0498", true, "row0502", false),
      new MultiRowRangeFilter.RowRange("row1499", false, "row1502", true)))));
    scans.put("column prefix", new Scan().setFilter(new ColumnPrefixFilter(Tables.bytes("q1"))));
    scans.put("filter on demand", new Scan().setLoadColumnFamiliesOnDemand(true).setFilter(filterOfOne(f)));
    scans.put("raw", new Scan().setRaw(true).readAllVersions());
    scans.put("limit in each region", new Scan().addFamily(f).setLimit(3));
    scans.put("exclusive start, inclusive stop", new Scan().addFamily(f)
      .withStartRow(Tables.row(498), false).withStopRow(Tables.row(501), true));
    scans.put("stream", new Scan().setReadType(Scan.ReadType.STREAM));
    scans.put("positional", new Scan().setReadType(Scan.ReadType.PREAD));
    scans.put("results of 20,000 bytes", new Scan().setMaxResultSize(20_000));
    scans.put("uncommitted", new Scan().setIsolationLevel(IsolationLevel.READ_UNCOMMITTED));
    scans.put("time range of a family", new Scan().readAllVersions().setColumnFamilyTimeRange(f, 1500, 1510));
    scans.put("cells per family", new Scan().readAllVersions().setMaxResultsPerColumnFamily(1).setRowOffsetPerColumnFamily(1));
    for (Map.Entry<String, Scan> scan : scans.entrySet()) {
      Configuration conf = session.input(Tables.MAIN,
        TableInputFormat.SCAN, TableMapReduceUtil.convertScanToString(scan.getValue()));
      session.printRows(scan.getKey(), session.rows(conf), 20);
    }
  }

  private static SingleColumnValueFilter filterOfOne(byte[] family) {
    SingleColumnValueFilter filter = new SingleColumnValueFilter(family, Tables.bytes("number"),
      CompareOperator.EQUAL, Bytes.toBytes(1234L));
    filter.setFilterIfMissing(true);
    return filter;
  }

  /** Scans of several tables in one RDD. */
  static void severalTables(Session session) throws Exception {
    List<String> scans = new ArrayList<>();
    scans.add(of(Tables.MAIN, new Scan().addFamily(Tables.bytes("f")).withStopRow(Tables.row(600))));
    scans.add(of(Tables.MAIN, new Scan().addFamily(Tables.bytes("g")).withStartRow(Tables.row(1700))));
    scans.add(of("text", new Scan()));
    Configuration conf = session.conf();
    conf.setStrings(MultiTableInputFormat.SCANS, scans.toArray(String[]::new));
    var rows = session.rows(conf, MultiTableInputFormat.class);
    session.print("partitions " + rows.getNumPartitions());
    session.printRows("three scans", rows);
  }

  private static String of(String table, Scan scan) throws Exception {
    scan.setAttribute(Scan.SCAN_ATTRIBUTES_TABLE_NAME, TableName.valueOf(table).getName());
    return TableMapReduceUtil.convertScanToString(scan);
  }

  private Reads() {
  }
}
