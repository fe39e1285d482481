package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.List;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** What a Get selects: columns, versions, times, limits. */
final class Gets implements Suite {
  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(TableDescriptorBuilder.newBuilder(s.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("g")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("h")).build());
    fill();
    // The same requests read from the memstore, from a file, and from both.
    questions("in the memstore");
    s.admin.flush(s.name("main"));
    questions("in a file");
    table.put(put("r", "f:b@25=b25", "g:x@35=x35"));
    questions("in both");
    table.close();
    versionsKept();
    timeToLive();
    keptDeletes();
  }

  private void fill() throws Exception {
    table.put(put("r", "f:a@10=a10", "f:a@20=a20", "f:a@30=a30", "f:b@10=b10", "f:b@20=b20", "f:c@15=c15",
        "g:x@10=x10", "g:x@20=x20", "g:x@30=x30", "g:x@40=x40", "g:y@50=y50", "h:z@10=z10", "h:z@20=z20"));
    table.put(put("empty", "f:@10=novalue", "f:e@10=", "f:@20="));
    table.put(put("\\x00", "f:\\x00@1=\\x00\\xFF"));
    table.put(put("\\xFF\\xFE\\x00", "f:\\xFF@1=\\xFF"));
    table.put(put("row", "f:q@1=short"));
    table.put(put("row\\x00", "f:q@1=longer"));
    for (int column = 0; column < 200; column++) {
      table.put(put("wide", String.format("f:%03d@7=%d", column, column)));
    }
  }

  private void questions(String where) throws Exception {
    out.topic("rows " + where);
    columns();
    versions();
    times();
    existence();
    limits();
    strangeRows();
    hints();
    several();
  }

  private void columns() {
    see("whole row", get("r"));
    see("a family", get("r").addFamily(b("f")));
    see("two families", get("r").addFamily(b("g")).addFamily(b("h")));
    see("a column", get("r").addColumn(b("f"), b("b")));
    see("columns of two families", get("r").addColumn(b("f"), b("c")).addColumn(b("g"), b("y")));
    see("columns asked for in reverse", get("r").addColumn(b("f"), b("c")).addColumn(b("f"), b("a")));
    see("a column and its family", get("r").addColumn(b("f"), b("a")).addFamily(b("f")));
    see("a column that is not there", get("r").addColumn(b("f"), b("nosuch")));
    see("one that is and one that is not", get("r").addColumn(b("f"), b("nosuch")).addColumn(b("f"), b("a")));
    see("a family that does not exist", get("r").addFamily(b("nosuch")));
    see("every tenth column of many", tenths());
  }

  private static Get tenths() {
    Get get = get("wide");
    for (int column = 0; column < 200; column += 10) {
      get.addColumn(b("f"), b(String.format("%03d", column)));
    }
    return get;
  }

  private void versions() throws Exception {
    see("all versions", get("r").readAllVersions());
    see("two versions", get("r").readVersions(2));
    see("more versions than are kept", get("r").addFamily(b("g")).readVersions(100));
    see("two versions of a column", get("r").addColumn(b("f"), b("a")).readVersions(2));
  }

  private void times() throws Exception {
    see("from 10 to before 20", get("r").setTimeRange(10, 20).readAllVersions());
    see("from 10 to before 21, one version", get("r").setTimeRange(10, 21));
    see("at 20", get("r").setTimestamp(20));
    see("at a time without cells", get("r").setTimestamp(22));
    see("from 30 on", get("r").setTimeRange(30, Long.MAX_VALUE).readAllVersions());
    see("a range of a family", get("r").setColumnFamilyTimeRange(b("g"), 15, 35).readAllVersions());
    see("ranges of two families and of the rest", get("r").setTimeRange(0, 16).setColumnFamilyTimeRange(b("f"), 20, 40)
        .setColumnFamilyTimeRange(b("g"), 50, 60).readAllVersions());
    out.does("a range the wrong way round", () -> get("r").setTimeRange(20, 10));
    out.does("a negative time", () -> get("r").setTimeRange(-1, 10));
  }

  private void existence() {
    out.see("exists", () -> table.exists(get("r")));
    out.see("exists, missing row", () -> table.exists(get("nosuch")));
    out.see("exists, missing column", () -> table.exists(get("r").addColumn(b("f"), b("nosuch"))));
    out.see("exists, no cell in range", () -> table.exists(get("r").setTimeRange(100, 200)));
    see("a get that checks existence only", get("r").setCheckExistenceOnly(true));
    see("and of a missing row", get("nosuch").setCheckExistenceOnly(true));
    out.see("exists of several", () -> table.exists(List.of(get("r"), get("nosuch"), get("empty"))));
  }

  private void limits() {
    see("two columns a family", get("r").setMaxResultsPerColumnFamily(2));
    see("after the first", get("r").setMaxResultsPerColumnFamily(2).setRowOffsetPerColumnFamily(1));
    see("an offset alone", get("r").setRowOffsetPerColumnFamily(2));
    see("an offset past the end", get("r").setRowOffsetPerColumnFamily(10));
    see("counted over versions", get("r").readAllVersions().setMaxResultsPerColumnFamily(4).setRowOffsetPerColumnFamily(1));
    see("a page of a wide row", get("wide").setMaxResultsPerColumnFamily(5).setRowOffsetPerColumnFamily(100));
    see("a wide row", get("wide"));
    see("no columns a family", get("r").setMaxResultsPerColumnFamily(0));
  }

  private void strangeRows() {
    see("a missing row", get("nosuch"));
    see("empty qualifier and empty values", get("empty"));
    see("all versions of them", readAll(get("empty")));
    see("the empty qualifier", get("empty").addColumn(b("f"), b("")));
    see("the null qualifier", get("empty").addColumn(b("f"), null));
    see("a row of one zero byte", get("\\x00"));
    see("a row of high bytes", get("\\xFF\\xFE\\x00"));
    see("a row that begins another", get("row"));
    see("the row that it begins", get("row\\x00"));
    see("a row between the two", get("row\\x00\\x00"));
    out.does("an empty row", () -> get(""));
    out.does("a row of 32768 bytes", () -> table.get(new Get(new byte[32768])));
  }

  private static Get readAll(Get get) {
    return get.readAllVersions();
  }

  private void hints() {
    see("uncached", get("row").setCacheBlocks(false));
    see("reading what is uncommitted", get("row").setIsolationLevel(IsolationLevel.READ_UNCOMMITTED));
    see("from any replica", get("row").setConsistency(Consistency.TIMELINE));
    see("with an attribute nobody knows", get("row").setAttribute("colour", b("green")).setId("me").setPriority(5));
    see("families on demand", get("row").setLoadColumnFamiliesOnDemand(true));
  }

  private void several() {
    out.see("a list", () -> table.get(List.of(get("row"), get("nosuch"), get("r").addFamily(b("h")), get("row"))));
    out.see("an empty list", () -> table.get(List.<Get>of()));
    out.does("a list with a bad family", () -> table.get(List.of(get("row"), get("r").addFamily(b("nosuch")))));
  }

  private void see(String what, Get get) {
    out.see(what, () -> table.get(get));
  }

  private void versionsKept() throws Exception {
    out.topic("versions that a family keeps");
    try (Table kept = s.table(TableDescriptorBuilder.newBuilder(s.name("versions"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("one")).setMaxVersions(1).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("three")).setMaxVersions(3).build()).build())) {
      for (int time = 1; time <= 6; time++) {
        kept.put(put("r", "one:q@" + time + "=v" + time, "three:q@" + time + "=v" + time));
      }
      out.see("all versions", () -> kept.get(get("r").readAllVersions()));
      // An excess version is hidden, but a time range in which it is not in excess shows it until
      // it is compacted away.
      out.see("older than the newest", () -> kept.get(get("r").readAllVersions().setTimeRange(0, 5)));
      s.admin.flush(s.name("versions"));
      out.see("older than the newest, flushed", () -> kept.get(get("r").readAllVersions().setTimeRange(0, 5)));
      s.majorCompact(s.name("versions"));
      out.see("older than the newest, compacted", () -> kept.get(get("r").readAllVersions().setTimeRange(0, 5)));
      out.see("all versions, compacted", () -> kept.get(get("r").readAllVersions()));
    }
  }

  private void timeToLive() throws Exception {
    out.topic("time to live");
    long now = System.currentTimeMillis();
    try (Table brief = s.table(TableDescriptorBuilder.newBuilder(s.name("ttl"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setTimeToLive(1000).setMaxVersions(5).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("g")).setTimeToLive(1000).setMaxVersions(5)
            .setMinVersions(2).build())
        .build())) {
      for (long age : new long[] {500_000, 2_000_000, 3_000_000, 3_500_000}) {
        brief.put(put("mixed", "f:q@" + (now - age) + "=" + age, "g:q@" + (now - age) + "=" + age));
        brief.put(put("old", "f:q@" + age + "=" + age, "g:q@" + age + "=" + age));
      }
      out.see("young and old", () -> brief.get(get("mixed").readAllVersions()));
      out.see("all old", () -> brief.get(get("old").readAllVersions()));
      s.admin.flush(s.name("ttl"));
      out.see("young and old, flushed", () -> brief.get(get("mixed").readAllVersions()));
      out.see("all old, flushed", () -> brief.get(get("old").readAllVersions()));
      s.majorCompact(s.name("ttl"));
      out.see("young and old, compacted", () -> brief.get(get("mixed").readAllVersions()));
      out.see("all old, compacted", () -> brief.get(get("old").readAllVersions()));
    }
  }

  private void keptDeletes() throws Exception {
    out.topic("a family that keeps deleted cells");
    try (Table kept = s.table(TableDescriptorBuilder.newBuilder(s.name("keep"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5)
            .setKeepDeletedCells(KeepDeletedCells.TRUE).build()).build())) {
      kept.put(put("r", "f:q@10=a", "f:q@20=b"));
      kept.delete(Rows.delete("r").addColumns(b("f"), b("q"), 25));
      kept.put(put("r", "f:q@30=c"));
      for (String when : List.of("in the memstore", "flushed", "compacted")) {
        out.see("now, " + when, () -> kept.get(get("r").readAllVersions()));
        out.see("before the delete, " + when, () -> kept.get(get("r").readAllVersions().setTimeRange(0, 25)));
        out.see("with the delete, " + when, () -> kept.get(get("r").readAllVersions().setTimeRange(0, 26)));
        if (when.equals("flushed")) {
          s.majorCompact(s.name("keep"));
        } else {
          s.admin.flush(s.name("keep"));
        }
      }
    }
  }
}
