package compat;

import static compat.Rows.b;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactType;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.SnapshotType;

/**
 * Limits that a master enforces: quotas of namespaces and the TTL of snapshots; and AdminService
 * calls to a master.
 */
final class Limits implements Suite {
  private static final String TABLES = "hbase.namespace.quota.maxtables";
  private static final String REGIONS = "hbase.namespace.quota.maxregions";
  private static final String SPACE = "compat_limits";
  private Session s;
  private Transcript out;
  private Admin admin;

  @Override
  public Map<String, String> settings() {
    return Map.of("hbase.quota.enabled", "true", "hbase.master.cleaner.snapshot.interval", "1000");
  }

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    admin = session.admin;
    s.await("hbase:quota", () -> admin.isTableAvailable(TableName.valueOf("hbase:quota")));
    clear();
    values();
    tables();
    regions();
    clear();
    snapshots();
    master();
  }

  private void clear() throws Exception {
    for (NamespaceDescriptor space : admin.listNamespaceDescriptors()) {
      if (space.getName().startsWith(SPACE)) {
        for (TableName table : admin.listTableNamesByNamespace(space.getName())) {
          drop(table);
        }
        admin.deleteNamespace(space.getName());
      }
    }
  }

  private void drop(TableName table) throws Exception {
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
    admin.deleteTable(table);
  }

  private static NamespaceDescriptor space(String... settings) {
    NamespaceDescriptor.Builder space = NamespaceDescriptor.create(SPACE);
    for (int at = 0; at < settings.length; at += 2) {
      space.addConfiguration(settings[at], settings[at + 1]);
    }
    return space.build();
  }

  private static TableName in(String table) {
    return TableName.valueOf(SPACE, table);
  }

  private void values() {
    out.topic("values of a namespace's quotas");
    for (String key : List.of(TABLES, REGIONS)) {
      for (String value : List.of("x", "-1", "0", "1.5")) {
        out.see("create with " + key + " = " + value, () -> outcome(() -> admin.createNamespace(space(key, value))));
      }
    }
    out.does("create", () -> admin.createNamespace(space(TABLES, "2", REGIONS, "5")));
    for (String value : List.of("x", "-1", "0")) {
      out.see("modify to " + value, () -> outcome(() -> admin.modifyNamespace(space(TABLES, value))));
    }
    out.see("describe", () -> admin.getNamespaceDescriptor(SPACE).getConfiguration());
  }

  /**
   * HBase refuses values that are not numbers with a DoNotRetryIOException, and other values with a
   * ConstraintException, a subclass of it.
   */
  private static String outcome(Transcript.Action action) throws Exception {
    try {
      action.run();
      return "ok";
    } catch (DoNotRetryIOException refused) {
      return "refused";
    }
  }

  private void tables() {
    out.topic("tables of a namespace");
    out.does("the first", () -> admin.createTable(s.descriptor(in("a"), "f")));
    out.does("the second", () -> admin.createTable(s.descriptor(in("b"), "f")));
    out.doesMessage("one too many", () -> admin.createTable(s.descriptor(in("c"), "f")));
    out.does("one that exists", () -> admin.createTable(s.descriptor(in("a"), "f")));
    out.does("a snapshot", () -> admin.snapshot("compat_limits_s", in("a")));
    out.does("a clone too many", () -> admin.cloneSnapshot("compat_limits_s", in("c")));
    out.does("a clone in another namespace", () -> admin.cloneSnapshot("compat_limits_s", s.name("clone")));
    out.does("disable one", () -> admin.disableTable(in("a")));
    out.does("restore it", () -> admin.restoreSnapshot("compat_limits_s"));
    out.does("truncate it", () -> admin.truncateTable(in("a"), true));
    out.does("drop one", () -> drop(in("b")));
    out.does("a clone in its place", () -> admin.cloneSnapshot("compat_limits_s", in("c")));
    out.does("drop the clone", () -> drop(in("c")));
    out.does("delete the snapshot", () -> admin.deleteSnapshot("compat_limits_s"));
  }

  private void regions() throws Exception {
    out.topic("regions of a namespace");
    out.does("more regions than are left", () ->
        admin.createTable(s.descriptor(in("r"), "f"), new byte[][] {b("b"), b("d"), b("f"), b("h")}));
    out.does("as many as are left", () ->
        admin.createTable(s.descriptor(in("r"), "f"), new byte[][] {b("b"), b("d"), b("f")}));
    out.see("regions", () -> admin.getRegions(in("r")).size());
    out.does("a split too many", () ->
        admin.splitRegionAsync(admin.getRegions(in("r")).get(0).getRegionName(), b("a")).get());
    out.see("regions", () -> admin.getRegions(in("r")).size());
    out.does("a higher limit", () -> admin.modifyNamespace(space(TABLES, "2", REGIONS, "6")));
    out.does("the same split", () ->
        admin.splitRegionAsync(admin.getRegions(in("r")).get(0).getRegionName(), b("a")).get());
    out.see("regions", () -> admin.getRegions(in("r")).size());
    out.does("a limit below what there is", () -> admin.modifyNamespace(space(TABLES, "1", REGIONS, "1")));
    out.does("one more table", () -> admin.createTable(s.descriptor(in("c"), "f")));
    out.does("no limits any more", () -> admin.modifyNamespace(space("k", "v")));
    out.does("one more table", () -> admin.createTable(s.descriptor(in("c"), "f")));
  }

  private void snapshots() throws Exception {
    TableName name = s.name("expiring");
    out.topic("snapshots that expire");
    s.table("expiring", "f").close();
    out.see("are expired ones removed", () -> admin.isSnapshotCleanupEnabled());
    out.see("switch that off", () -> admin.snapshotCleanupSwitch(false, true));
    out.see("are expired ones removed", () -> admin.isSnapshotCleanupEnabled());
    out.does("one for a second", () ->
        admin.snapshot("compat_limits_short", name, SnapshotType.FLUSH, Map.of("TTL", 1L)));
    out.does("one for a day", () ->
        admin.snapshot("compat_limits_long", name, SnapshotType.FLUSH, Map.of("TTL", 86400L)));
    Thread.sleep(3000);
    out.doesMessage("clone what has expired", () -> admin.cloneSnapshot("compat_limits_short", s.name("late")));
    out.does("clone the other", () -> admin.cloneSnapshot("compat_limits_long", s.name("early")));
    admin.disableTable(name);
    out.doesMessage("restore what has expired", () -> admin.restoreSnapshot("compat_limits_short"));
    out.does("restore the other", () -> admin.restoreSnapshot("compat_limits_long"));
    out.see("switch it on", () -> admin.snapshotCleanupSwitch(true, false));
    s.await("the cleaner", () -> admin.listSnapshots().stream().noneMatch(found -> found.getName().equals("compat_limits_short")));
    out.see("the other is there", () ->
        admin.listSnapshots().stream().anyMatch(found -> found.getName().equals("compat_limits_long")));
    out.does("delete it", () -> admin.deleteSnapshot("compat_limits_long"));
  }

  private void master() throws Exception {
    TableName name = s.name("expiring");
    out.topic("AdminService of a master");
    ServerName master = admin.getMaster();
    out.does("update all configurations", () -> admin.updateConfiguration());
    out.does("update the master's", () -> admin.updateConfiguration(master));
    // Otherwise clients of 3.0 retry for minutes.
    try (Connection hasty = s.connect("hbase.client.retries.number", "1", "hbase.client.pause", "10");
         Admin once = hasty.getAdmin()) {
      out.does("a MOB compaction of a disabled table", () -> once.compact(name, CompactType.MOB));
      admin.enableTable(name);
      out.does("a MOB compaction of a table without MOB", () -> once.compact(name, CompactType.MOB));
      out.does("a MOB compaction of a family without MOB", () -> once.compact(name, b("f"), CompactType.MOB));
      out.does("a major one", () -> once.majorCompact(name, CompactType.MOB));
    }
    out.see("the state of MOB compactions", () -> admin.getCompactionState(name, CompactType.MOB));
    out.does("roll its log", () -> admin.rollWALWriter(master));
    out.does("a procedure that is not known", () -> {
      if (admin.abortProcedureAsync(987654321L, true).get()) {
        throw new IllegalStateException("aborted");
      }
    });
  }
}
