package compat;

import static compat.Rows.b;
import static compat.Rows.bytes;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/**
 * The life of a table: created, listed, disabled, enabled, deleted; and the responses to calls in a
 * wrong order.
 */
final class Tables implements Suite {
  private Session s;
  private Admin admin;
  private Transcript out;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    creation();
    splitKeys();
    creationRefused();
    badNames();
    listing();
    disabling();
    disabledTable();
    missingTable();
    deletion();
    futures();
    systemTables();
  }

  private void creation() {
    TableName name = s.name("life");
    out.topic("creation");
    out.see("does it exist before", () -> admin.tableExists(name));
    out.does("create", () -> admin.createTable(s.descriptor(name, "f")));
    out.see("does it exist after", () -> admin.tableExists(name));
    out.see("enabled, disabled, available", () -> Arrays.asList(admin.isTableEnabled(name),
        admin.isTableDisabled(name), admin.isTableAvailable(name)));
    out.see("regions", () -> admin.getRegions(name));
    out.does("create with 30 families", () -> admin.createTable(manyFamilies(30)));
    out.see("its families", () -> admin.getDescriptor(s.name("families")).getColumnFamilyNames().size());
    out.see("a cell in each of them", () -> {
      try (Table table = s.connection.getTable(s.name("families"))) {
        for (int at = 0; at < 30; at++) {
          table.put(put("r", "family" + at + ":q@5=v" + at));
        }
        return table.get(get("r"));
      }
    });
  }

  private TableDescriptor manyFamilies(int count) {
    String[] families = new String[count];
    for (int at = 0; at < count; at++) {
      families[at] = "family" + at;
    }
    return s.descriptor(s.name("families"), families);
  }

  private void splitKeys() {
    out.topic("split keys");
    out.does("create with three", () -> admin.createTable(s.descriptor(s.name("split"), "f"),
        bytes("d", "m\\x00", "\\xFF")));
    out.see("its regions", () -> admin.getRegions(s.name("split")));
    out.does("create with keys out of order", () -> admin.createTable(s.descriptor(s.name("unordered"), "f"),
        bytes("m", "d")));
    out.see("its regions", () -> admin.getRegions(s.name("unordered")));
    out.does("create with a start, an end and a count", () -> admin.createTable(
        s.descriptor(s.name("counted"), "f"), b("a"), b("e"), 4));
    out.see("its regions", () -> admin.getRegions(s.name("counted")));
    out.does("create with an empty list", () -> admin.createTable(s.descriptor(s.name("nosplit"), "f"),
        new byte[0][]));
    out.see("its regions", () -> admin.getRegions(s.name("nosplit")));
    out.does("create with the same key twice", () -> admin.createTable(s.descriptor(s.name("twice"), "f"),
        bytes("d", "d")));
    out.does("create with an empty key", () -> admin.createTable(s.descriptor(s.name("emptykey"), "f"),
        bytes("", "d")));
    out.see("were they made", () -> Arrays.asList(admin.tableExists(s.name("twice")),
        admin.tableExists(s.name("emptykey"))));
    out.does("create with 100 keys", () -> admin.createTable(s.descriptor(s.name("hundred"), "f"), numbers(100)));
    out.see("its regions", () -> admin.getRegions(s.name("hundred")).size());
  }

  private static byte[][] numbers(int count) {
    byte[][] keys = new byte[count][];
    for (int at = 0; at < count; at++) {
      keys[at] = b(String.format("%05d", at + 1));
    }
    return keys;
  }

  private void creationRefused() {
    out.topic("creation refused");
    out.doesMessage("a table that exists", () -> admin.createTable(s.descriptor(s.name("life"), "f")));
    out.does("no families", () -> admin.createTable(s.descriptor(s.name("attempt"))));
    out.doesMessage("a namespace that does not exist",
        () -> admin.createTable(s.descriptor(TableName.valueOf("compat_nowhere", "t"), "f")));
    tableRefused("a file size that would split all the time", builder -> builder.setMaxFileSize(1024));
    tableRefused("a flush size that would flush all the time", builder -> builder.setMemStoreFlushSize(1024));
    tableRefused("an unknown split policy", builder -> builder.setRegionSplitPolicyClassName("no.such.Policy"));
    tableRefused("no replicas", builder -> builder.setValue("REGION_REPLICATION", "0"));
    out.does("an unknown coprocessor", () -> admin.createTable(
        builder("coprocessor").setCoprocessor("no.such.Observer").build()));
    familyRefused("blocks of 16 bytes", "BLOCKSIZE", "16");
    familyRefused("blocks of 32 MiB", "BLOCKSIZE", "33554432");
    familyRefused("a time to live of 0", "TTL", "0");
    familyRefused("more versions at least than at most", "MIN_VERSIONS", "5");
    familyRefused("minus one version at least", "MIN_VERSIONS", "-1");
    familyRefused("a replication scope of -1", "REPLICATION_SCOPE", "-1");
    familyRefused("replicas of -1", "DFS_REPLICATION", "-1");
    familyRefused("a prefix bloom filter without a length", "BLOOMFILTER", "ROWPREFIX_FIXED_LENGTH");
    tableRefused("the file size again with checks turned off", builder -> builder.setMaxFileSize(1024)
        .setValue("hbase.table.sanity.checks", "false"));
  }

  private TableDescriptorBuilder builder(String name) {
    return TableDescriptorBuilder.newBuilder(s.name(name)).setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"));
  }

  private void tableRefused(String what, UnaryOperator<TableDescriptorBuilder> change) {
    attempt(what, change.apply(builder("attempt")).build());
  }

  private void attempt(String what, TableDescriptor descriptor) {
    out.does(what, () -> {
      admin.createTable(descriptor);
      s.drop(descriptor.getTableName());
    });
  }

  /** Sets the attribute as bytes, bypassing the checks of the client's builder. */
  private void familyRefused(String what, String attribute, String value) {
    attempt(what, TableDescriptorBuilder.newBuilder(s.name("attempt"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setValue(attribute, value).build()).build());
  }

  private void badNames() {
    out.topic("names");
    for (String name : List.of("a b", "-t", ".t", "t$", "", "ns:", ":t", "a:b:c", "t\u00e4st")) {
      out.see("table \"" + name + "\"", () -> TableName.valueOf(name).getNameAsString().length());
    }
    for (String name : List.of("", "f:g", ".f", "recovered.edits", "f g", "f/g", "f\\x01")) {
      out.see("family \"" + name + "\"", () -> ColumnFamilyDescriptorBuilder.of(b(name)).getNameAsString());
    }
    out.does("create with dots, dashes and digits", () -> admin.createTable(s.descriptor(s.name("9.a-b_c"), "f")));
    out.see("does it exist", () -> admin.tableExists(s.name("9.a-b_c")));
  }

  private void listing() {
    out.topic("listing");
    out.see("names that match", () -> admin.listTableNames(s.ownTables()));
    out.see("a pattern for one", () -> admin.listTableNames(Pattern.compile("compat_tables_l.fe")));
    out.see("a pattern for a part of the name", () -> admin.listTableNames(Pattern.compile("tables_life")));
    out.see("a pattern for none", () -> admin.listTableNames(Pattern.compile("compat_no_such.*")));
    out.see("all names hold ours", () -> Arrays.asList(admin.listTableNames()).contains(s.name("life")));
    out.see("all names hold meta", () -> Arrays.asList(admin.listTableNames()).contains(TableName.META_TABLE_NAME));
    out.see("of a namespace", () -> Arrays.asList(admin.listTableNamesByNamespace("default"))
        .contains(s.name("life")));
    out.see("descriptors that match", () -> names(admin.listTableDescriptors(s.ownTables())));
    out.see("descriptors of names", () -> names(admin.listTableDescriptors(
        List.of(s.name("split"), s.name("nosuch"), s.name("life")))));
    out.see("all descriptors hold ours", () -> names(admin.listTableDescriptors()).contains(s.name("life")));
    out.see("descriptors of a namespace", () -> names(admin.listTableDescriptorsByNamespace(b("default")))
        .contains(s.name("life")));
  }

  private static List<TableName> names(List<TableDescriptor> descriptors) {
    List<TableName> names = new ArrayList<>();
    descriptors.forEach(descriptor -> names.add(descriptor.getTableName()));
    return names;
  }

  private void disabling() throws Exception {
    TableName name = s.name("life");
    out.topic("disabling and enabling");
    try (Table table = s.connection.getTable(name)) {
      table.put(put("r", "f:q@5=kept"));
    }
    out.doesMessage("enable what is enabled", () -> admin.enableTable(name));
    out.doesMessage("delete what is enabled", () -> admin.deleteTable(name));
    out.does("disable", () -> admin.disableTable(name));
    out.see("enabled, disabled, available", () -> Arrays.asList(admin.isTableEnabled(name),
        admin.isTableDisabled(name), admin.isTableAvailable(name)));
    out.see("does it exist", () -> admin.tableExists(name));
    out.see("is it listed", () -> admin.listTableNames(Pattern.compile("compat_tables_life")));
    out.see("regions", () -> admin.getRegions(name));
    out.see("families", () -> admin.getDescriptor(name).getColumnFamilyNames().size());
    out.doesMessage("disable what is disabled", () -> admin.disableTable(name));
    out.doesMessage("create what is disabled", () -> admin.createTable(s.descriptor(name, "f")));
    out.does("enable", () -> admin.enableTable(name));
    out.see("enabled, disabled, available", () -> Arrays.asList(admin.isTableEnabled(name),
        admin.isTableDisabled(name), admin.isTableAvailable(name)));
    out.see("its row", () -> {
      try (Table table = s.connection.getTable(name)) {
        return table.get(get("r"));
      }
    });
    out.does("disable and enable one of many regions", () -> {
      admin.disableTable(s.name("hundred"));
      admin.enableTable(s.name("hundred"));
    });
    out.see("its regions", () -> admin.getRegions(s.name("hundred")).size());
  }

  private void disabledTable() throws Exception {
    TableName name = s.name("off");
    out.topic("data of a disabled table");
    admin.createTable(s.descriptor(name, "f"));
    // A connection that gives up soon: some clients retry here, and only the final response is of
    // interest.
    try (Connection hasty = s.connect("hbase.client.retries.number", "2"); Table table = hasty.getTable(name)) {
      table.put(put("r", "f:q@5=v"));
      admin.disableTable(name);
      out.does("get", () -> table.get(get("r")));
      out.does("put", () -> table.put(put("r", "f:q@6=v")));
      out.does("scan", () -> Rows.all(table, new Scan()));
      out.does("get of several", () -> table.get(List.of(get("r"), get("s"))));
      out.does("flush", () -> admin.flush(name));
      admin.enableTable(name);
      out.see("get after it was enabled", () -> table.get(get("r")));
    }
  }

  private void missingTable() throws Exception {
    TableName name = s.name("nosuch");
    out.topic("a table that does not exist");
    out.doesMessage("enable", () -> admin.enableTable(name));
    out.doesMessage("disable", () -> admin.disableTable(name));
    out.doesMessage("delete", () -> admin.deleteTable(name));
    out.doesMessage("describe", () -> admin.getDescriptor(name));
    out.does("is it enabled", () -> admin.isTableEnabled(name));
    out.does("is it disabled", () -> admin.isTableDisabled(name));
    out.see("is it available", () -> admin.isTableAvailable(name));
    out.see("regions", () -> admin.getRegions(name));
    out.does("flush", () -> admin.flush(name));
    out.does("compact", () -> admin.compact(name));
    try (Table table = s.connection.getTable(name)) {
      out.does("get", () -> table.get(get("r")));
      out.does("put", () -> table.put(put("r", "f:q=v")));
      out.does("scan", () -> Rows.all(table, new Scan()));
      out.does("delete a row", () -> table.delete(Rows.delete("r")));
      out.does("batch", () -> table.batch(List.of(get("r")), new Object[1]));
      out.does("describe it by the table", table::getDescriptor);
    }
    try (var locator = s.connection.getRegionLocator(name)) {
      out.does("locate", () -> locator.getRegionLocation(b("r")));
    }
  }

  private void deletion() throws Exception {
    TableName name = s.name("life");
    out.topic("deletion");
    out.does("disable", () -> admin.disableTable(name));
    out.does("delete", () -> admin.deleteTable(name));
    out.see("does it exist", () -> admin.tableExists(name));
    out.see("is it listed", () -> admin.listTableNames(Pattern.compile("compat_tables_life")));
    out.doesMessage("delete again", () -> admin.deleteTable(name));
    out.does("create it anew with another family", () -> admin.createTable(s.descriptor(name, "g")));
    try (Table table = s.connection.getTable(name)) {
      out.see("its old row", () -> table.get(get("r")));
      out.does("its old family", () -> table.put(put("r", "f:q@5=v")));
      table.put(put("r", "g:q@5=new"));
      out.see("its new row", () -> table.get(get("r")));
    }
  }

  private void futures() throws Exception {
    TableName name = s.name("future");
    out.topic("procedures that are polled");
    out.see("create", () -> admin.createTableAsync(s.descriptor(name, "f"), bytes("m")).get(60, TimeUnit.SECONDS));
    out.see("regions", () -> admin.getRegions(name));
    out.see("disable", () -> admin.disableTableAsync(name).get(60, TimeUnit.SECONDS));
    out.see("is it disabled", () -> admin.isTableDisabled(name));
    out.see("enable", () -> admin.enableTableAsync(name).get(60, TimeUnit.SECONDS));
    out.see("enable again", () -> admin.enableTableAsync(name).get(60, TimeUnit.SECONDS));
    out.see("disable", () -> admin.disableTableAsync(name).get(60, TimeUnit.SECONDS));
    out.see("delete", () -> admin.deleteTableAsync(name).get(60, TimeUnit.SECONDS));
    out.see("does it exist", () -> admin.tableExists(name));
  }

  private void systemTables() {
    out.topic("system tables");
    out.see("listed", () -> admin.listTableNames(Pattern.compile("hbase:.*"), true));
    out.see("not listed unless asked for", () -> admin.listTableNames(Pattern.compile("hbase:.*"), false));
    out.see("does meta exist", () -> admin.tableExists(TableName.META_TABLE_NAME));
    out.see("is meta enabled", () -> admin.isTableEnabled(TableName.META_TABLE_NAME));
    out.see("meta", () -> admin.getDescriptor(TableName.META_TABLE_NAME));
    out.see("its region", () -> admin.getRegions(TableName.META_TABLE_NAME));
    out.does("disable meta", () -> admin.disableTable(TableName.META_TABLE_NAME));
    out.does("delete meta", () -> admin.deleteTable(TableName.META_TABLE_NAME));
  }
}
