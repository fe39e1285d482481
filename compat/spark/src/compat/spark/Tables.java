package compat.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression.Algorithm;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.util.Bytes;

/** The tables that the steps read and write. */
final class Tables {
  /** 2,000 rows in four regions of about 0.1, 2.5, 5.5 and 1.5 MiB. */
  static final String MAIN = "main";
  static final int ROWS = 2000;
  static final String[] SPLITS = {"row0500", "row1000", "row1500"};
  private static final int[] BIG_BYTES = {0, 5200, 11_400, 3100};

  static byte[] bytes(String text) {
    return Bytes.toBytes(text);
  }

  static byte[] row(int number) {
    return bytes(String.format("row%04d", number));
  }

  static ColumnFamilyDescriptorBuilder family(String name) {
    return ColumnFamilyDescriptorBuilder.newBuilder(bytes(name)).setMaxVersions(3);
  }

  static void create(Session session, String table, String[] splits,
      ColumnFamilyDescriptorBuilder... families) throws Exception {
    List<ColumnFamilyDescriptor> built = new ArrayList<>();
    for (ColumnFamilyDescriptorBuilder family : families) {
      built.add(family.build());
    }
    var descriptor = TableDescriptorBuilder.newBuilder(TableName.valueOf(table)).setColumnFamilies(built);
    session.admin.createTable(descriptor.build(), Bytes.toByteArrays(splits));
  }

  static void flush(Session session, String table) throws Exception {
    session.admin.flush(TableName.valueOf(table));
  }

  static void fill(Session session) throws Exception {
    create(session, MAIN, SPLITS, family("f"),
      family("g").setCompressionType(Algorithm.GZ).setDataBlockEncoding(DataBlockEncoding.FAST_DIFF),
      family("big").setMaxVersions(1));
    try (Table table = session.connection.getTable(TableName.valueOf(MAIN))) {
      Random random = new Random(7);
      List<Put> puts = new ArrayList<>();
      for (int number = 0; number < ROWS; number++) {
        Put put = new Put(row(number));
        put.addColumn(bytes("f"), bytes("q" + number % 3), 1000 + number, bytes("value " + number));
        put.addColumn(bytes("f"), bytes("number"), 1000 + number, Bytes.toBytes((long) number));
        if (number % 2 == 0) {
          put.addColumn(bytes("g"), new byte[] {0, (byte) 0xff}, 2000 + number, bytes("\0" + number));
        }
        byte[] big = new byte[BIG_BYTES[number / 500]];
        random.nextBytes(big);
        if (big.length > 0) {
          put.addColumn(bytes("big"), bytes("b"), 1, big);
        }
        puts.add(put);
        if (puts.size() == 100) {
          table.put(puts);
          puts.clear();
        }
      }
      flush(session, MAIN);
      for (int number = 0; number < ROWS; number += 5) {
        puts.add(new Put(row(number)).addColumn(bytes("f"), bytes("q" + number % 3), 4000 + number, bytes("second")));
      }
      table.put(puts);
      List<Delete> deletes = new ArrayList<>();
      for (int number = 7; number < ROWS; number += 20) {
        deletes.add(new Delete(row(number)).addColumns(bytes("f"), bytes("q" + number % 3), 9000));
        deletes.add(new Delete(row(number + 1)).addFamily(bytes("g"), 9000));
        deletes.add(new Delete(row(number + 2)).addColumn(bytes("f"), bytes("number"), 1000 + number + 2));
        deletes.add(new Delete(row(number + 3), 9000));
      }
      table.delete(deletes);
    }
    session.printTable(MAIN, 0);
    fillSmall(session);
    fillText(session);
    create(session, "received", new String[] {"row1000"}, family("f"), family("g"));
  }

  /** Regions without a store file of a megabyte: a small file, only a memstore, nothing, only delete markers. */
  private static void fillSmall(Session session) throws Exception {
    create(session, "small", new String[] {"b", "c", "d"}, family("f"));
    try (Table table = session.connection.getTable(TableName.valueOf("small"))) {
      table.put(new Put(bytes("a1")).addColumn(bytes("f"), bytes("q"), 1, bytes("in a file")));
      table.delete(new Delete(bytes("d1"), 5));
      flush(session, "small");
      table.put(new Put(bytes("a2")).addColumn(bytes("f"), bytes("q"), 2, bytes("in a memstore")));
      table.put(new Put(bytes("b1")).addColumn(bytes("f"), bytes("q"), 3, bytes("in a memstore")));
    }
    session.printTable("small", 20);
  }

  private static void fillText(Session session) throws Exception {
    create(session, "text", new String[] {"line100", "line200"}, family("t"));
    String[] words = {"region", "row", "cell", "the", "a", "of", "écrit", "table", "scan", "put"};
    Random random = new Random(11);
    List<Put> puts = new ArrayList<>();
    for (int line = 0; line < 300; line++) {
      StringBuilder text = new StringBuilder();
      for (int word = random.nextInt(12); word >= 0; word--) {
        text.append(words[Math.min(random.nextInt(words.length), random.nextInt(words.length))]).append(' ');
      }
      puts.add(new Put(bytes(String.format("line%03d", line)))
        .addColumn(bytes("t"), bytes("line"), 10 + line, bytes(text.toString().trim())));
    }
    try (Table table = session.connection.getTable(TableName.valueOf("text"))) {
      table.put(puts);
    }
    flush(session, "text");
    session.printTable("text", 0);
  }

  private Tables() {
  }
}
