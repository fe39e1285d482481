package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.put;

import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/**
 * Which files compactions select, and which of their cells they keep. File sizes differ enough that
 * a server's overhead around the cells does not matter.
 */
final class Compactions implements Suite {
  private static final String MIN = "hbase.hstore.compaction.min";
  private static final String MAX = "hbase.hstore.compaction.max";
  private static final String MIN_SIZE = "hbase.hstore.compaction.min.size";
  private static final String MAX_SIZE = "hbase.hstore.compaction.max.size";
  private static final String RATIO = "hbase.hstore.compaction.ratio";
  private static final String POLICY = "hbase.hstore.defaultengine.compactionpolicy.class";
  private static final String ENGINE = "hbase.hstore.engine.class";
  private static final String BLOCKING = "hbase.hstore.blockingStoreFiles";
  private static final String POLICIES = "org.apache.hadoop.hbase.regionserver.compactions.";
  private static final String WINDOW = "hbase.hstore.compaction.date.tiered.";

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
    numbers();
    sizes();
    tableAndFamily();
    subset();
    minVersions();
    wholeFiles();
    fifo();
    windows();
    disabled();
    switched();
    queues();
    lastMajor();
  }

  private static ColumnFamilyDescriptorBuilder family(String... settings) {
    ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(b("f"));
    for (int at = 0; at < settings.length; at += 2) {
      family.setConfiguration(settings[at], settings[at + 1]);
    }
    return family;
  }

  private void make(String table, ColumnFamilyDescriptorBuilder family, String... values) throws Exception {
    out.topic(table);
    name = s.name(table.replace(' ', '_'));
    TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(name).setColumnFamily(family.build());
    for (int at = 0; at < values.length; at += 2) {
      builder.setValue(values[at], values[at + 1]);
    }
    this.table = s.table(builder.build());
  }

  /** Creates a file of the given kilobytes. */
  private void file(int kilobytes) throws Exception {
    Put put = new Put(b(String.format("size%04d", kilobytes)));
    for (int at = 0; at < kilobytes; at++) {
      put.addColumn(b("f"), b(String.format("q%05d", at)), Rows.value(1000));
    }
    table.put(put);
    admin.flush(name);
  }

  private void file(String row, String... cells) throws Exception {
    table.put(put(row, cells));
    admin.flush(name);
  }

  private void files() {
    out.see("files", () -> s.storeFiles(name));
  }

  private void compact() throws Exception {
    out.does("compact", () -> admin.compact(name));
    s.awaitCompactions(name);
    files();
  }

  private void majorCompact() throws Exception {
    out.does("major compact", () -> admin.majorCompact(name));
    s.awaitCompactions(name);
    files();
  }

  private void cells(String when) {
    out.see("all that is stored, " + when, () -> Rows.all(table, new Scan().setRaw(true).readAllVersions()));
    out.see("all that is seen, " + when, () -> Rows.all(table, new Scan().readAllVersions()));
  }

  private void numbers() throws Exception {
    make("three by default", family());
    file(1);
    file(1);
    compact();
    file(1);
    compact();
    compact();
    make("two at least", family(MIN, "2"));
    file(1);
    compact();
    file(1);
    compact();
    make("one is two", family(MIN, "1"));
    file(1);
    compact();
    file(1);
    compact();
    make("four at least by the older key", family("hbase.hstore.compactionThreshold", "4"));
    for (int at = 0; at < 3; at++) {
      file(1);
    }
    compact();
    file(1);
    compact();
    make("three at most", family(MIN, "2", MAX, "3"));
    for (int kilobytes : new int[] {50, 10, 20, 10, 50}) {
      file(kilobytes);
    }
    compact();
    compact();
    majorCompact();
    for (int at = 0; at < 5; at++) {
      file(1);
    }
    majorCompact();
    majorCompact();
  }

  private void sizes() throws Exception {
    make("by ratio", family(MIN_SIZE, "1", RATIO, "1.0"));
    for (int kilobytes : new int[] {400, 150, 46, 24, 24}) {
      file(kilobytes);
    }
    compact();
    compact();
    majorCompact();
    make("ratio of the old policy", family(MIN_SIZE, "1", RATIO, "1.0", POLICY, POLICIES + "RatioBasedCompactionPolicy"));
    for (int kilobytes : new int[] {400, 150, 46, 24, 24, 10}) {
      file(kilobytes);
    }
    compact();
    make("small files go without a ratio", family(RATIO, "0.1"));
    for (int kilobytes : new int[] {100, 10, 10}) {
      file(kilobytes);
    }
    compact();
    make("large files are left alone", family(MAX_SIZE, "100000"));
    for (int kilobytes : new int[] {200, 10, 10, 10}) {
      file(kilobytes);
    }
    compact();
    majorCompact();
    make("a store at which flushes wait", family(MIN_SIZE, "1", RATIO, "0.1", BLOCKING, "4", MAX, "3"));
    for (int kilobytes : new int[] {80, 40, 20}) {
      file(kilobytes);
    }
    compact();
    file(20);
    compact();
  }

  private void tableAndFamily() throws Exception {
    make("a table says", family(), MIN, "2");
    file(1);
    file(1);
    compact();
    make("a family goes first", family(MIN, "4"), MIN, "2");
    for (int at = 0; at < 3; at++) {
      file(1);
    }
    compact();
  }

  /** The two newer of three files are merged: their markers are kept because of the oldest file. */
  private void subset() throws Exception {
    for (KeepDeletedCells keep : KeepDeletedCells.values()) {
      make("a subset with kept deleted cells " + keep,
          family(MIN, "2", MAX, "2").setMaxVersions(2).setKeepDeletedCells(keep));
      table.put(put("a", "f:q@1=1", "f:q@2=2", "f:r@1=1"));
      table.put(put("b", "f:q@1=1", "f:r@5=5"));
      table.put(put("c", "f:q@1=1"));
      file(100);
      table.delete(new org.apache.hadoop.hbase.client.Delete(b("size0100")));
      table.put(put("a", "f:q@3=3", "f:q@4=4", "f:r@2=2"));
      table.put(put("b", "f:q@2=2", "f:r@6=6"));
      table.put(put("d", "f:q@1=1", "f:q@2=2", "f:q@3=3"));
      admin.flush(name);
      table.delete(delete("a").addColumn(b("f"), b("q"), 3));
      table.delete(delete("a").addColumns(b("f"), b("r"), 2));
      table.delete(delete("b").addFamily(b("f"), 5));
      table.delete(delete("c").addFamilyVersion(b("f"), 1));
      table.delete(delete("d").addColumn(b("f"), b("q"), 3));
      admin.flush(name);
      files();
      cells("flushed");
      compact();
      cells("two of three compacted");
      table.put(put("a", "f:q@3=again", "f:r@1=again"));
      table.put(put("c", "f:q@1=again"));
      cells("written again below the markers");
      majorCompact();
      cells("all files compacted");
    }
  }

  private void minVersions() throws Exception {
    make("versions that outlive their time", family(MIN, "2", MAX, "2").setMinVersions(2).setMaxVersions(5).setTimeToLive(5));
    file("a", "f:q@1=1", "f:q@2=2", "f:q@3=3");
    file("a", "f:q@4=4", "f:q@5=5", "f:q@6=6");
    file("a", "f:q@7=7");
    files();
    cells("flushed");
    compact();
    cells("two of three compacted");
    majorCompact();
    cells("all files compacted");
  }

  private void wholeFiles() throws Exception {
    for (int minVersions = 0; minVersions < 2; minVersions++) {
      make("files that are over with " + minVersions + " versions at least",
          family(MIN, "9").setTimeToLive(4).setMinVersions(minVersions).setMaxVersions(3));
      for (int at = 0; at < 3; at++) {
        file("row" + at, "f:q=1");
      }
      files();
      compact();
      Thread.sleep(4500);
      compact();
      file("new", "f:q=1");
      compact();
    }
    make("files that are over and kept", family(MIN, "9", "hbase.store.delete.expired.storefile", "false").setTimeToLive(2));
    file("a", "f:q=1");
    file("b", "f:q=1");
    Thread.sleep(2500);
    compact();
    majorCompact();
  }

  private void fifo() throws Exception {
    String policy = POLICIES + "FIFOCompactionPolicy";
    out.topic("first in, first out");
    name = s.name("fifo");
    for (ColumnFamilyDescriptorBuilder refused : List.of(
        family(POLICY, policy, BLOCKING, "1000"),
        family(POLICY, policy, BLOCKING, "1000").setTimeToLive(10).setMinVersions(1).setMaxVersions(2),
        family(POLICY, policy).setTimeToLive(10),
        family(POLICY, policy, BLOCKING, "999").setTimeToLive(10))) {
      out.doesMessage("a table that it cannot serve", () ->
          s.table(TableDescriptorBuilder.newBuilder(name).setColumnFamily(refused.build()).build()));
    }
    make("files go as they came", family(POLICY, policy, BLOCKING, "1000", MIN, "2").setTimeToLive(5));
    for (int at = 0; at < 3; at++) {
      file("row" + at, "f:q=1");
    }
    compact();
    majorCompact();
    Thread.sleep(5500);
    file("new", "f:q=1");
    compact();
    cells("the old ones over");
    Thread.sleep(5500);
    compact();
    cells("all over");
    file("newest", "f:q=1");
    files();
  }

  private void windows() throws Exception {
    String engine = "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine";
    long length = 1_000_000_000L;
    // The current window, and one of the same length long ago.
    long now = System.currentTimeMillis() / length * length;
    String[] settings = {ENGINE, engine, WINDOW + "base.window.millis", String.valueOf(length),
        WINDOW + "windows.per.tier", "1000", WINDOW + "incoming.window.min", "3", MIN, "2"};
    make("windows of time", family(settings));
    file("a", "f:q@" + (now - 3 * length + 1) + "=old");
    file("b", "f:q@" + (now - 3 * length + 2) + "=old");
    file("c", "f:q@" + (now + 1) + "=new");
    file("d", "f:q@" + (now + 2) + "=new");
    files();
    compact();
    file("e", "f:q@" + (now + 3) + "=new");
    compact();
    compact();
    file("f", "f:q@" + (now - 3 * length + 3) + "=late");
    file("g", "f:q@" + (now - 2 * length + 3) + "=late");
    files();
    majorCompact();
    out.see("rows", () -> Rows.all(table, new Scan()).size());
    file("h", "f:q@" + (now - 2 * length + 4) + "=late");
    majorCompact();
    majorCompact();
    compact();
    make("windows that are left alone", withSettings(family(settings), WINDOW + "max.storefile.age.millis", String.valueOf(length)));
    for (int at = 0; at < 3; at++) {
      file("row" + at, "f:q@" + (now - 5 * length + at) + "=old");
    }
    compact();
    make("windows whose output is cut", withSettings(family(settings), WINDOW + "single.output.for.minor.compaction", "false"));
    for (int at = 0; at < 3; at++) {
      file("row" + at, "f:q@" + (now + at) + "=new", "f:r@" + (now - 2 * length + at) + "=old");
    }
    compact();
    out.see("rows", () -> Rows.all(table, new Scan()).size());
  }

  private static ColumnFamilyDescriptorBuilder withSettings(ColumnFamilyDescriptorBuilder family, String key, String value) {
    return family.setConfiguration(key, value);
  }

  private void disabled() throws Exception {
    out.topic("a table that is not compacted");
    name = s.name("disabled");
    table = s.table(TableDescriptorBuilder.newBuilder(name).setColumnFamily(family(MIN, "2").build())
        .setCompactionEnabled(false).build());
    file(1);
    file(1);
    compact();
    majorCompact();
    out.does("alter", () -> admin.modifyTable(
        TableDescriptorBuilder.newBuilder(admin.getDescriptor(name)).setCompactionEnabled(true).build()));
    compact();
  }

  private void switched() throws Exception {
    make("switched off and on", family(MIN, "3"));
    file(1);
    file(1);
    out.see("off", () -> before(false));
    out.see("off once more", () -> before(false));
    compact();
    majorCompact();
    out.see("on", () -> before(true));
    out.see("on once more", () -> before(true));
    // The requested major compaction must not be lost.
    compact();
    file(1);
    compact();
  }

  private Collection<Boolean> before(boolean enabled) throws Exception {
    return new TreeSet<>(admin.compactionSwitch(enabled, List.of()).values());
  }

  private void queues() throws Exception {
    out.topic("queues");
    ServerName server = admin.getRegionServers().iterator().next();
    out.does("clear both", () -> admin.clearCompactionQueues(server, Set.of("long", "short")));
    out.does("clear the long one", () -> admin.clearCompactionQueues(server, Set.of("long")));
  }

  private void lastMajor() throws Exception {
    make("the last major compaction", family());
    RegionInfo region = admin.getRegions(name).get(0);
    out.see("of a table without files", () -> admin.getLastMajorCompactionTimestamp(name));
    file(1);
    out.see("of a table without one", () -> admin.getLastMajorCompactionTimestamp(name));
    out.see("of a region without one", () -> admin.getLastMajorCompactionTimestampForRegion(region.getRegionName()));
    long before = System.currentTimeMillis();
    majorCompact();
    s.await("a report of it", () -> admin.getLastMajorCompactionTimestamp(name) >= before);
    out.see("table and region agree", () -> admin.getLastMajorCompactionTimestamp(name)
        == admin.getLastMajorCompactionTimestampForRegion(region.getRegionName()));
    out.see("of a table that does not exist", () -> admin.getLastMajorCompactionTimestamp(s.name("nosuch")));
    out.see("of a region that does not exist", () -> admin.getLastMajorCompactionTimestampForRegion(b("nosuch")));
  }
}
