package compat;

import static compat.Rows.b;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.Size;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.MD5Hash;

/** The location of rows: region locators, the rows of hbase:meta, cluster and region metrics. */
final class Regions implements Suite {
  private Session s;
  private Admin admin;
  private Transcript out;
  private TableName name;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    name = s.name("split");
    s.table(s.descriptor(name, "f", "g"), "b", "m\\x00,", "\\xFF").close();
    locators();
    regionNames();
    metaRows();
    metaByGet();
    clusterMetrics();
    regionMetrics();
  }

  private void locators() throws Exception {
    out.topic("locators");
    try (RegionLocator locator = s.connection.getRegionLocator(name)) {
      out.see("start and end keys", () -> Arrays.asList(keys(locator.getStartKeys()), keys(locator.getEndKeys())));
      out.see("all locations", () -> regions(locator.getAllRegionLocations()));
      for (String row : List.of("\\x00", "a", "azzz", "b", "m", "m\\x00+", "m\\x00,", "z", "\\xFE\\xFF", "\\xFF", "\\xFF\\xFF")) {
        out.see("region of row " + row, () -> locator.getRegionLocation(b(row), true).getRegion());
      }
      out.see("one server holds all", () -> locator.getAllRegionLocations().stream()
          .map(HRegionLocation::getServerName).distinct().toList().equals(new ArrayList<>(admin.getRegionServers())));
      out.see("open sequence numbers are set", () -> locator.getAllRegionLocations().stream()
          .allMatch(location -> location.getSeqNum() > 0));
    }
    try (RegionLocator locator = s.connection.getRegionLocator(TableName.META_TABLE_NAME)) {
      out.see("region of meta", () -> locator.getRegionLocation(b("x")).getRegion().getRegionNameAsString());
    }
  }

  private static String keys(byte[][] keys) {
    return Arrays.stream(keys).map(Show::bytes).toList().toString();
  }

  private static List<String> regions(List<HRegionLocation> locations) {
    return locations.stream().map(location -> Show.region(location.getRegion())).toList();
  }

  private void regionNames() {
    out.topic("region names");
    out.see("regions", () -> admin.getRegions(name));
    out.see("hash of the name", () -> admin.getRegions(name).stream().map(Regions::nameIsWellFormed).toList());
    out.see("the region server's regions", () -> regionServersRegions());
  }

  /** A region name ends in the MD5 of the text before its last part. */
  private static boolean nameIsWellFormed(RegionInfo region) {
    String text = Bytes.toStringBinary(region.getRegionName());
    byte[] bytes = region.getRegionName();
    byte[] hashed = Arrays.copyOf(bytes, bytes.length - region.getEncodedName().length() - 2);
    return text.endsWith("." + region.getEncodedName() + ".")
        && MD5Hash.getMD5AsHex(hashed).equals(region.getEncodedName());
  }

  private List<String> regionServersRegions() throws Exception {
    List<String> found = new ArrayList<>();
    for (ServerName server : admin.getRegionServers()) {
      for (RegionInfo region : admin.getRegions(server)) {
        if (region.getTable().equals(name)) {
          found.add(Show.region(region));
        }
      }
    }
    found.sort(null);
    return found;
  }

  private void metaRows() throws Exception {
    out.topic("rows of hbase:meta");
    // All rows of the table sort between its name and its name followed by the byte after the
    // comma.
    Scan scan = new Scan().withStartRow(name.getName()).withStopRow(Bytes.add(name.getName(), b("-")));
    try (Table meta = s.connection.getTable(TableName.META_TABLE_NAME)) {
      for (Result row : Rows.all(meta, scan)) {
        out.line(Show.normal(Bytes.toStringBinary(row.getRow())) + ":");
        out.line("    " + metaRow(row));
      }
      out.see("reversed", () -> Rows.all(meta, new Scan().withStartRow(Bytes.add(name.getName(), b(",\\xFF\\xFF,:")))
          .withStopRow(name.getName()).setReversed(true).addFamily(b("info"))).size());
      admin.disableTable(name);
      out.see("states when disabled", () -> states(Rows.all(meta, scan)));
      admin.enableTable(name);
      out.see("states when enabled", () -> states(Rows.all(meta, scan)));
    }
  }

  private Map<String, String> metaRow(Result row) throws Exception {
    Map<String, String> columns = new TreeMap<>();
    for (Cell cell : row.rawCells()) {
      String column = Bytes.toStringBinary(CellUtil.cloneFamily(cell)) + ":"
          + Bytes.toStringBinary(CellUtil.cloneQualifier(cell));
      columns.put(column, metaValue(column, CellUtil.cloneValue(cell)));
    }
    return columns;
  }

  private String metaValue(String column, byte[] value) throws Exception {
    ServerName server = admin.getRegionServers().iterator().next();
    return switch (column) {
      case "info:regioninfo" -> Show.region(RegionInfo.parseFrom(value));
      case "info:server" -> Boolean.toString(Bytes.toString(value).equals(server.getHostname() + ":" + server.getPort()));
      case "info:serverstartcode" -> Boolean.toString(Bytes.toLong(value) == server.getStartcode());
      case "info:sn" -> Boolean.toString(Bytes.toString(value).equals(server.getServerName()));
      default -> Bytes.toStringBinary(value);
    };
  }

  private static List<String> states(List<Result> rows) {
    List<String> states = new ArrayList<>();
    for (Result row : rows) {
      byte[] region = row.getValue(b("info"), b("state"));
      byte[] table = row.getValue(b("table"), b("state"));
      states.add(region != null ? Bytes.toString(region) : Bytes.toStringBinary(table));
    }
    return states;
  }

  private void metaByGet() throws Exception {
    out.topic("gets from hbase:meta");
    try (Table meta = s.connection.getTable(TableName.META_TABLE_NAME)) {
      out.see("a table's state", () -> meta.get(new org.apache.hadoop.hbase.client.Get(name.getName())
          .addColumn(b("table"), b("state"))).size());
      out.see("a table that does not exist", () -> meta.get(Rows.get("compat_regions_nosuch")));
      out.does("a family that does not exist", () -> meta.get(Rows.get("x").addFamily(b("nosuch"))));
    }
  }

  private void clusterMetrics() throws Exception {
    out.topic("cluster metrics");
    ClusterMetrics all = admin.getClusterMetrics();
    out.see("live servers", () -> all.getLiveServerMetrics().size());
    out.see("dead servers", all::getDeadServerNames);
    out.see("backup masters", all::getBackupMasterNames);
    out.see("regions in transition", () -> all.getRegionStatesInTransition().size());
    out.see("master is a server name", () -> all.getMasterName().getPort() > 0 && all.getMasterName().getStartcode() > 0);
    out.see("cluster id has the form of a UUID", () -> all.getClusterId().matches("[0-9a-f-]{36}"));
    out.see("version is set", () -> !all.getHBaseVersion().isEmpty());
    out.see("is the balancer on", all::getBalancerOn);
    out.see("servers by name equal live servers", () -> List.copyOf(all.getServersName())
        .equals(List.copyOf(all.getLiveServerMetrics().keySet())));
    out.see("open regions of the table", () -> all.getTableRegionStatesCount().get(name).getOpenRegions());
    out.see("regions of the table", () -> all.getTableRegionStatesCount().get(name).getTotalRegions());
    out.see("only what is asked", () -> admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.CLUSTER_ID))
        .getLiveServerMetrics().size());
    out.see("region servers", () -> admin.getRegionServers().size());
    out.see("master equals", () -> admin.getMaster().equals(all.getMasterName()));
  }

  private void regionMetrics() throws Exception {
    out.topic("region metrics");
    try (Table table = s.connection.getTable(name)) {
      for (int row = 0; row < 100; row++) {
        table.put(put("c" + row, "f:q@1=" + "v".repeat(20_000)));
      }
    }
    out.see("regions", () -> s.regionMetrics(name).size());
    out.see("stores in each", () -> s.regionMetrics(name).stream().map(RegionMetrics::getStoreCount).toList());
    out.see("files before a flush", () -> s.storeFiles(name));
    out.see("memstore holds about 2 MB", () -> s.regionMetrics(name).stream()
        .mapToDouble(region -> region.getMemStoreSize().get(Size.Unit.MEGABYTE)).sum() >= 1);
    out.see("writes were counted", () -> s.regionMetrics(name).stream()
        .mapToLong(RegionMetrics::getWriteRequestCount).sum() >= 100);
    admin.flush(name);
    out.see("files after a flush", () -> s.storeFiles(name));
    out.see("files hold about 2 MB", () -> s.regionMetrics(name).stream()
        .mapToDouble(region -> region.getStoreFileSize().get(Size.Unit.MEGABYTE)).sum() >= 1);
    out.see("names are the regions'", () -> s.regionMetrics(name).stream()
        .map(region -> Show.normal(Bytes.toStringBinary(region.getRegionName()))).sorted().toList());
  }
}
