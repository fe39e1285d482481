package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.List;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/**
 * Mutations that HBase's own methods do not build, but that its clients send: cells are added to
 * them directly.
 */
final class Oddities implements Suite {
  private static final KeyValue.Type[] MARKERS = {KeyValue.Type.Delete, KeyValue.Type.DeleteFamilyVersion,
      KeyValue.Type.DeleteColumn, KeyValue.Type.DeleteFamily};

  private Transcript out;
  private Table table;

  /** A call that sends a put. */
  private interface Way {
    void put(Put put) throws Exception;
  }

  @Override
  public void run(Session session) throws Exception {
    out = session.out;
    table = session.table(TableDescriptorBuilder.newBuilder(session.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5).build()).build());
    markersInPuts("alone", put -> table.put(put));
    markersInPuts("in a batch", put -> table.put(List.of(put)));
    markersInPuts("in row mutations", put -> table.mutateRow(RowMutations.of(List.of(put))));
    markersInPuts("on a condition", put -> table.checkAndMutate(CheckAndMutate.newBuilder(put.getRow())
        .ifNotExists(b("f"), b("nosuch")).build(put)));
    markersAmongValues();
    familyMarkersWithQualifiers();
    noOp();
    negativeTimestamps();
    session.admin.flush(session.name("main"));
    all("after a flush");
    session.majorCompact(session.name("main"));
    all("after a major compaction");
    table.close();
  }

  private static KeyValue cell(String row, String qualifier, long timestamp, KeyValue.Type type, String value) {
    return new KeyValue(b(row), b("f"), b(qualifier), timestamp, type, b(value));
  }

  private static Put marker(String row, String qualifier, long timestamp, KeyValue.Type type) throws Exception {
    return new Put(b(row)).add(cell(row, qualifier, timestamp, type, ""));
  }

  private void fill(String row) throws Exception {
    table.put(put(row, "f:a@10=a10", "f:b@10=b10", "f:b@20=b20", "f:b@30=b30", "f:c@20=c20"));
  }

  private void markersInPuts(String how, Way way) throws Exception {
    out.topic("markers in puts, " + how);
    for (KeyValue.Type type : MARKERS) {
      String row = how.replace(' ', '-') + "-" + type;
      String qualifier = type == KeyValue.Type.DeleteFamily || type == KeyValue.Type.DeleteFamilyVersion ? "" : "b";
      fill(row);
      out.does(type + " of 20", () -> way.put(marker(row, qualifier, 20, type)));
      out.see("leaves", () -> table.get(get(row).readAllVersions()));
      String now = row + "-now";
      fill(now);
      out.does(type + " of now", () -> way.put(marker(now, qualifier, Long.MAX_VALUE, type)));
      out.see("leaves", () -> table.get(get(now).readAllVersions()));
    }
  }

  private void markersAmongValues() throws Exception {
    out.topic("markers among the values of a put");
    fill("among");
    out.does("put", () -> table.put(put("among", "f:a@11=a11", "f:d@1=d1")
        .add(cell("among", "b", 20, KeyValue.Type.DeleteColumn, ""))));
    out.see("leaves", () -> table.get(get("among").readAllVersions()));
    fill("hidden");
    out.does("a marker of the family hides values of the same put", () -> table.put(put("hidden", "f:a@15=a15", "f:a@40=a40")
        .add(cell("hidden", "", 30, KeyValue.Type.DeleteFamily, ""))));
    out.see("leaves", () -> table.get(get("hidden").readAllVersions()));
    fill("ttl");
    out.does("with a time to live", () -> table.put(marker("ttl", "b", 30, KeyValue.Type.DeleteColumn).setTTL(3_600_000)));
    out.see("leaves", () -> table.get(get("ttl").readAllVersions()));
  }

  private void familyMarkersWithQualifiers() throws Exception {
    out.topic("markers of the family that have a qualifier");
    for (KeyValue.Type type : List.of(KeyValue.Type.DeleteFamilyVersion, KeyValue.Type.DeleteFamily)) {
      String row = "qualified-" + type;
      fill(row);
      out.does(type + " of 20", () -> table.delete(new Delete(b(row)).add(cell(row, "b", 20, type, ""))));
      out.see("leaves", () -> table.get(get(row).readAllVersions()));
    }
  }

  private void noOp() throws Exception {
    out.topic("conditions that compare nothing");
    table.put(put("condition", "f:q@10=5", "f:empty@10="));
    for (String qualifier : List.of("q", "empty", "nosuch")) {
      out.see("NO_OP of nothing and " + qualifier, () -> table.checkAndMutate(noOp(qualifier, "")).isSuccess());
    }
    // With values on both sides HBase fails with an error that clients retry for minutes.
    out.see("NO_OP of a value and nosuch", () -> table.checkAndMutate(noOp("nosuch", "5")).isSuccess());
  }

  private static CheckAndMutate noOp(String qualifier, String value) throws Exception {
    return CheckAndMutate.newBuilder(b("condition")).ifMatches(b("f"), b(qualifier), CompareOperator.NO_OP, b(value))
        .build(put("condition", "f:hit@1=v"));
  }

  private void negativeTimestamps() throws Exception {
    out.topic("negative timestamps");
    // Alone and in a batch HBase fails with an error that clients retry, or not at all.
    for (long timestamp : new long[] {-1, -2, Long.MIN_VALUE}) {
      out.doesMessage("put of " + timestamp + " on a condition", () -> table.checkAndMutate(CheckAndMutate
          .newBuilder(b("negative")).ifNotExists(b("f"), b("nosuch"))
          .build(new Put(b("negative")).add(cell("negative", "q", timestamp, KeyValue.Type.Put, "v")))));
      out.doesMessage("delete of " + timestamp + " on a condition", () -> table.checkAndMutate(CheckAndMutate
          .newBuilder(b("negative")).ifNotExists(b("f"), b("nosuch"))
          .build(new Delete(b("negative")).add(cell("negative", "q", timestamp, KeyValue.Type.DeleteColumn, "")))));
    }
    out.see("the row", () -> table.get(get("negative")));
  }

  private void all(String when) {
    out.topic("all rows " + when);
    out.see("rows", () -> Rows.all(table, new Scan().readAllVersions()));
    out.see("reversed", () -> Rows.all(table, new Scan().readAllVersions().setReversed(true)));
    out.see("with markers", () -> Rows.all(table, new Scan().readAllVersions().setRaw(true)));
  }
}
