package compat;

import static compat.Rows.b;
import static compat.Rows.put;

import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;

/** The descriptor that the server returns: every attribute, known or unknown, unchanged. */
final class Schema implements Suite {
  private Session s;
  private Admin admin;
  private Transcript out;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    defaults();
    familyAttributes();
    tableAttributes();
    unknownAttributes();
    encodings();
    readOnly();
    throughTheTable();
  }

  private void defaults() {
    out.topic("defaults");
    returned("a family of defaults", s.descriptor(s.name("defaults"), "f"));
    returned("families in another order than the alphabet's", s.descriptor(s.name("order"), "z", "a", "m"));
  }

  private void familyAttributes() {
    out.topic("family attributes");
    ColumnFamilyDescriptor rare = ColumnFamilyDescriptorBuilder.newBuilder(b("rare"))
        .setMaxVersions(7).setMinVersions(2).setTimeToLive(86400)
        .setKeepDeletedCells(KeepDeletedCells.TTL)
        .setBlocksize(8192).setBloomFilterType(BloomType.ROWCOL)
        .setCompressionType(Compression.Algorithm.GZ)
        .setCompactionCompressionType(Compression.Algorithm.GZ)
        .setDataBlockEncoding(DataBlockEncoding.FAST_DIFF)
        .setInMemory(true).setBlockCacheEnabled(false)
        .setCacheDataOnWrite(true).setCacheIndexesOnWrite(true).setCacheBloomsOnWrite(true)
        .setEvictBlocksOnClose(true).setPrefetchBlocksOnOpen(true)
        .setCompressTags(false).setScope(1).setDFSReplication((short) 1)
        .setNewVersionBehavior(true).setStoragePolicy("HOT")
        .build();
    returned("all that the builder knows", TableDescriptorBuilder.newBuilder(s.name("family"))
        .setColumnFamily(rare).setColumnFamily(ColumnFamilyDescriptorBuilder.of("plain")).build());
    returned("a prefix bloom filter", TableDescriptorBuilder.newBuilder(s.name("prefix"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f"))
            .setBloomFilterType(BloomType.ROWPREFIX_FIXED_LENGTH)
            .setConfiguration("RowPrefixBloomFilter.prefix_length", "4").build())
        .build());
  }

  private void tableAttributes() {
    out.topic("table attributes");
    returned("all that the builder knows", TableDescriptorBuilder.newBuilder(s.name("table"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .setMaxFileSize(5L << 30).setMemStoreFlushSize(64L << 20)
        .setDurability(Durability.SYNC_WAL).setPriority(7)
        .setSplitEnabled(false).setMergeEnabled(false).setCompactionEnabled(true)
        .setNormalizationEnabled(true).setNormalizerTargetRegionCount(3)
        .setRegionMemStoreReplication(false)
        .setRegionSplitPolicyClassName("org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy")
        .setFlushPolicyClassName("org.apache.hadoop.hbase.regionserver.FlushAllStoresPolicy")
        .build());
  }

  private void unknownAttributes() {
    out.topic("attributes and settings that no server knows");
    returned("kept", TableDescriptorBuilder.newBuilder(s.name("unknown"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f"))
            .setValue("COLOUR", "green").setValue(b("\\x01\\xFFkey"), b("\\x00\\xFEvalue"))
            .setConfiguration("some.setting", "12").setConfiguration("hbase.hstore.blockingStoreFiles", "50").build())
        .setValue("OWNER", "alice").setValue("note", "a longer text, with = and ; and {braces}")
        .setValue(b("\\x02binary"), b("\\x00\\x01\\xFF")).setValue("empty", "")
        .build());
  }

  /**
   * Sends a descriptor and prints the returned one, and whether the client considers both equal.
   */
  private void returned(String what, TableDescriptor sent) {
    TableName name = sent.getTableName();
    out.does(what, () -> admin.createTable(sent));
    out.see("as described", () -> admin.getDescriptor(name));
    out.see("as listed", () -> admin.listTableDescriptors(java.util.List.of(name)).get(0)
        .equals(admin.getDescriptor(name)));
  }

  private void encodings() throws Exception {
    out.topic("tables whose files are compressed and encoded");
    for (String encoding : new String[] {"NONE", "FAST_DIFF", "ROW_INDEX_V1", "DIFF", "PREFIX"}) {
      TableName name = s.name(encoding.toLowerCase());
      out.does(encoding, () -> admin.createTable(TableDescriptorBuilder.newBuilder(name)
          .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f"))
              .setDataBlockEncoding(DataBlockEncoding.valueOf(encoding))
              .setCompressionType(Compression.Algorithm.GZ).setBlocksize(1024).build())
          .build()));
      out.see("its rows after a flush", () -> flushed(name));
    }
  }

  private Object flushed(TableName name) throws Exception {
    try (Table table = s.connection.getTable(name)) {
      for (int row = 0; row < 300; row++) {
        table.put(put(String.format("row%04d", row), "f:a@5=value" + row, "f:b@6=" + row % 7));
      }
      admin.flush(name);
      return Rows.all(table, new org.apache.hadoop.hbase.client.Scan());
    }
  }

  private void readOnly() throws Exception {
    TableName name = s.name("readonly");
    out.topic("a table that is read only");
    out.does("create", () -> admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f")).setReadOnly(true).build()));
    try (Table table = s.connection.getTable(name)) {
      out.see("get", () -> table.get(Rows.get("r")));
      out.does("put", () -> table.put(put("r", "f:q@1=v")));
      out.does("delete", () -> table.delete(Rows.delete("r")));
    }
  }

  private void throughTheTable() throws Exception {
    out.topic("described by the table");
    try (Table table = s.connection.getTable(s.name("defaults"))) {
      out.see("name", table::getName);
      out.see("descriptor equals the admin's", () -> table.getDescriptor().equals(admin.getDescriptor(s.name("defaults"))));
    }
  }
}
