package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;
import org.apache.hadoop.hbase.security.visibility.Authorizations;
import org.apache.hadoop.hbase.security.visibility.CellVisibility;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Coprocessor calls: MultiRowMutationService where it is loaded, and the responses of coprocessors
 * that are not loaded.
 */
final class Endpoints implements Suite {
  private static final String MULTI_ROW = "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint";
  private static final Stub MULTI_ROW_SERVICE =
      new Stub("MultiRowMutationProtos", "MultiRowMutationService", "MutateRowsRequest");
  private Session s;
  private Transcript out;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    try (Table plain = s.table("plain", "f")) {
      out.topic("a table without coprocessors");
      out.does("rows", () -> mutate(plain, "a", put("a", "f:q@1=a"), put("b", "f:q@1=b")));
    }
    TableDescriptorBuilder loaded = TableDescriptorBuilder.newBuilder(s.name("loaded"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).setCoprocessor(MULTI_ROW);
    try (Table table = s.table(loaded.build(), "m")) {
      out.topic("a table with it");
      out.see("descriptor", () -> s.admin.getDescriptor(s.name("loaded")));
      rows(table);
    }
    out.topic("hbase:meta");
    try (Table meta = s.connection.getTable(TableName.META_TABLE_NAME)) {
      out.does("a row that is not there deleted", () -> mutate(meta, "compat_nosuch,,1", delete("compat_nosuch,,1")));
    }
    attributes();
    permissions();
  }

  private void rows(Table table) throws Exception {
    out.see("two rows", () -> mutate(table, "a", put("a", "f:q@1=a", "g:x@1=x"), put("b", "f:q@1=b")));
    out.see("a put and a delete", () -> mutate(table, "a", put("a", "f:q@2=aa"),
        new Delete(b("b")).addColumns(b("f"), b("q"), 9)));
    out.see("leave", () -> Rows.all(table, new Scan().readAllVersions()));
    out.see("one row twice", () -> mutate(table, "a", put("a", "f:q@3=1"), put("a", "f:r@3=2")));
    out.see("nothing", () -> mutate(table, "a"));
    out.does("a row of another region", () -> mutate(table, "a", put("a", "f:q@4=a"), put("z", "f:q@4=z")));
    out.does("the first one of another region", () -> mutate(table, "a", put("z", "f:q@4=z"), put("a", "f:q@4=a")));
    out.does("a family that is not there", () -> mutate(table, "a", put("a", "f:q@4=a"), put("b", "h:q@4=z")));
    out.see("leave", () -> Rows.all(table, new Scan().readAllVersions()));
    out.see("in the other region", () -> mutate(table, "z", put("y", "f:q@1=y"), put("z", "f:q@1=z")));
    out.see("server's time", () -> mutate(table, "z", put("x1", "f:q=y"), put("x2", "f:q=z")));
    out.see("have one time", () -> table.get(get("x1")).rawCells()[0].getTimestamp()
        == table.get(get("x2")).rawCells()[0].getTimestamp());
  }

  /** Without their coprocessors, servers ignore these attributes; only clients keep them. */
  private void attributes() throws Exception {
    out.topic("cell security without its coprocessors");
    try (Table table = s.table("secure", "f")) {
      out.does("a put with an expression", () -> table.put((Put) put("v", "f:q@1=a")
          .setCellVisibility(new CellVisibility("secret&!public"))));
      out.does("one that is none", () -> table.put((Put) put("w", "f:q@1=a").setCellVisibility(new CellVisibility("&&("))));
      out.does("a put with permissions", () -> table.put((Put) put("x", "f:q@1=a")
          .setACL("nobody", new Permission(Permission.Action.READ))));
      out.see("all", () -> Rows.all(table, new Scan()));
      out.see("with labels", () -> table.get(get("v").setAuthorizations(new Authorizations("public"))));
      out.see("with permissions", () -> table.get(get("x").setACL("me", new Permission(Permission.Action.READ))));
      out.does("a delete", () -> table.delete((Delete) delete("v").setCellVisibility(new CellVisibility("secret"))));
      out.see("left", () -> Rows.all(table, new Scan()));
    }
  }

  private void permissions() throws Exception {
    out.topic("permissions");
    TableName name = s.name("secure");
    out.see("capabilities", () -> s.admin.getSecurityCapabilities());
    Permission read = Permission.newBuilder(name).withActions(Permission.Action.READ).build();
    out.doesMessage("grant", () -> s.admin.grant(new UserPermission("someone", read), false));
    out.doesMessage("revoke", () -> s.admin.revoke(new UserPermission("someone", read)));
    out.doesMessage("whose", () -> s.admin.getUserPermissions(
        org.apache.hadoop.hbase.security.access.GetUserPermissionsRequest.newBuilder(name).build()));
    out.doesMessage("whether", () -> s.admin.hasUserPermissions(List.of(read)));
  }

  private static Object mutate(Table table, String row, Mutation... mutations) throws Exception {
    byte[] request = new byte[0];
    for (Mutation mutation : mutations) {
      byte[] one = message(mutation);
      // MutateRowsRequest.mutation_request, field 1.
      request = Bytes.add(request, Stub.field(1, one));
    }
    return Bytes.toStringBinary(MULTI_ROW_SERVICE.call(table, b(row), "mutateRows", request));
  }

  private static byte[] message(Mutation mutation) throws Exception {
    Class<?> util = Class.forName("org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil");
    Class<?> type = Class.forName(
        "org.apache.hadoop.hbase.shaded.protobuf.generated.ClientProtos$MutationProto$MutationType");
    Object kind = type.getField(mutation instanceof Put ? "PUT" : "DELETE").get(null);
    Object message = util.getMethod("toMutation", type, Mutation.class).invoke(null, kind, mutation);
    return (byte[]) message.getClass().getMethod("toByteArray").invoke(message);
  }
}
