package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** What each of the four markers hides, until when, and how a raw scan shows them. */
final class Deletes implements Suite {
  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(TableDescriptorBuilder.newBuilder(s.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("g")).setMaxVersions(5).build()).build(), "m");
    explicitTimes();
    serverTimes();
    oneVersion();
    maskingLaterPuts();
    sameTime();
    lists();
    oddities();
    raw("before a flush");
    s.admin.flush(s.name("main"));
    raw("after a flush");
    visible("after a flush");
    s.majorCompact(s.name("main"));
    raw("after a major compaction");
    visible("after a major compaction");
    afterCompaction();
    overFiles();
    table.close();
  }

  /** A row with three versions of two columns in f and of one in g. */
  private void fill(String row) throws Exception {
    table.put(put(row, "f:a@10=a10", "f:a@20=a20", "f:a@30=a30", "f:b@10=b10", "f:b@20=b20", "f:b@30=b30",
        "g:c@10=c10", "g:c@20=c20", "g:c@30=c30"));
  }

  private void check(String what, String row, Delete delete) throws Exception {
    fill(row);
    out.does(what, () -> table.delete(delete));
    out.see("leaves", () -> table.get(get(row).readAllVersions()));
  }

  private void explicitTimes() throws Exception {
    out.topic("with a time");
    check("one version", "v", delete("v").addColumn(b("f"), b("a"), 20));
    check("one version that is not there", "vmissing", delete("vmissing").addColumn(b("f"), b("a"), 25));
    check("a column up to a time", "c", delete("c").addColumns(b("f"), b("a"), 20));
    check("a column up to a time between", "cbetween", delete("cbetween").addColumns(b("f"), b("a"), 25));
    check("a family up to a time", "f", delete("f").addFamily(b("f"), 20));
    check("a version of a family", "fv", delete("fv").addFamilyVersion(b("f"), 20));
    check("the row up to a time", "row", new Delete(b("row"), 20));
    check("several at once", "several", delete("several").addColumn(b("f"), b("a"), 30).addColumns(b("f"), b("b"), 20)
        .addFamilyVersion(b("g"), 10));
    check("versions of a column in turn", "turn", delete("turn").addColumn(b("f"), b("a"), 30)
        .addColumn(b("f"), b("a"), 10));
  }

  private void serverTimes() throws Exception {
    out.topic("without a time");
    check("the newest version", "snewest", delete("snewest").addColumn(b("f"), b("a")));
    check("a column", "scolumn", delete("scolumn").addColumns(b("f"), b("a")));
    check("a family", "sfamily", delete("sfamily").addFamily(b("f")));
    check("the row", "srow", delete("srow"));
    table.put(put("sclock", "f:q=one", "g:q=one"));
    Thread.sleep(5);
    out.does("a row with the server's times", () -> table.delete(delete("sclock")));
    out.see("leaves", () -> table.get(get("sclock").readAllVersions()));
    Thread.sleep(5);
    table.put(put("sclock", "f:q=two"));
    out.see("and what was put since", () -> table.get(get("sclock").readAllVersions()));
  }

  private void oneVersion() throws Exception {
    out.topic("the newest version, found by the server");
    fill("n");
    out.does("once", () -> table.delete(delete("n").addColumn(b("f"), b("a"))));
    out.see("leaves", () -> table.get(get("n").addColumn(b("f"), b("a")).readAllVersions()));
    out.does("again", () -> table.delete(delete("n").addColumn(b("f"), b("a"))));
    out.see("leaves", () -> table.get(get("n").addColumn(b("f"), b("a")).readAllVersions()));
    out.does("twice in one delete", () -> table.delete(delete("n").addColumn(b("f"), b("b")).addColumn(b("f"), b("b"))));
    out.see("leaves", () -> table.get(get("n").addColumn(b("f"), b("b")).readAllVersions()));
    out.does("of a column that is not there", () -> table.delete(delete("n").addColumn(b("f"), b("nosuch"))));
    out.does("of a row that is not there", () -> table.delete(delete("nrow").addColumn(b("f"), b("a"))));
    s.admin.flush(s.name("main"));
    out.does("of a column in a file", () -> table.delete(delete("n").addColumn(b("g"), b("c"))));
    out.see("leaves", () -> table.get(get("n").addFamily(b("g")).readAllVersions()));
  }

  private void maskingLaterPuts() throws Exception {
    out.topic("markers hide what is put later at an older time");
    fill("mask");
    table.delete(delete("mask").addColumns(b("f"), b("a"), 100));
    table.put(put("mask", "f:a@50=hidden", "f:a@101=seen"));
    out.see("a column's", () -> table.get(get("mask").addColumn(b("f"), b("a")).readAllVersions()));
    table.delete(delete("mask").addFamily(b("g"), 100));
    table.put(put("mask", "g:new@99=hidden", "g:new@100=hidden", "g:new@101=seen"));
    out.see("a family's", () -> table.get(get("mask").addFamily(b("g")).readAllVersions()));
    table.delete(delete("mask").addFamilyVersion(b("f"), 200));
    table.put(put("mask", "f:z@200=hidden", "f:z@199=seen"));
    out.see("a family version's", () -> table.get(get("mask").addColumn(b("f"), b("z")).readAllVersions()));
    out.see("in a range below the marker", () -> table.get(get("mask").setTimeRange(0, 60).readAllVersions()));
  }

  private void sameTime() throws Exception {
    out.topic("marker and put of one time");
    table.put(put("same", "f:q@10=first"));
    table.delete(delete("same").addColumn(b("f"), b("q"), 10));
    out.see("put, then delete", () -> table.get(get("same")));
    table.put(put("same", "f:q@10=second"));
    out.see("and put again", () -> table.get(get("same")));
  }

  private void lists() throws Exception {
    out.topic("lists");
    fill("l1");
    fill("l2");
    fill("xl3");
    out.does("of three rows", () -> table.delete(new ArrayList<>(List.of(delete("l1"),
        delete("l2").addColumns(b("f"), b("a")), delete("xl3").addFamily(b("g"))))));
    out.see("leaves", () -> table.get(List.of(get("l1"), get("l2"), get("xl3"))));
    // Markers of two calls must not share a millisecond, or their order would depend on the
    // machine.
    Thread.sleep(5);
    List<Delete> partly = new ArrayList<>(List.of(delete("l2"), delete("l2").addFamily(b("nosuch")), delete("xl3")));
    out.does("with a bad family in one", () -> table.delete(partly));
    out.see("rows that remain in the list", () -> partly.stream().map(left -> Show.bytes(left.getRow())).toList());
    out.see("leaves", () -> table.get(List.of(get("l2"), get("xl3"))));
  }

  private void oddities() throws Exception {
    out.topic("oddities");
    out.does("a row that is not there", () -> table.delete(delete("nosuch")));
    out.does("a family that does not exist", () -> table.delete(delete("v").addFamily(b("nosuch"))));
    out.does("a column of a family that does not exist", () -> table.delete(delete("v").addColumns(b("nosuch"), b("q"))));
    out.does("an empty row", () -> delete(""));
    out.does("a negative time", () -> delete("v").addColumn(b("f"), b("q"), -1));
    table.put(put("emptyq", "f:@10=v", "f:a@10=v"));
    table.delete(delete("emptyq").addColumns(b("f"), b("")));
    out.see("the empty qualifier", () -> table.get(get("emptyq")));
  }

  private void raw(String when) {
    out.topic("raw, " + when);
    out.see("all versions", () -> Rows.all(table, new Scan().setRaw(true).readAllVersions().withStopRow(b("nrow"))
        .setLimit(12)));
    out.see("the rest", () -> Rows.all(table, new Scan().setRaw(true).readAllVersions().withStartRow(b("row"))));
    out.see("two versions", () -> Rows.all(table, new Scan().setRaw(true).readVersions(2).withStartRow(b("several"))
        .withStopRow(b("several"), true)));
    out.see("a column and its markers", () -> Rows.all(table, new Scan().setRaw(true).readAllVersions()
        .addColumn(b("f"), b("a")).withStartRow(b("mask")).withStopRow(b("mask"), true)));
    out.see("in a range", () -> Rows.all(table, new Scan().setRaw(true).readAllVersions().setTimeRange(20, 101)
        .withStartRow(b("mask")).withStopRow(b("mask"), true)));
  }

  private void visible(String when) {
    out.see("visible, " + when, () -> Rows.all(table, new Scan().readAllVersions()));
  }

  private void afterCompaction() throws Exception {
    out.topic("after the markers are gone");
    table.put(put("mask", "f:a@50=seen now"));
    table.put(put("same", "f:q@10=seen now"));
    out.see("a put below the old marker", () -> table.get(get("mask").addColumn(b("f"), b("a")).readAllVersions()));
    out.see("a put at the old marker", () -> table.get(get("same")));
  }

  /** At most two files: a third could start a compaction that ends at an unknown time. */
  private void overFiles() throws Exception {
    out.topic("markers in one file, puts in another");
    try (Table over = s.table(TableDescriptorBuilder.newBuilder(s.name("over"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5).build()).build())) {
      for (String row : List.of("o1", "o2", "o3", "o4")) {
        over.put(put(row, "f:a@10=a10", "f:a@20=a20", "f:a@30=a30", "f:b@20=b20"));
      }
      s.admin.flush(s.name("over"));
      over.delete(delete("o1").addColumn(b("f"), b("a"), 30));
      over.delete(delete("o2").addColumns(b("f"), b("a"), 20));
      over.delete(delete("o3").addFamily(b("f"), 20));
      over.delete(delete("o4").addFamilyVersion(b("f"), 20));
      out.see("marker in the memstore", () -> Rows.all(over, new Scan().readAllVersions()));
      s.admin.flush(s.name("over"));
      out.see("marker in a file", () -> Rows.all(over, new Scan().readAllVersions()));
      over.put(put("o1", "f:a@30=again"));
      over.put(put("o2", "f:a@15=again"));
      out.see("puts in the memstore", () -> Rows.all(over, new Scan().readAllVersions()));
      s.majorCompact(s.name("over"));
      out.see("puts in the memstore, files compacted", () -> Rows.all(over, new Scan().readAllVersions()));
      s.admin.flush(s.name("over"));
      out.see("flushed", () -> Rows.all(over, new Scan().readAllVersions()));
      out.see("raw", () -> Rows.all(over, new Scan().setRaw(true).readAllVersions()));
    }
  }
}
