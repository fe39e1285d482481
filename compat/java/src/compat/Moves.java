package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/** Regions that split, merge and move while clients read and write. */
final class Moves implements Suite {
  @Override
  public void run(Session s) throws Exception {
    Admin admin = s.admin;
    Transcript out = s.out;
    TableName name = s.name("main");
    try (Table table = s.table("main", "f")) {
      for (int row = 0; row < 100; row++) {
        table.put(put(String.format("%02d", row), "f:q@1=" + row));
      }
      out.topic("split");
      out.see("at a row", () -> admin.splitRegionAsync(admin.getRegions(name).get(0).getRegionName(), b("50"))
          .get(60, TimeUnit.SECONDS));
      out.see("regions", () -> admin.getRegions(name));
      out.see("rows", () -> Rows.all(table, new Scan()));
      out.see("rows reversed", () -> Rows.all(table, new Scan().setReversed(true)));
      out.does("at a row that begins a region", () -> admin.splitRegionAsync(
          admin.getRegions(name).get(1).getRegionName(), b("50")).get(60, TimeUnit.SECONDS));
      out.topic("move");
      out.does("to any server", () -> {
        for (RegionInfo region : admin.getRegions(name)) {
          admin.move(region.getEncodedNameAsBytes());
        }
      });
      out.see("row", () -> table.get(get("07")));
    }
    scan(s);
    merge(s);
  }

  /**
   * Moves the region during a scan, which continues at its original read point although rows have
   * changed since.
   */
  private static void scan(Session s) throws Exception {
    TableName name = s.name("scanned");
    s.out.topic("scan across a move");
    try (Table table = s.table("scanned", "f")) {
      for (int row = 0; row < 9; row++) {
        table.put(put("" + row, "f:q@1=old"));
      }
      s.out.see("not flushed before", () -> scanAcrossMove(s, table, 2, () -> { }));
      s.out.see("and from here on", () -> Rows.all(table, new Scan()));
      s.out.see("flushed before", () -> scanAcrossMove(s, table, 3, () -> s.admin.flush(name)));
      s.out.see("and from here on", () -> Rows.all(table, new Scan()));
    }
  }

  private static List<Result> scanAcrossMove(Session s, Table table, int time, Transcript.Action before) throws Exception {
    List<Result> seen = new ArrayList<>();
    try (ResultScanner scanner = table.getScanner(new Scan().setCaching(1))) {
      seen.add(scanner.next());
      table.put(put("3", "f:q@" + time + "=new"));
      table.put(put("4" + time, "f:q@" + time + "=new"));
      table.delete(delete("" + (5 + time)));
      before.run();
      reopen(s.admin, table.getName());
      scanner.forEach(seen::add);
    }
    return seen;
  }

  private static void reopen(Admin admin, TableName name) throws Exception {
    byte[] region = admin.getRegions(name).get(0).getRegionName();
    admin.unassign(region);
    admin.assign(region);
  }

  /**
   * Merges regions that never split: daughters refuse a merge until HBase has cleaned up their
   * parent.
   */
  private static void merge(Session s) throws Exception {
    TableName name = s.name("merged");
    s.out.topic("merge");
    try (Table table = s.table(s.descriptor(name, "f"), "3", "6")) {
      for (int row = 0; row < 9; row++) {
        table.put(put("" + row, "f:q@1=" + row));
      }
      s.out.see("two", () -> {
        List<RegionInfo> regions = s.admin.getRegions(name);
        return s.admin.mergeRegionsAsync(regions.get(0).getEncodedNameAsBytes(),
            regions.get(1).getEncodedNameAsBytes(), false).get(60, TimeUnit.SECONDS);
      });
      s.out.see("regions", () -> s.admin.getRegions(name));
      s.out.see("rows", () -> Rows.all(table, new Scan()));
    }
  }
}
