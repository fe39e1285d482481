package compat;

import static compat.Rows.b;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactType;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;
import org.apache.hadoop.hbase.util.Bytes;

/** Families with MOB files: large values of flushed cells are in files of their own. */
final class Mob implements Suite {
  private static final int THRESHOLD = 100;
  /** Bytes of a reference: the length, and the name of a MOB file. */
  private static final int REFERENCE_BYTES = 4 + 105;
  private static final byte[] F = b("f");

  private Session s;
  private Admin admin;
  private Transcript out;
  private TableName name;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    name = s.name("main");
    table = s.table(descriptor(name, THRESHOLD), "m");
    out.topic("files");
    out.see("descriptor", () -> admin.getDescriptor(name));
    fill(1);
    everything("in memory");
    out.does("flush", () -> admin.flush(name));
    everything("flushed");
    fill(2);
    everything("in memory and in files");
    out.does("flush", () -> admin.flush(name));
    everything("flushed again");
    changes();
    out.does("flush", () -> admin.flush(name));
    everything("after changes");
    out.does("compact", () -> admin.compact(name));
    s.awaitCompactions(name);
    everything("compacted");
    out.does("major compact", () -> s.majorCompact(name));
    everything("major compacted");
    thresholds();
    compactionsByType();
    splits();
    snapshots();
    table.close();
  }

  private static TableDescriptor descriptor(TableName name, long threshold) {
    return TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setMobEnabled(true)
            .setMobThreshold(threshold).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build();
  }

  private static byte[] large(String text) {
    byte[] value = new byte[1000];
    Arrays.fill(value, (byte) '.');
    System.arraycopy(b(text), 0, value, 0, text.length());
    return value;
  }

  /** Each round writes small and large values, at the threshold and above it. */
  private void fill(int round) throws Exception {
    List<Put> puts = new ArrayList<>();
    for (String row : List.of("a", "b", "h", "p", "z")) {
      Put put = new Put(b(row));
      put.addColumn(F, b("large"), 10 * round, large(row + round));
      put.addColumn(F, b("small"), 10 * round, b("small" + round));
      put.addColumn(F, b("at"), 10 * round, new byte[THRESHOLD]);
      put.addColumn(F, b("above"), 10 * round, new byte[THRESHOLD + 1]);
      put.addColumn(b("g"), b("q"), 10 * round, large("g" + row + round));
      puts.add(put);
    }
    puts.add(new Put(b("only" + round)).addColumn(F, b("large"), 5, large("only")));
    table.put(puts);
  }

  /** All kinds of reads. */
  private void everything(String when) {
    out.topic(when);
    reads(when, table);
    out.see("raw references", () -> shown(scan("hbase.mob.scan.raw").readAllVersions()));
    out.see("references only, resolved", () -> shown(scan("hbase.mob.scan.ref.only").readAllVersions()));
    out.see("references only, raw",
        () -> shown(scan("hbase.mob.scan.raw", "hbase.mob.scan.ref.only").readAllVersions()));
    out.see("raw scan with delete markers", () -> shown(new Scan().setRaw(true).readAllVersions()));
    out.see("value filter", () -> shown(new Scan().setFilter(
        new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(large("a2"))))));
    out.see("column value filter", () -> shown(new Scan().setFilter(new SingleColumnValueFilter(
        F, b("large"), CompareOperator.EQUAL, new BinaryComparator(large("b1"))))));
    out.see("key only filter", () -> shown(new Scan().addFamily(F).setFilter(new KeyOnlyFilter())));
    out.see("key only filter with lengths", () -> shown(new Scan().addFamily(F).setFilter(new KeyOnlyFilter(true))));
  }

  /** Reads whose answers do not depend on where values are. */
  private void reads(String when, Table of) {
    out.see("scan, " + when, () -> shown(of, new Scan().readAllVersions()));
    out.see("reversed", () -> shown(of, new Scan().setReversed(true)));
    out.see("one cell at a time", () -> shown(of, new Scan().setBatch(1).setLimit(7)));
    out.see("with an offset", () -> shown(of, new Scan().setRowOffsetPerColumnFamily(1).setMaxResultsPerColumnFamily(2)));
    out.see("in a time range", () -> shown(of, new Scan().setTimeRange(5, 15).readAllVersions()));
    out.see("get", () -> of.get(new Get(b("a")).readAllVersions()));
    out.see("get one column", () -> of.get(new Get(b("h")).addColumn(F, b("large"))));
    out.see("gets", () -> of.get(List.of(new Get(b("p")).addColumn(F, b("above")), new Get(b("no")), new Get(b("z")))));
    out.see("exists", () -> of.exists(new Get(b("b")).addColumn(F, b("large"))));
  }

  private static Scan scan(String... attributes) {
    Scan scan = new Scan();
    for (String attribute : attributes) {
      scan.setAttribute(attribute, Bytes.toBytes(true));
    }
    return scan;
  }

  private List<String> shown(Scan scan) throws Exception {
    return shown(table, scan);
  }

  /** Results by row; a reference is shown by its length, because the names of files are random. */
  private static List<String> shown(Table table, Scan scan) throws Exception {
    List<String> rows = new ArrayList<>();
    try (ResultScanner results = table.getScanner(scan)) {
      for (Result result : results) {
        StringBuilder row = new StringBuilder();
        for (Cell cell : result.rawCells()) {
          row.append(row.length() == 0 ? "" : ", ").append(shown(cell));
        }
        rows.add(row.toString());
      }
    }
    return rows;
  }

  private static String shown(Cell cell) {
    byte[] value = CellUtil.cloneValue(cell);
    String column = Bytes.toString(CellUtil.cloneRow(cell)) + "/" + Bytes.toString(CellUtil.cloneFamily(cell)) + ":"
        + Bytes.toString(CellUtil.cloneQualifier(cell)) + "@" + cell.getTimestamp() + "/" + cell.getType();
    boolean isReference = value.length == REFERENCE_BYTES && Bytes.toString(value, 4).matches("[0-9a-f]{72}_[0-9a-f]{32}");
    return column + "=" + (isReference ? "reference of " + ByteBuffer.wrap(value).getInt() : Show.value(value));
  }

  /** The number of MOB files to which cells refer. */
  private int files() throws Exception {
    TreeSet<String> names = new TreeSet<>();
    try (ResultScanner results = table.getScanner(scan("hbase.mob.scan.raw", "hbase.mob.scan.ref.only").readAllVersions())) {
      for (Result result : results) {
        for (Cell cell : result.rawCells()) {
          names.add(Bytes.toString(CellUtil.cloneValue(cell), 4));
        }
      }
    }
    return names.size();
  }

  /** Changes that read values in MOB files. */
  private void changes() {
    out.topic("changes");
    Put put = new Put(b("a")).addColumn(F, b("checked"), 1, large("checked"));
    out.see("check that fails", () -> table.checkAndMutate(
        CheckAndMutate.newBuilder(b("a")).ifEquals(F, b("large"), large("a1")).build(put)).isSuccess());
    out.see("check that holds", () -> table.checkAndMutate(
        CheckAndMutate.newBuilder(b("a")).ifEquals(F, b("large"), large("a2")).build(put)).isSuccess());
    out.see("check by filter", () -> table.checkAndMutate(CheckAndMutate.newBuilder(b("b")).ifMatches(
        new ValueFilter(CompareOperator.EQUAL, new BinaryComparator(large("b2")))).build(
            new Put(b("b")).addColumn(F, b("checked"), 1, large("checked")))).isSuccess());
    out.see("append", () -> Show.value(table.append(
        new Append(b("b")).addColumn(F, b("large"), b(" more")).setTimestamp(100)).getValue(F, b("large"))));
    out.does("delete a version", () -> table.delete(new Delete(b("h")).addColumn(F, b("large"), 20)));
    out.does("delete a column", () -> table.delete(new Delete(b("p")).addColumns(F, b("above"), 20)));
    out.does("delete a row", () -> table.delete(new Delete(b("only1"), 10)));
    out.see("files", this::files);
  }

  /** Thresholds that change, and counters that are large values. */
  private void thresholds() throws Exception {
    out.topic("thresholds");
    out.does("raise it", () -> admin.modifyTable(descriptor(name, 100_000)));
    reads("before the compaction", table);
    out.does("major compact", () -> s.majorCompact(name));
    reads("all in store files", table);
    out.see("files", this::files);
    out.does("lower it", () -> admin.modifyTable(descriptor(name, 4)));
    out.does("increment", () -> table.increment(new Increment(b("counter")).addColumn(F, b("n"), 7)));
    out.does("flush", () -> admin.flush(name));
    out.see("increment of a value in a MOB file", () -> Bytes.toLong(
        table.increment(new Increment(b("counter")).addColumn(F, b("n"), 5)).getValue(F, b("n"))));
    out.does("delete it", () -> table.delete(new Delete(b("counter"))));
    out.does("major compact", () -> s.majorCompact(name));
    reads("small values in MOB files", table);
    out.see("files", this::files);
    out.does("set it back", () -> admin.modifyTable(descriptor(name, THRESHOLD)));
    out.does("major compact", () -> s.majorCompact(name));
    out.see("raw references", () -> shown(scan("hbase.mob.scan.raw")));
  }

  private void compactionsByType() throws Exception {
    out.topic("compactions by type");
    // Otherwise clients of 3.0 retry for minutes.
    try (Connection once = s.connect("hbase.client.retries.number", "1", "hbase.client.pause", "10");
         Admin impatient = once.getAdmin()) {
      out.does("of MOB files", () -> impatient.compact(name, CompactType.MOB));
      out.does("major, of a family", () -> impatient.majorCompact(name, F, CompactType.MOB));
    }
    out.see("state", () -> admin.getCompactionState(name, CompactType.MOB));
  }

  private void splits() throws Exception {
    out.topic("splits");
    fill(3);
    out.does("flush", () -> admin.flush(name));
    out.does("split", () -> {
      admin.split(name, b("k"));
      s.await("split", () -> admin.getRegions(name).size() == 3);
    });
    reads("split", table);
    out.see("raw references", () -> shown(scan("hbase.mob.scan.raw")));
    out.does("major compact", () -> s.majorCompact(name));
    reads("split and compacted", table);
  }

  private void snapshots() throws Exception {
    out.topic("snapshots");
    TableName clone = s.name("clone");
    out.does("snapshot", () -> admin.snapshot("compat_mob", name));
    out.does("clone", () -> admin.cloneSnapshot("compat_mob", clone));
    fill(4);
    out.does("major compact", () -> s.majorCompact(name));
    try (Table cloned = s.connection.getTable(clone)) {
      reads("clone", cloned);
      out.does("restore", () -> {
        admin.disableTable(name);
        admin.restoreSnapshot("compat_mob");
        admin.enableTable(name);
      });
      reads("restored", table);
      out.does("drop the original", () -> s.drop(name));
      reads("clone of a dropped table", cloned);
      out.does("major compact the clone", () -> s.majorCompact(clone));
      reads("compacted clone", cloned);
      out.does("truncate the clone", () -> {
        admin.disableTable(clone);
        admin.truncateTable(clone, true);
      });
      reads("truncated", cloned);
    }
    out.does("delete the snapshot", () -> admin.deleteSnapshot("compat_mob"));
  }
}
