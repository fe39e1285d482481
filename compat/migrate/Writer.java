import compat.hbase.RandomEdits;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The clients of a migration: `begin SOURCE ROWS` creates and fills the tables; `write SOURCE STOP
 * SEED` changes them until the file STOP exists; `move SOURCE SINK READY SECONDS SWITCH` writes to
 * the source until it refuses, then to the sink, and prints the times. Another thread writes to the
 * sink as soon as the file READY exists. The number SWITCH makes the keys unique: a key of an
 * earlier switch is in the sink already, and would hide that a write was lost;
 * `reload SOURCE` lets the servers read their configuration files again.
 * A cluster is the port of its ZooKeeper.
 */
public final class Writer {
  /** All cells are kept, so that they can be compared with delete markers. */
  private static final List<TableName> KEPT = List.of(TableName.valueOf("one"), TableName.valueOf("deep:two"));
  /** An ordinary table. */
  private static final TableName PLAIN = TableName.valueOf("plain");
  private static final int ROWS_PER_DIGIT = 500;
  private static final byte[] FAMILY = Bytes.toBytes("f");
  /** Rows that only the last step writes. They sort after all others. */
  private static final String MOVED = "z";
  private static final long CELL_TTL_MS = 60_000;

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "begin" -> begin(arguments[1], Integer.parseInt(arguments[2]));
      case "write" -> write(arguments[1], Path.of(arguments[2]), Long.parseLong(arguments[3]));
      case "move" -> move(arguments[1], arguments[2], Path.of(arguments[3]), Integer.parseInt(arguments[4]),
          "%04d".formatted(Integer.parseInt(arguments[5])));
      case "reload" -> reload(arguments[1]);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
    System.exit(0);
  }

  private static Configuration conf(String port) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", port);
    conf.setInt("hbase.client.retries.number", 100);
    return conf;
  }

  private static void reload(String source) throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(conf(source)); Admin admin = connection.getAdmin()) {
      admin.updateConfiguration();
    }
  }

  private static void begin(String source, int rows) throws Exception {
    byte[][] splits = {Bytes.toBytes("r3"), Bytes.toBytes("r6")};
    try (Connection connection = ConnectionFactory.createConnection(conf(source)); Admin admin = connection.getAdmin()) {
      admin.createNamespace(NamespaceDescriptor.create("deep").build());
      for (TableName name : KEPT) {
        admin.createTable(descriptor(name, true), splits);
      }
      admin.createTable(descriptor(PLAIN, false), splits);
      Random random = new Random(0);
      for (TableName name : List.of(KEPT.get(0), KEPT.get(1), PLAIN)) {
        RandomEdits edits = new RandomEdits(random, ROWS_PER_DIGIT, !name.equals(PLAIN));
        try (Table table = connection.getTable(name)) {
          List<Put> puts = new ArrayList<>();
          for (int at = 0; at < rows; at++) {
            Put put = edits.put();
            if (at % 10 == 0) {
              // Their time to live is in tags. It ends before the tables are compared.
              put.setTTL(CELL_TTL_MS);
            }
            puts.add(put);
            if (puts.size() == 1000 || at == rows - 1) {
              table.put(puts);
              puts.clear();
            }
          }
          for (int at = 0; at < rows / 20; at++) {
            edits.apply(table);
          }
        }
        admin.flush(name);
      }
    }
  }

  private static org.apache.hadoop.hbase.client.TableDescriptor descriptor(TableName name, boolean keeps) {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (String family : RandomEdits.FAMILIES) {
      ColumnFamilyDescriptorBuilder builder = ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(family));
      if (keeps) {
        builder.setMaxVersions(Integer.MAX_VALUE).setKeepDeletedCells(KeepDeletedCells.TRUE);
      }
      table.setColumnFamily(builder.build());
    }
    return table.build();
  }

  private static void write(String port, Path stop, long seed) throws Exception {
    Random random = new Random(seed);
    List<TableName> tables = List.of(KEPT.get(0), KEPT.get(1), PLAIN);
    long count = 0;
    try (Connection connection = ConnectionFactory.createConnection(conf(port))) {
      while (!Files.exists(stop)) {
        TableName name = tables.get(random.nextInt(tables.size()));
        try (Table table = connection.getTable(name)) {
          new RandomEdits(random, ROWS_PER_DIGIT, !name.equals(PLAIN)).apply(table);
          if (count++ == 0) {
            System.out.println("writing");
          }
        }
      }
    }
    System.out.println(count + " changes");
  }

  private static void move(String source, String sink, Path ready, int seconds, String switchNumber) throws Exception {
    String before = "before" + switchNumber;
    String after = "after" + switchNumber;
    try (Connection from = ConnectionFactory.createConnection(conf(source));
        Connection to = ConnectionFactory.createConnection(conf(sink));
        Table left = from.getTable(PLAIN); Table right = to.getTable(PLAIN)) {
      // Locates the region, as a client does that is prepared for the switch.
      right.get(new Get(Bytes.toBytes(MOVED)));
      CompletableFuture<Long> first = CompletableFuture.supplyAsync(() -> firstWrite(right, after, ready));
      long acknowledged = 0;
      long refused;
      long number = 0;
      while (true) {
        try {
          left.put(moved(before, number));
          acknowledged = System.nanoTime();
          if (number++ == 0) {
            System.out.println("writing");
          }
        } catch (DoNotRetryIOException expected) {
          refused = System.nanoTime();
          break;
        }
        Thread.sleep(1);
      }
      long accepted = first.join();
      right.put(moved(after, 1));
      long moved = System.nanoTime();
      long end = moved + seconds * 1_000_000_000L;
      long next = 2;
      while (System.nanoTime() < end) {
        right.put(moved(after, next++));
      }
      // The last acknowledged write before the switch must be in the sink.
      boolean isThere = right.exists(new Get(row(before, number - 1)));
      System.out.println("no writes for " + millis(acknowledged, accepted) + " ms; a client that retried: refused after "
          + millis(acknowledged, refused) + " ms, next acknowledged write after " + millis(acknowledged, moved) + " ms; "
          + number + " writes before, " + next + " after; the last one before is " + (isThere ? "there" : "MISSING"));
      System.exit(isThere ? 0 : 1);
    }
  }

  /** Writes to the sink when it is ready, and returns when that was acknowledged. */
  private static long firstWrite(Table right, String after, Path ready) {
    try {
      while (!Files.exists(ready)) {
        Thread.sleep(1);
      }
      right.put(moved(after, 0));
      return System.nanoTime();
    } catch (Exception failure) {
      throw new IllegalStateException(failure);
    }
  }

  private static long millis(long from, long to) {
    return (to - from) / 1_000_000;
  }

  private static Put moved(String when, long number) {
    return new Put(row(when, number)).addColumn(FAMILY, Bytes.toBytes("q"), Bytes.toBytes(number));
  }

  private static byte[] row(String when, long number) {
    return Bytes.toBytes(MOVED + when + String.format("%09d", number));
  }
}
