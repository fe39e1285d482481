package compat;

import static compat.Rows.b;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Regions that are split and merged by calls: their rows, those of hbase:meta, the exceptions, the
 * chores that follow.
 */
final class Splits implements Suite {
  private static final long TIDY_PATIENCE_MS = 200_000;

  private Session s;
  private Admin admin;
  private Transcript out;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    switches();
    splits();
    refusedSplits();
    merges();
    refusedMerges();
    wholeTables();
    assignment();
    tidying();
  }

  private void switches() {
    out.topic("switches");
    out.see("split", () -> admin.isSplitEnabled());
    out.see("merge", () -> admin.isMergeEnabled());
    out.see("split off", () -> admin.splitSwitch(false, true));
    out.see("split", () -> admin.isSplitEnabled());
    out.see("merge", () -> admin.isMergeEnabled());
    out.see("split off again", () -> admin.splitSwitch(false, false));
    out.see("split on", () -> admin.splitSwitch(true, true));
    out.see("merge off", () -> admin.mergeSwitch(false, true));
    out.see("merge on", () -> admin.mergeSwitch(true, false));
    out.see("split", () -> admin.isSplitEnabled());
    out.see("catalog janitor", () -> admin.isCatalogJanitorEnabled());
    out.see("catalog janitor off", () -> admin.catalogJanitorSwitch(false));
    out.see("catalog janitor", () -> admin.isCatalogJanitorEnabled());
    out.see("run while off", () -> admin.runCatalogJanitor());
    out.see("catalog janitor on", () -> admin.catalogJanitorSwitch(true));
    out.see("cleaner", () -> admin.isCleanerChoreEnabled());
    out.see("cleaner off", () -> admin.cleanerChoreSwitch(false));
    out.see("cleaner", () -> admin.isCleanerChoreEnabled());
    // The response depends on whether it already runs.
    out.does("run while off", () -> admin.runCleanerChore());
    out.see("cleaner on", () -> admin.cleanerChoreSwitch(true));
    out.does("run", () -> admin.runCleanerChore());
  }

  private void splits() throws Exception {
    TableName name = s.name("main");
    out.topic("split");
    try (Table table = s.table(keepingFiles("main", "f", "g"))) {
      fill(table, 0, 60);
      admin.flush(name);
      fill(table, 20, 100);
      table.delete(Rows.delete("55"));
      out.see("at a row", () -> split(name, 0, "50"));
      look(name, table);
      meta("rows of hbase:meta", name);
      out.see("row on the left", () -> table.get(Rows.get("49")));
      out.see("row on the right", () -> table.get(Rows.get("50")));
      out.see("row that was deleted", () -> table.get(Rows.get("55")));
      table.put(put("50", "f:q@5=new"));
      out.see("row that was changed", () -> table.get(Rows.get("50")));
      out.see("scan over the border", () -> Rows.all(table, new Scan().withStartRow(b("48")).withStopRow(b("52"))));
      out.see("limit", () -> Rows.all(table, new Scan().withStartRow(b("48")).setLimit(4)).size());
      try (RegionLocator locator = s.connection.getRegionLocator(name)) {
        out.see("locations", () -> locator.getAllRegionLocations().stream().map(at -> Show.region(at.getRegion())).toList());
      }
      out.see("the server's regions", () -> serversRegions(name));
      out.see("table is available", () -> admin.isTableAvailable(name));
      out.see("regions by metrics", () -> admin.getClusterMetrics().getTableRegionStatesCount().get(name).getOpenRegions());
      out.does("disable", () -> admin.disableTable(name));
      meta("rows while disabled", name);
      out.does("enable", () -> admin.enableTable(name));
      look(name, table);
      out.does("flush", () -> admin.flush(name));
      out.does("snapshot", () -> admin.snapshot("compat_splits_snap", name));
      out.does("clone", () -> admin.cloneSnapshot("compat_splits_snap", s.name("cloned")));
      try (Table clone = s.connection.getTable(s.name("cloned"))) {
        out.see("rows of the clone", () -> Rows.all(clone, new Scan()));
        out.see("regions of the clone", () -> admin.getRegions(s.name("cloned")));
      }
      admin.deleteSnapshot("compat_splits_snap");
      out.does("disable", () -> admin.disableTable(name));
      out.does("truncate", () -> admin.truncateTable(name, true));
      meta("rows of hbase:meta", name);
      out.see("rows", () -> Rows.all(table, new Scan()));
    }
  }

  private void refusedSplits() throws Exception {
    TableName name = s.name("refused");
    out.topic("splits that are refused");
    try (Table table = s.table(keepingFiles("refused", "f"), "3", "6")) {
      out.seeMessage("of an empty region", () -> split(name, 1, null));
      fill(table, 0, 90);
      out.seeMessage("at its start", () -> split(name, 1, "3"));
      out.seeMessage("at its end", () -> split(name, 1, "6"));
      out.seeMessage("before it", () -> split(name, 1, "1"));
      out.seeMessage("behind it", () -> split(name, 1, "9"));
      out.seeMessage("at an empty row", () -> split(name, 1, ""));
      out.seeMessage("of a region that is not there", () -> admin.splitRegionAsync(
          b("compat_splits_refused,,1.00000000000000000000000000000000."), b("1")).get(60, TimeUnit.SECONDS));
      RegionInfo parent = admin.getRegions(name).get(1);
      out.see("at a row", () -> split(name, 1, "4"));
      out.seeMessage("of a parent", () -> split(parent, "5"));
      out.see("regions", () -> admin.getRegions(name));
      admin.flush(name);
      out.seeMessage("of a daughter", () -> split(name, 2, "5"));
      out.see("regions", () -> admin.getRegions(name));
      out.see("rows", () -> Rows.all(table, new Scan()));
      admin.splitSwitch(false, true);
      out.seeMessage("while the switch is off", () -> split(name, 0, "1"));
      admin.splitSwitch(true, true);
      admin.disableTable(name);
      out.seeMessage("of a disabled table", () -> split(name, 0, "1"));
      admin.enableTable(name);
      out.see("regions", () -> admin.getRegions(name));
    }
    TableName referring = s.name("referring");
    try (Table table = s.table(keepingFiles("referring", "f"))) {
      fill(table, 0, 90);
      admin.flush(referring);
      out.see("at a row", () -> split(referring, 0, "4"));
      out.seeMessage("of a daughter with references", () -> split(referring, 1, "6"));
      out.seeMessage("the same by the middle", () -> split(referring, 1, null));
      out.see("regions", () -> admin.getRegions(referring));
    }
    out.seeMessage("of hbase:meta", () -> admin.splitRegionAsync(b("hbase:meta,,1"), b("m")).get(60, TimeUnit.SECONDS));
  }

  private void merges() throws Exception {
    TableName name = s.name("merged");
    out.topic("merge");
    try (Table table = s.table(keepingFiles("merged", "f", "g"), "1", "2", "3", "4", "5", "6", "7")) {
      fill(table, 0, 50);
      admin.flush(name);
      fill(table, 30, 90);
      out.see("two", () -> merge(false, name, 0, 1));
      look(name, table);
      meta("rows of hbase:meta", name);
      out.seeMessage("three, in no order", () -> merge(false, name, 3, 1, 2));
      out.see("three", () -> merge(false, name, 1, 2, 3));
      look(name, table);
      meta("rows of hbase:meta", name);
    }
  }

  // Not tested: forced merges of regions that are not adjacent. HBase merges them and leaves
  // overlapping regions; Grampus refuses.
  private void refusedMerges() throws Exception {
    TableName name = s.name("unmerged");
    out.topic("merges that are refused");
    try (Table table = s.table(keepingFiles("unmerged", "f"), "2", "4", "6", "8");
        Table other = s.table(keepingFiles("other", "f"))) {
      fill(table, 0, 100);
      fill(other, 0, 100);
      admin.flush(name);
      out.seeMessage("none", () -> merge(false, name));
      out.seeMessage("one", () -> merge(false, name, 0));
      out.seeMessage("one twice", () -> merge(false, name, 0, 0));
      out.seeMessage("one twice by force", () -> merge(true, name, 0, 0));
      out.seeMessage("that are apart", () -> merge(false, name, 0, 2));
      // Java's client of 3.0 names the two in any order.
      out.see("of two tables", () -> admin.mergeRegionsAsync(new byte[][] {
          admin.getRegions(name).get(0).getEncodedNameAsBytes(),
          admin.getRegions(s.name("other")).get(0).getEncodedNameAsBytes()}, true).get(60, TimeUnit.SECONDS));
      out.seeMessage("one that is not there", () -> admin.mergeRegionsAsync(new byte[][] {
          admin.getRegions(name).get(0).getEncodedNameAsBytes(),
          b("00000000000000000000000000000000")}, false).get(60, TimeUnit.SECONDS));
      admin.mergeSwitch(false, true);
      out.seeMessage("while the switch is off", () -> merge(false, name, 0, 1));
      admin.mergeSwitch(true, true);
      admin.disableTable(name);
      out.seeMessage("of a disabled table", () -> merge(false, name, 0, 1));
      admin.enableTable(name);
      out.see("two", () -> merge(false, name, 0, 1));
      out.seeMessage("a merged one with the next", () -> merge(false, name, 0, 1));
      out.seeMessage("the split of a merged one", () -> split(name, 0, "1"));
      out.see("a split", () -> split(name, 3, "9"));
      out.seeMessage("daughters with references", () -> merge(false, name, 3, 4));
      out.see("regions", () -> admin.getRegions(name));
      out.see("rows", () -> Rows.all(table, new Scan()));
      meta("rows of hbase:meta", name);
      admin.disableTable(name);
      out.does("delete the table", () -> admin.deleteTable(name));
      meta("rows of hbase:meta", name);
    }
  }

  /** Calls that name a table, not a region: they return when every region has been called. */
  private void wholeTables() throws Exception {
    TableName name = s.name("whole");
    out.topic("whole tables");
    try (Table table = s.table(s.descriptor(name, "f"), "4")) {
      fill(table, 0, 80);
      out.does("split at a row", () -> admin.split(name, b("2")));
      s.await("three regions", () -> admin.getRegions(name).size() == 3 && admin.isTableAvailable(name));
      out.see("regions", () -> admin.getRegions(name));
      out.does("split a table that is not there", () -> admin.split(s.name("nosuch"), b("2")));
      out.see("rows", () -> Rows.all(table, new Scan()));
    }
    TableName middle = s.name("middle");
    try (Table table = s.table(s.descriptor(middle, "f"))) {
      for (int row = 0; row < 100; row++) {
        table.put(put(String.format("%02d", row), "f:q@1=" + row).addColumn(b("f"), b("v"), Rows.value(20_000)));
      }
      admin.flush(middle);
      out.does("split in the middle", () -> admin.split(middle));
      s.await("two regions", () -> admin.getRegions(middle).size() == 2 && admin.isTableAvailable(middle));
      out.see("regions", () -> admin.getRegions(middle));
      out.see("rows", () -> Rows.all(table, new Scan().addColumn(b("f"), b("q"))));
    }
  }

  private void assignment() throws Exception {
    TableName name = s.name("assigned");
    out.topic("assignment");
    try (Table table = s.table(s.descriptor(name, "f"), "5")) {
      fill(table, 0, 90);
      RegionInfo region = admin.getRegions(name).get(0);
      out.does("move to any server", () -> admin.move(region.getEncodedNameAsBytes()));
      out.does("move to its server", () -> admin.move(region.getEncodedNameAsBytes(), admin.getRegionServers().iterator().next()));
      out.seeMessage("move a region that is not there", () -> {
        admin.move(b("00000000000000000000000000000000"));
        return "ok";
      });
      out.see("row", () -> table.get(Rows.get("07")));
      out.doesMessage("assign what is open", () -> admin.assign(region.getRegionName()));
      out.does("unassign", () -> admin.unassign(region.getRegionName(), false));
      s.await("the region to be closed", () -> "CLOSED".equals(state(region)));
      out.does("assign", () -> admin.assign(region.getRegionName()));
      s.await("the region to be open", () -> "OPEN".equals(state(region)));
      out.see("row", () -> table.get(Rows.get("07")));
      out.doesMessage("assign a region that is not there",
          () -> admin.assign(b("compat_splits_assigned,,1.00000000000000000000000000000000.")));
      out.doesMessage("unassign a region that is not there",
          () -> admin.unassign(b("compat_splits_assigned,,1.00000000000000000000000000000000."), false));
      meta("rows of hbase:meta", name);
    }
  }

  /**
   * Parents are kept until their files are no longer needed; a test of this must wait for
   * compactions.
   */
  private void tidying() throws Exception {
    TableName name = s.name("tidied");
    out.topic("tidying up");
    try (Table table = s.table(s.descriptor(name, "f"))) {
      fill(table, 0, 90);
      admin.flush(name);
      out.see("split", () -> split(name, 0, "5"));
      out.see("parent is archived", () -> tidy(() -> rows(name).size() == 3));
      meta("rows of hbase:meta", name);
      out.see("merge", () -> merge(false, name, 0, 1));
      out.see("merged region stands alone", () -> tidy(() -> !meta(name).toString().contains("merge0")));
      meta("rows of hbase:meta", name);
      out.see("split", () -> split(name, 0, "3"));
      out.see("parent is archived", () -> tidy(() -> rows(name).size() == 3));
      out.see("regions", () -> admin.getRegions(name));
      out.see("rows", () -> Rows.all(table, new Scan()));
    }
  }

  private boolean tidy(Callable<Boolean> isTidy) throws Exception {
    long end = System.currentTimeMillis() + TIDY_PATIENCE_MS;
    while (!isTidy.call()) {
      if (System.currentTimeMillis() > end) {
        return false;
      }
      admin.runCatalogJanitor();
      Thread.sleep(500);
    }
    return true;
  }

  /** A table whose files do not change, so that the references in it do not depend on timing. */
  private TableDescriptor keepingFiles(String table, String... families) {
    return TableDescriptorBuilder.newBuilder(s.descriptor(s.name(table), families)).setCompactionEnabled(false).build();
  }

  private static void fill(Table table, int from, int to) throws Exception {
    List<org.apache.hadoop.hbase.client.Put> puts = new ArrayList<>();
    for (int row = from; row < to; row++) {
      puts.add(put(String.format("%02d", row), "f:q@" + (from + 1) + "=" + row));
    }
    table.put(puts);
  }

  private Object split(TableName table, int region, String row) throws Exception {
    return split(admin.getRegions(table).get(region), row);
  }

  private Object split(RegionInfo region, String row) throws Exception {
    return (row == null ? admin.splitRegionAsync(region.getRegionName())
        : admin.splitRegionAsync(region.getRegionName(), b(row))).get(60, TimeUnit.SECONDS);
  }

  private Object merge(boolean forcible, TableName table, int... regions) throws Exception {
    List<RegionInfo> all = admin.getRegions(table);
    byte[][] names = Arrays.stream(regions).mapToObj(at -> all.get(at).getEncodedNameAsBytes()).toArray(byte[][]::new);
    return admin.mergeRegionsAsync(names, forcible).get(60, TimeUnit.SECONDS);
  }

  private void look(TableName name, Table table) {
    out.see("regions", () -> admin.getRegions(name));
    out.see("rows", () -> Rows.all(table, new Scan()));
    out.see("rows reversed", () -> Rows.all(table, new Scan().setReversed(true)));
  }

  private String state(RegionInfo region) throws Exception {
    try (Table meta = s.connection.getTable(TableName.META_TABLE_NAME)) {
      byte[] state = meta.get(new org.apache.hadoop.hbase.client.Get(region.getRegionName())).getValue(b("info"), b("state"));
      return state == null ? "none" : Bytes.toString(state);
    }
  }

  private List<String> serversRegions(TableName name) throws Exception {
    return admin.getRegions(admin.getRegionServers().iterator().next()).stream()
        .filter(region -> region.getTable().equals(name)).map(Show::region).sorted().toList();
  }

  private void meta(String step, TableName name) throws Exception {
    out.line(step + ":");
    meta(name).forEach(row -> out.line("    " + row));
  }

  private List<Result> rows(TableName name) throws Exception {
    Scan scan = new Scan().withStartRow(name.getName()).withStopRow(Bytes.add(name.getName(), b("-")));
    try (Table meta = s.connection.getTable(TableName.META_TABLE_NAME)) {
      return Rows.all(meta, scan);
    }
  }

  /**
   * The rows of a table; regions with the same start key are distinguished by the order of their
   * ids.
   */
  private List<String> meta(TableName name) throws Exception {
    List<Result> rows = rows(name);
    List<Long> ids = new ArrayList<>(new TreeSet<>(rows.stream().map(Splits::id).filter(id -> id > 0).toList()));
    List<String> texts = new ArrayList<>();
    for (Result row : rows) {
      Map<String, String> columns = new TreeMap<>();
      for (Cell cell : row.rawCells()) {
        String column = Bytes.toStringBinary(CellUtil.cloneFamily(cell)) + ":" + Bytes.toStringBinary(CellUtil.cloneQualifier(cell));
        columns.put(column, value(column, CellUtil.cloneValue(cell), ids));
      }
      texts.add(Bytes.toStringBinary(row.getRow()).replaceAll("\\d{13}\\.[0-9a-f]{32}", "<id>.<hash>") + " " + columns);
    }
    return texts;
  }

  private static long id(Result row) {
    String[] parts = Bytes.toStringBinary(row.getRow()).split("[,.]");
    return parts.length < 3 ? 0 : Long.parseLong(parts[parts.length - 2]);
  }

  private String value(String column, byte[] value, List<Long> ids) throws Exception {
    if (column.equals("info:regioninfo") || column.startsWith("info:split") || column.startsWith("info:merge")) {
      RegionInfo region = RegionInfo.parseFrom(value);
      int rank = ids.indexOf(region.getRegionId());
      return Show.region(region) + (rank < 0 ? " gone" : " id " + rank);
    }
    return switch (column) {
      case "info:server", "info:sn" -> "<server>";
      case "info:serverstartcode" -> "<start>";
      case "info:seqnumDuringOpen" -> Bytes.toLong(value) > 1 ? "more than 1" : Long.toString(Bytes.toLong(value));
      default -> Bytes.toStringBinary(value);
    };
  }
}
