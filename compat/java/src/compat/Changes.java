package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** Namespaces, and changes of existing tables: families, attributes, truncation, snapshots. */
final class Changes implements Suite {
  private static final String NAMESPACE = "compat_changes";

  private Session s;
  private Admin admin;
  private Transcript out;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    namespaces();
    families();
    attributes();
    truncation();
    snapshots();
  }

  private void namespaces() {
    TableName inside = TableName.valueOf(NAMESPACE, "t");
    out.topic("namespaces");
    out.does("create", () -> admin.createNamespace(NamespaceDescriptor.create(NAMESPACE).addConfiguration("k", "v").build()));
    out.does("create again", () -> admin.createNamespace(NamespaceDescriptor.create(NAMESPACE).build()));
    out.see("describe", () -> admin.getNamespaceDescriptor(NAMESPACE).getConfiguration());
    out.does("describe one that does not exist", () -> admin.getNamespaceDescriptor("compat_nosuch"));
    out.see("list", () -> Arrays.asList(admin.listNamespaces()).containsAll(List.of("default", "hbase", NAMESPACE)));
    out.does("create a table in it", () -> admin.createTable(s.descriptor(inside, "f")));
    out.see("its tables", () -> admin.listTableNamesByNamespace(NAMESPACE));
    out.see("its name", () -> admin.getDescriptor(inside));
    out.does("delete it while it has a table", () -> admin.deleteNamespace(NAMESPACE));
    out.does("drop the table", () -> s.drop(inside));
    out.does("modify", () -> admin.modifyNamespace(NamespaceDescriptor.create(NAMESPACE).addConfiguration("k", "w").build()));
    out.see("describe", () -> admin.getNamespaceDescriptor(NAMESPACE).getConfiguration());
    out.does("delete", () -> admin.deleteNamespace(NAMESPACE));
    out.does("delete again", () -> admin.deleteNamespace(NAMESPACE));
    out.does("delete the default one", () -> admin.deleteNamespace("default"));
  }

  private void families() throws Exception {
    TableName name = s.name("families");
    out.topic("families");
    try (Table table = s.table("families", "f", "g")) {
      table.put(put("r", "f:q@1=f", "g:q@1=g"));
      out.does("add", () -> admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.of("h")));
      out.does("add one that exists", () -> admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.of("h")));
      out.does("put to it", () -> table.put(put("r", "h:q@1=h")));
      out.does("modify", () -> admin.modifyColumnFamily(name,
          ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(4).build()));
      out.does("modify one that does not exist", () -> admin.modifyColumnFamily(name, ColumnFamilyDescriptorBuilder.of("z")));
      out.does("delete", () -> admin.deleteColumnFamily(name, b("g")));
      out.does("delete one that does not exist", () -> admin.deleteColumnFamily(name, b("z")));
      out.see("descriptor", () -> admin.getDescriptor(name));
      out.see("row", () -> table.get(get("r")));
      out.does("put to what was deleted", () -> table.put(put("r", "g:q@1=v")));
      out.does("of a table that does not exist", () -> admin.addColumnFamily(s.name("nosuch"), ColumnFamilyDescriptorBuilder.of("h")));
    }
  }

  private void attributes() throws Exception {
    TableName name = s.name("attributes");
    out.topic("attributes");
    s.table("attributes", "f").close();
    out.does("modify", () -> admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(name))
        .setMaxFileSize(3L << 30).setValue("note", "changed").build()));
    out.see("descriptor", () -> admin.getDescriptor(name));
    out.does("modify what does not exist", () -> admin.modifyTable(s.descriptor(s.name("nosuch"), "f")));
    out.does("read only", () -> admin.modifyTable(TableDescriptorBuilder.newBuilder(admin.getDescriptor(name))
        .setReadOnly(true).build()));
    try (Table table = s.connection.getTable(name)) {
      out.does("put", () -> table.put(put("r", "f:q@1=v")));
    }
  }

  private void truncation() throws Exception {
    TableName name = s.name("truncated");
    out.topic("truncation");
    try (Table table = s.table(s.descriptor(name, "f"), "m")) {
      table.put(put("r", "f:q@1=v"));
      out.does("while enabled", () -> admin.truncateTable(name, true));
      admin.disableTable(name);
      out.does("keeping splits", () -> admin.truncateTable(name, true));
      out.see("regions", () -> admin.getRegions(name));
      out.see("rows", () -> Rows.all(table, new Scan()).size());
      admin.disableTable(name);
      out.does("dropping splits", () -> admin.truncateTable(name, false));
      out.see("regions", () -> admin.getRegions(name));
    }
  }

  private void snapshots() throws Exception {
    TableName name = s.name("snapped");
    out.topic("snapshots");
    for (var left : admin.listSnapshots(Pattern.compile("compat_.*"))) {
      admin.deleteSnapshot(left.getName());
    }
    try (Table table = s.table(s.descriptor(name, "f"), "m")) {
      table.put(List.of(put("a", "f:q@1=a"), put("z", "f:q@1=z")));
      out.does("take", () -> admin.snapshot("compat_snap", name));
      out.does("take again", () -> admin.snapshot("compat_snap", name));
      table.put(put("b", "f:q@1=later"));
      out.see("list", () -> admin.listSnapshots(Pattern.compile("compat_.*")).stream()
          .map(snapshot -> snapshot.getName() + " of " + snapshot.getTableName()).toList());
      out.does("clone", () -> admin.cloneSnapshot("compat_snap", s.name("cloned")));
      out.see("rows of the clone", () -> {
        try (Table clone = s.connection.getTable(s.name("cloned"))) {
          return Rows.all(clone, new Scan());
        }
      });
      out.does("clone over what exists", () -> admin.cloneSnapshot("compat_snap", s.name("cloned")));
      admin.disableTable(name);
      out.does("restore", () -> admin.restoreSnapshot("compat_snap"));
      admin.enableTable(name);
      out.see("rows", () -> Rows.all(table, new Scan()));
      out.does("of a table that does not exist", () -> admin.snapshot("compat_snap2", s.name("nosuch")));
      out.does("clone one that does not exist", () -> admin.cloneSnapshot("compat_nosuch", s.name("cloned2")));
      out.does("delete", () -> admin.deleteSnapshot("compat_snap"));
      out.does("delete again", () -> admin.deleteSnapshot("compat_snap"));
    }
  }
}
