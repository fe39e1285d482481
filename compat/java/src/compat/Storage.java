package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** Flushes and compactions by calls: files come and go, results do not change. */
final class Storage implements Suite {
  private Session s;
  private Admin admin;
  private Transcript out;
  private TableName name;
  private Table table;
  private List<String> lastAnswers;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    name = s.name("main");
    table = s.table(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), "k");
    byTable();
    byRegion();
    refused();
    reopened();
    table.close();
  }

  private void byTable() throws Exception {
    out.topic("by table");
    out.see("compaction state", () -> admin.getCompactionState(name));
    out.does("flush of nothing", () -> admin.flush(name));
    files();
    // Files are counted only while a store has at most two: a third could start an automatic
    // compaction.
    for (int round = 1; round <= 2; round++) {
      fill(round);
      answers("written in round " + round);
      out.does("flush", () -> admin.flush(name));
      files();
      unchanged("flushed");
    }
    fill(3);
    answers("written in round 3");
    out.does("flush", () -> admin.flush(name));
    unchanged("flushed");
    out.does("compact", () -> admin.compact(name));
    s.awaitCompactions(name);
    unchanged("compacted");
    out.does("major compact", () -> s.majorCompact(name));
    files();
    unchanged("major compacted");
    out.see("compaction state", () -> admin.getCompactionState(name));
    fill(4);
    answers("written over compacted files");
    out.does("flush", () -> admin.flush(name));
    unchanged("flushed");
    out.does("major compact", () -> s.majorCompact(name));
    files();
    unchanged("major compacted");
    out.does("major compact once more", () -> s.majorCompact(name));
    files();
    unchanged("major compacted");
  }

  /** Each round writes new rows, newer and older versions, and deletes of all kinds. */
  private void fill(int round) throws Exception {
    List<Put> puts = new ArrayList<>();
    for (int row = 0; row < 400; row++) {
      String name = String.format("%c%03d", row % 2 == 0 ? 'a' : 'z', row);
      if (row % 4 != round % 4) {
        puts.add(put(name, "f:a@" + (round * 10 + row % 3) + "=" + round + "." + row, "f:b@" + (100 - round) + "=" + round));
      }
      if (row % 7 == round) {
        puts.add(put(name, "g:c@50=" + round));
      }
    }
    table.put(puts);
    table.delete(delete("a00" + 2 * round).addColumns(b("f"), b("a"), round * 10));
    table.delete(delete("a01" + 2 * (round % 5)).addFamily(b("f"), round * 10));
    table.delete(delete("z10" + (2 * round - 1)).addColumn(b("f"), b("b"), 99));
    table.delete(delete("z11" + (2 * round - 1)).addFamilyVersion(b("g"), 50));
  }

  private void files() {
    out.see("files", () -> s.storeFiles(name));
  }

  private void answers(String when) throws Exception {
    lastAnswers = ask();
    out.line("answers, " + when + ":");
    lastAnswers.forEach(answer -> out.line("  " + answer));
  }

  private void unchanged(String when) {
    out.see("answers unchanged, " + when, () -> {
      List<String> now = ask();
      return now.equals(lastAnswers) ? "yes" : "no: " + now;
    });
  }

  /**
   * Reads that must not depend on the location of cells; versions of f are within the family's
   * limit.
   */
  private List<String> ask() throws Exception {
    List<String> answers = new ArrayList<>();
    answers.add(Show.value(Rows.all(table, new Scan())));
    answers.add(Show.value(Rows.all(table, new Scan().readAllVersions())));
    answers.add(Show.value(Rows.all(table, new Scan().setReversed(true).setCaching(33))));
    answers.add(Show.value(Rows.all(table, new Scan().addFamily(b("g")))));
    answers.add(Show.value(Rows.all(table, new Scan().addColumn(b("f"), b("b")).setLimit(5))));
    for (String row : List.of("a002", "a004", "a006", "a012", "a014", "z101", "z103", "z113", "z399", "nosuch")) {
      answers.add(Show.value(table.get(get(row).readAllVersions())));
      answers.add(Show.value(table.get(get(row).addColumn(b("f"), b("a")))));
    }
    return answers;
  }

  private void byRegion() throws Exception {
    out.topic("by region, by family and by server");
    fill(5);
    answers("written");
    RegionInfo first = admin.getRegions(name).get(0);
    RegionInfo second = admin.getRegions(name).get(1);
    out.does("flush a region", () -> admin.flushRegion(first.getRegionName()));
    files();
    out.does("flush the other by its short name", () -> admin.flushRegion(second.getEncodedNameAsBytes()));
    files();
    unchanged("flushed");
    s.majorCompact(name);
    fill(6);
    answers("written");
    out.does("flush a family", () -> admin.flush(name, b("g")));
    files();
    out.does("flush the rest", () -> admin.flush(name));
    files();
    unchanged("flushed");
    out.does("compact a region", () -> admin.compactRegion(first.getRegionName()));
    out.does("compact a family", () -> admin.compact(name, b("f")));
    out.does("major compact a family", () -> admin.majorCompact(name, b("g")));
    out.does("major compact a region", () -> admin.majorCompactRegion(second.getRegionName()));
    out.see("a region's compaction state is known", () -> admin.getCompactionStateForRegion(first.getRegionName()) != null);
    s.awaitCompactions(name);
    unchanged("compacted in parts");
    s.majorCompact(name);
    files();
    unchanged("compacted");
  }

  private void refused() {
    out.topic("refused");
    out.does("flush a table that does not exist", () -> admin.flush(s.name("nosuch")));
    out.does("flush a family that does not exist", () -> admin.flush(name, b("nosuch")));
    out.does("compact a table that does not exist", () -> admin.compact(s.name("nosuch")));
    out.does("compact a family that does not exist", () -> admin.compact(name, b("nosuch")));
    out.does("flush a region that does not exist", () -> admin.flushRegion(b("nosuch")));
    out.does("compaction state of a table that does not exist", () -> admin.getCompactionState(s.name("nosuch")));
  }

  private void reopened() throws Exception {
    out.topic("disabled and enabled");
    fill(7);
    answers("written");
    admin.disableTable(name);
    admin.enableTable(name);
    unchanged("reopened");
    fill(3);
    answers("written");
    admin.flush(name);
    unchanged("flushed");
  }
}
