package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.ValueFilter;

/**
 * Families with NEW_VERSION_BEHAVIOR: markers and versions count in the order in which they were
 * written.
 */
final class Versions implements Suite {
  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(TableDescriptorBuilder.newBuilder(s.name("main"))
        .setColumnFamily(family("f", 5).build())
        .setColumnFamily(family("one", 1).build())
        .setColumnFamily(family("two", 2).build())
        .setColumnFamily(family("kept", 3).setKeepDeletedCells(KeepDeletedCells.TRUE).build()).build());
    markers();
    pushedOut();
    sameTime();
    emptyQualifier();
    families();
    selections();
    everything("in memory");
    s.admin.flush(s.name("main"));
    everything("after a flush");
    later();
    everything("in memory and a file");
    s.admin.flush(s.name("main"));
    everything("in two files");
    s.majorCompact(s.name("main"));
    everything("after a major compaction");
    after();
    table.close();
  }

  private static ColumnFamilyDescriptorBuilder family(String name, int versions) {
    return ColumnFamilyDescriptorBuilder.newBuilder(b(name)).setMaxVersions(versions).setNewVersionBehavior(true);
  }

  private void markers() throws Exception {
    out.topic("markers hide what was written before them");
    table.delete(new Delete(b("m1")).addColumn(b("f"), b("q"), 5));
    table.put(put("m1", "f:q@5=a"));
    see("a put behind the marker of its version", "m1");
    table.put(put("m2", "f:q@5=a"));
    table.delete(new Delete(b("m2")).addColumns(b("f"), b("q"), 9));
    table.put(put("m2", "f:q@4=b"));
    see("a put behind the marker of its column", "m2");
    table.put(put("m3", "f:q@5=a", "f:r@8=c"));
    table.delete(new Delete(b("m3")).addFamily(b("f"), 9));
    see("all of a family", "m3");
    table.put(put("m3", "f:q@4=b"));
    see("and a put behind it", "m3");
    table.put(put("m4", "f:q@5=a", "f:r@5=b", "f:r@4=c"));
    table.delete(new Delete(b("m4")).addFamilyVersion(b("f"), 5));
    table.put(put("m4", "f:q@5=d"));
    see("one version of a family", "m4");
    table.put(put("m5", "f:q@5=a"));
    table.delete(new Delete(b("m5")).addColumn(b("f"), b("q"), 5));
    table.put(put("m5", "f:q@5=b"));
    table.delete(new Delete(b("m5")).addColumn(b("f"), b("q"), 5));
    table.put(put("m5", "f:q@5=c"));
    see("deleted twice, written three times", "m5");
    table.put(put("m6", "f:q@5=a", "f:q@6=b"));
    table.delete(new Delete(b("m6")).addColumn(b("f"), b("q")));
    see("the newest version", "m6");
    table.delete(new Delete(b("m6")).addColumn(b("f"), b("q")));
    see("and the one before", "m6");
  }

  private void pushedOut() throws Exception {
    out.topic("versions that were pushed out");
    for (String family : List.of("one", "two", "f")) {
      String row = "p-" + family;
      table.put(put(row, family + ":q@1=a"));
      table.put(put(row, family + ":q@2=b"));
      table.put(put(row, family + ":q@3=c"));
      see(family, row);
      table.delete(new Delete(b(row)).addColumn(b(family), b("q"), 3));
      see(family + ", the newest deleted", row);
      table.put(put(row, family + ":q@1=d"));
      see(family + ", an old one written again", row);
      table.delete(new Delete(b(row)).addColumn(b(family), b("q"), 2));
      see(family + ", two deleted", row);
    }
    table.put(put("p-batch", "two:q@1=a", "two:q@2=b", "two:q@3=c"));
    see("versions of one put count as one", "p-batch");
    table.delete(new Delete(b("p-batch")).addColumn(b("two"), b("q"), 3));
    see("and one of them deleted", "p-batch");
  }

  private void sameTime() throws Exception {
    out.topic("one timestamp");
    table.put(put("t1", "f:q@5=a"));
    table.put(put("t1", "f:q@5=b"));
    see("the last write counts", "t1");
    table.delete(new Delete(b("t1")).addColumn(b("f"), b("q"), 5));
    see("both are deleted", "t1");
    for (String value : List.of("a", "b", "c")) {
      table.put(put("t2", "two:q@6=" + value));
      table.put(put("t2", "two:q@1=old"));
    }
    see("doubles do not push out", "t2");
    table.delete(new Delete(b("t2")).addFamilyVersion(b("two"), 2));
    see("but before a marker of one version", "t2");
    table.put(put("t2", "two:q@6=d"));
    see("and behind it", "t2");
  }

  private void emptyQualifier() throws Exception {
    out.topic("the empty qualifier");
    table.put(put("e1", "f:@5=a", "f:q@5=b"));
    table.delete(new Delete(b("e1")).addFamily(b("f"), 9));
    see("a marker of the family", "e1");
    table.put(put("e2", "f:@5=a", "f:@4=b"));
    table.delete(new Delete(b("e2")).addColumns(b("f"), b(""), 7));
    table.put(put("e2", "f:@3=c"));
    see("a marker of the column", "e2");
    table.put(put("e3", "f:@5=a", "f:@4=b"));
    table.delete(new Delete(b("e3")).addColumn(b("f"), b(""), 5));
    see("a marker of the version", "e3");
    table.put(put("e4", "one:@5=a"));
    table.put(put("e4", "one:@4=b"));
    see("versions", "e4");
  }

  private void families() throws Exception {
    out.topic("markers whose order is not found out");
    table.put(put("o1", "one:q@6=a"));
    table.put(put("o1", "one:q@4=b"));
    table.delete(new Delete(b("o1")).addFamilyVersion(b("one"), 6));
    table.put(put("o1", "one:q@3=c"));
    see("before", "o1");
    table.delete(new Delete(b("o1")).addFamily(b("one"), 1));
    see("behind", "o1");
    out.topic("deleted cells kept");
    table.put(put("k1", "kept:q@2=a"));
    table.put(put("k1", "kept:q@4=b"));
    table.delete(new Delete(b("k1")).addColumns(b("kept"), b("q"), 5));
    table.put(put("k1", "kept:q@3=c"));
    see("now", "k1");
    out.see("before the marker", () -> table.get(get("k1").setTimeRange(0, 5).readAllVersions()));
    out.see("the oldest", () -> table.get(get("k1").setTimeRange(0, 3).readAllVersions()));
  }

  private void selections() throws Exception {
    out.topic("what is asked for");
    for (String column : List.of("a", "b", "c")) {
      for (int at = 1; at <= 6; at++) {
        table.put(put("s1", "f:" + column + "@" + at + "=" + column + at));
      }
    }
    table.delete(new Delete(b("s1")).addColumn(b("f"), b("b"), 6).addColumns(b("f"), b("c"), 3));
    out.see("the newest", () -> table.get(get("s1")));
    out.see("two versions", () -> table.get(get("s1").readVersions(2)));
    out.see("single columns", () -> table.get(get("s1").addColumn(b("f"), b("b")).addColumn(b("f"), b("c"))
        .addColumn(b("f"), b("x")).readVersions(2)));
    out.see("a range of time", () -> table.get(get("s1").setTimeRange(2, 5).readAllVersions()));
    out.see("one moment", () -> table.get(get("s1").setTimestamp(4).readAllVersions()));
    out.see("a filter over all versions", () -> table.get(get("s1").readVersions(2)
        .setFilter(new ValueFilter(CompareOperator.LESS, new BinaryComparator(b("b4"))))));
    out.see("the first key", () -> table.get(get("s1").setFilter(new FirstKeyOnlyFilter())));
    out.see("a limit and an offset", () -> table.get(get("s1").readAllVersions()
        .setMaxResultsPerColumnFamily(3).setRowOffsetPerColumnFamily(4)));
    out.see("exists", () -> table.exists(get("p-one")));
  }

  private void later() throws Exception {
    out.topic("more writes");
    table.delete(new Delete(b("m1")).addColumn(b("f"), b("q"), 5));
    table.put(put("m2", "f:q@3=late"));
    table.put(put("p-two", "two:q@9=e"));
    table.delete(new Delete(b("p-two")).addColumn(b("two"), b("q"), 9));
    table.put(put("t1", "f:q@5=again"));
    table.delete(delete("s1"));
    table.put(put("s1", "f:a@1=back"));
  }

  private void after() throws Exception {
    out.topic("after all");
    table.delete(new Delete(b("p-f")).addFamily(b("f"), 1));
    table.put(put("m1", "f:q@5=z"));
    see("a marker", "p-f");
    see("a put", "m1");
  }

  private void see(String what, String row) {
    out.see(what, () -> table.get(get(row).readAllVersions()));
  }

  private void everything(String when) throws Exception {
    out.topic("everything " + when);
    out.see("all versions", () -> Rows.all(table, new Scan().readAllVersions()));
    out.see("the newest", () -> Rows.all(table, new Scan()));
    out.see("backwards", () -> Rows.all(table, new Scan().setReversed(true).readVersions(2)));
    out.see("raw", () -> Rows.all(table, new Scan().setRaw(true).readAllVersions()));
  }
}
