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
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;

/** Files with every compression, encoding and Bloom filter; cell blocks compressed on the wire. */
final class Codecs implements Suite {
  private static final Compression.Algorithm[] COMPRESSIONS = {Compression.Algorithm.NONE, Compression.Algorithm.GZ,
      Compression.Algorithm.SNAPPY, Compression.Algorithm.LZ4, Compression.Algorithm.ZSTD};
  private static final BloomType[] BLOOMS = {BloomType.ROW, BloomType.ROWCOL, BloomType.ROWPREFIX_FIXED_LENGTH,
      BloomType.NONE};

  private Session s;
  private Admin admin;
  private Transcript out;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    admin = session.admin;
    out = session.out;
    int turn = 0;
    for (Compression.Algorithm compression : COMPRESSIONS) {
      // Encodings and Bloom filters alternate, so each compression is combined with two of them.
      for (int times = 0; times < 2; times++, turn++) {
        family(compression, DataBlockEncoding.values()[turn % DataBlockEncoding.values().length],
            BLOOMS[turn % BLOOMS.length]);
      }
    }
    otherForCompactions();
    refused();
    onTheWire();
  }

  private static ColumnFamilyDescriptorBuilder family() {
    return ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(2).setBlocksize(2048);
  }

  private void family(Compression.Algorithm compression, DataBlockEncoding encoding, BloomType bloom)
      throws Exception {
    out.topic(compression + ", " + encoding + ", " + bloom);
    ColumnFamilyDescriptorBuilder family = family().setCompressionType(compression).setDataBlockEncoding(encoding)
        .setBloomFilterType(bloom);
    if (bloom == BloomType.ROWPREFIX_FIXED_LENGTH) {
      family.setConfiguration("RowPrefixBloomFilter.prefix_length", "2");
    }
    throughFiles(s.name(compression + "_" + encoding + "_" + bloom), family);
  }

  private void otherForCompactions() throws Exception {
    out.topic("another compression for compactions");
    throughFiles(s.name("compactions"), family().setCompressionType(Compression.Algorithm.SNAPPY)
        .setCompactionCompressionType(Compression.Algorithm.GZ));
  }

  /** Writes, flushes, compacts and reads back. */
  private void throughFiles(TableName name, ColumnFamilyDescriptorBuilder family) throws Exception {
    try (Table table = s.table(TableDescriptorBuilder.newBuilder(name).setColumnFamily(family.build()).build())) {
      fill(table, 1);
      List<String> inMemory = ask(table);
      inMemory.forEach(out::line);
      out.does("flush", () -> admin.flush(name));
      out.see("answers unchanged", () -> ask(table).equals(inMemory));
      fill(table, 2);
      List<String> mixed = ask(table);
      mixed.forEach(out::line);
      out.does("flush", () -> admin.flush(name));
      out.see("answers unchanged", () -> ask(table).equals(mixed));
      out.does("major compact", () -> s.majorCompact(name));
      out.see("files", () -> s.storeFiles(name));
      out.see("answers unchanged", () -> ask(table).equals(mixed));
      admin.disableTable(name);
      admin.enableTable(name);
      out.see("answers unchanged, reopened", () -> ask(table).equals(mixed));
    }
    s.drop(name);
  }

  private static void fill(Table table, int round) throws Exception {
    List<Put> puts = new ArrayList<>();
    for (int row = round; row < 300; row += round) {
      String key = String.format("%02d-%04d", row % 20, row);
      puts.add(put(key, "f:a@" + 10 * round + "=" + "value ".repeat(row % 17) + row, "f:b@" + round + "=" + row));
    }
    // A value that is several times the size of a codec's buffer.
    puts.add(put("large", "f:a@" + round + "=" + "0123456789abcdef".repeat(50_000), "f:b@1=" + round));
    table.put(puts);
    table.delete(delete("04-0004").addColumns(b("f"), b("a"), 10 * round));
    table.delete(delete("06-0006").addFamily(b("f"), 10 * round));
    table.delete(delete("08-0008").addColumn(b("f"), b("b"), round));
  }

  private static List<String> ask(Table table) throws Exception {
    List<String> answers = new ArrayList<>();
    answers.add(Show.value(Rows.all(table, new Scan().readAllVersions())));
    answers.add(Show.value(Rows.all(table, new Scan().setReversed(true).addColumn(b("f"), b("b")))));
    for (String row : List.of("04-0004", "06-0006", "08-0008", "10-0190", "10-nosuch", "99-0000")) {
      answers.add(Show.value(table.get(get(row).readAllVersions())));
      answers.add(Show.value(table.get(get(row).addColumn(b("f"), b("a")))));
      answers.add(Show.value(table.get(get(row).addColumn(b("f"), b("nosuch")))));
    }
    answers.add(String.valueOf(table.get(get("large").addColumn(b("f"), b("a"))).value().length));
    return answers;
  }

  private void refused() {
    out.topic("compressions that cannot be loaded");
    for (Compression.Algorithm compression : List.of(Compression.Algorithm.LZO, Compression.Algorithm.LZMA,
        Compression.Algorithm.BROTLI)) {
      TableName name = s.name("refused");
      refused("for files: " + compression, name, family().setCompressionType(compression));
      refused("for files, asked again: " + compression, name, family().setCompressionType(compression));
      refused("for compactions: " + compression, name, family().setCompactionCompressionType(compression));
      out.see("the table exists", () -> admin.tableExists(name));
    }
  }

  private void refused(String what, TableName name, ColumnFamilyDescriptorBuilder family) {
    out.does(what, () -> admin.createTable(TableDescriptorBuilder.newBuilder(name).setColumnFamily(family.build())
        .build()));
  }

  private void onTheWire() throws Exception {
    TableName name = s.name("wire");
    s.table("wire", "f").close();
    for (String codec : List.of("GzipCodec", "DefaultCodec")) {
      out.topic("cell blocks by " + codec);
      try (Connection connection = s.connect("hbase.client.rpc.compressor", "org.apache.hadoop.io.compress." + codec);
          Table table = connection.getTable(name)) {
        fill(table, 1);
        ask(table).forEach(out::line);
        out.see("large scans", () -> Rows.all(table, new Scan().setCaching(7).setBatch(1)).size());
        out.see("nothing", () -> Rows.all(table, new Scan().withStartRow(b("zzz"))).size());
        out.see("batch of gets", () -> table.get(List.of(get("large"), get("nosuch"), get("10-0190"))).length);
      }
    }
  }
}
