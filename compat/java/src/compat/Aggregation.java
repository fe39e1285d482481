package compat;

import static compat.Rows.b;
import static compat.Rows.put;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.filter.ColumnPrefixFilter;
import org.apache.hadoop.hbase.filter.PageFilter;
import org.apache.hadoop.hbase.filter.PrefixFilter;
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * AggregateService: each method with each interpreter, per region, as the bytes of its responses;
 * then through HBase's own clients of it, where they exist.
 */
final class Aggregation implements Suite {
  static final String ENDPOINT = "org.apache.hadoop.hbase.coprocessor.AggregateImplementation";
  private static final Stub SERVICE = new Stub("AggregateProtos", "AggregateService", "AggregateRequest");
  private static final String INTERPRETERS = "org.apache.hadoop.hbase.client.coprocessor.";
  private static final String[] METHODS = {"getMax", "getMin", "getSum", "getRowNum", "getAvg", "getStd", "getMedian"};
  /**
   * The start rows of the regions; the fourth has no cells, the last one ends with deleted rows.
   */
  private static final String[] REGIONS = {"", "r100", "r200", "r300", "r400"};
  private static final int ROWS = 500;
  private Session s;
  private Transcript out;
  // A connection that gives up soon: HBase reports all errors with exceptions that clients retry.
  private Connection impatient;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    impatient = s.connect("hbase.client.retries.number", "1", "hbase.client.pause", "10");
    try (Table table = s.table(descriptor(), "r100", "r200", "r300", "r400")) {
      out.topic("descriptor");
      out.see("created with its class", () -> s.admin.getDescriptor(table.getName()));
      out.does("altered", () -> s.admin.modifyTable(TableDescriptorBuilder.newBuilder(descriptor())
          .setValue("some", "thing").build()));
      out.see("and read back", () -> s.admin.getDescriptor(table.getName()));
      fill(table);
      try (Table asked = impatient.getTable(table.getName())) {
        everyRegion(asked);
        scans(asked);
        values(asked);
        faults(asked);
      }
      clients(table);
    } finally {
      impatient.close();
    }
  }

  private TableDescriptor descriptor() throws Exception {
    return TableDescriptorBuilder.newBuilder(s.name("numbers"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(3).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).setCoprocessor(ENDPOINT).build();
  }

  /**
   * Numbers of all kinds, some of them missing; older ones in files, newer ones and deletes in
   * memory.
   */
  private void fill(Table table) throws Exception {
    Random random = new Random(7);
    table.put(puts(random, 1, 0.8));
    s.admin.flush(table.getName());
    table.put(puts(random, 2, 0.4));
    s.admin.flush(table.getName());
    table.put(puts(random, 3, 0.2));
    List<Delete> deletes = new ArrayList<>();
    for (int row = 0; row < ROWS; row++) {
      Delete delete = new Delete(row(row));
      switch (row >= 470 ? 0 : random.nextInt(12)) {
        case 0 -> deletes.add(delete.addFamily(b("f"), 4).addFamily(b("g"), 4));
        case 1 -> deletes.add(delete.addColumn(b("f"), b("l"), 2));
        case 2 -> deletes.add(delete.addColumns(b("f"), b("d"), 2));
        case 3 -> deletes.add(delete.addFamilyVersion(b("f"), 1));
        default -> { }
      }
    }
    table.delete(deletes);
  }

  private static List<Put> puts(Random random, long timestamp, double share) {
    List<Put> puts = new ArrayList<>();
    for (int row = 0; row < ROWS; row++) {
      Put put = new Put(row(row));
      byte[] decimal = Bytes.toBytes(new BigDecimal(new BigInteger(random.nextInt(200), random)
          .multiply(BigInteger.valueOf(random.nextBoolean() ? 1 : -1)), random.nextInt(9) - 2));
      byte[][] values = {Bytes.toBytes(random.nextLong() >> random.nextInt(60)), Bytes.toBytes(random.nextGaussian() * 1e6),
          decimal, random.nextBoolean() ? Bytes.toBytes(row) : Bytes.toBytes(7L * row), Bytes.toBytes(row * 3L),
          Bytes.toBytes((long) random.nextInt(1000)), Bytes.toBytes((double) random.nextInt(1000)),
          Bytes.toBytes(BigDecimal.valueOf(random.nextInt(100_000), 2)), Bytes.toBytes(1L + random.nextInt(9)),
          Bytes.toBytes(1.0 + random.nextInt(9)), Bytes.toBytes(BigDecimal.valueOf(1 + random.nextInt(9))),
          Bytes.toBytes((random.nextInt(2_000_000) - 1_000_000) / 8.0)};
      String[] columns = {"f:l", "f:d", "f:b", "f:m", "g:w", "f:+l", "f:+e", "f:+b", "f:wl", "f:we", "f:wb", "f:e"};
      for (int at = 0; at < columns.length; at++) {
        if (random.nextDouble() < share) {
          String[] name = columns[at].split(":");
          put.addColumn(b(name[0]), b(name[1]), timestamp, values[at]);
        }
      }
      if (!put.isEmpty() && (row < 300 || row >= 400)) {
        puts.add(put);
      }
    }
    return puts;
  }

  static byte[] row(int number) {
    return b(String.format("r%03d", number));
  }

  private void everyRegion(Table table) throws Exception {
    String[][] columns = {{"Long", "l"}, {"Double", "d"}, {"BigDecimal", "b"}};
    for (String[] column : columns) {
      out.topic(column[0]);
      for (String method : METHODS) {
        for (String region : REGIONS) {
          ask(table, method + " from " + region, region, method, column[0], new Scan().addColumn(b("f"), b(column[1])));
        }
      }
    }
  }

  private void scans(Table table) throws Exception {
    out.topic("what the scan says");
    Scan longs = new Scan().addColumn(b("f"), b("l"));
    all(table, "three versions", new Scan(longs).readVersions(3));
    all(table, "an old time", new Scan(longs).setTimeRange(1, 2));
    all(table, "a range of rows", new Scan(longs).withStartRow(b("r105")).withStopRow(b("r115"), true));
    all(table, "one row", new Scan(longs).withStartRow(b("r110")).withStopRow(b("r110"), true));
    all(table, "no row", new Scan(longs).withStartRow(b("r110x")).withStopRow(b("r110y")));
    all(table, "backwards", new Scan(longs).setReversed(true));
    all(table, "two columns", new Scan(longs).addColumn(b("f"), b("m")));
    all(table, "a family", new Scan().addFamily(b("f")));
    all(table, "two families", new Scan().addFamily(b("f")).addFamily(b("g")));
    all(table, "value and weight", new Scan().addColumn(b("f"), b("l")).addColumn(b("f"), b("m")));
    all(table, "a batch", new Scan().addFamily(b("f")).setBatch(2));
    all(table, "a limit of cells", new Scan().addFamily(b("f")).setMaxResultsPerColumnFamily(1).setRowOffsetPerColumnFamily(1));
    all(table, "caching and limits", new Scan(longs).setCaching(3).setLimit(5).setMaxResultSize(10));
    all(table, "raw", new Scan().addFamily(b("f")).setRaw(true).readAllVersions());
    all(table, "rows with a prefix", new Scan(longs).setFilter(new PrefixFilter(b("r11"))));
    all(table, "a page", new Scan(longs).setFilter(new PageFilter(4)));
    all(table, "columns with a prefix", new Scan().addFamily(b("f")).setFilter(new ColumnPrefixFilter(b("m"))));
    all(table, "rows where a value is", new Scan().addFamily(b("f")).setFilter(new SingleColumnValueFilter(b("f"), b("l"),
        CompareOperator.GREATER, Bytes.toBytes(0L))));
    ask(table, "the last region, to its deleted rows", "r400", "getAvg", "Long", new Scan(longs).withStartRow(b("r400")).withStopRow(b("r470")));
    ask(table, "and with them", "r400", "getAvg", "Long", new Scan(longs).withStartRow(b("r400")).withStopRow(b("r471")));
  }

  private void values(Table table) throws Exception {
    out.topic("unusual values");
    put(table, "r001", "x", Bytes.toBytes(Long.MAX_VALUE));
    put(table, "r002", "x", Bytes.toBytes(Long.MAX_VALUE));
    put(table, "r003", "x", new byte[0]);
    put(table, "r004", "x", new byte[] {1, 2, 3});
    every(table, "overflow", "Long", "x");
    double[] doubles = {-0.0, 0.0, Double.MIN_VALUE, Double.NEGATIVE_INFINITY};
    for (int at = 0; at < doubles.length; at++) {
      put(table, "r00" + at, "y", Bytes.toBytes(doubles[at]));
    }
    every(table, "small ones", "Double", "y");
    put(table, "r005", "y", Bytes.toBytes(Double.NaN));
    ask(table, "getMax with NaN", "", "getMax", "Double", new Scan().addColumn(b("f"), b("y")));
    ask(table, "getMin with NaN", "", "getMin", "Double", new Scan().addColumn(b("f"), b("y")));
    String[] decimals = {"0.005", "0.015", "-0.025", "1E+30", "-99999999999999999999999999999999999999999999.999", "0E-400",
        "1E-400", "49E-325", "0E+300", "-0.0051"};
    for (int at = 0; at < decimals.length; at++) {
      put(table, "r00" + at, "z", Bytes.toBytes(new BigDecimal(decimals[at])));
      ask(table, "getSum of " + decimals[at], "", "getSum", "BigDecimal", new Scan().addColumn(b("f"), b("z"))
          .withStartRow(b("r00" + at)).withStopRow(b("r00" + at), true));
    }
    every(table, "decimals", "BigDecimal", "z");
    // No NaNs: which NaN a sum of two of them gives depends on the compiler.
    every(table, "longs as doubles", "Double", "+l");
    every(table, "doubles as longs", "Long", "d");
  }

  private void faults(Table table) throws Exception {
    out.topic("faults");
    Scan longs = new Scan().addColumn(b("f"), b("l"));
    ask("no such class", () -> call(table, "", "getMax", request("no.such.Interpreter", scan(longs), new byte[0])));
    ask("no class", () -> call(table, "", "getMax", request("", scan(longs), new byte[0])));
    ask("bytes that are no message", () -> call(table, "", "getMax", request(INTERPRETERS + "LongColumnInterpreter",
        scan(longs), new byte[] {(byte) 0x80})));
    out.see("bytes of another message", () -> Bytes.toStringBinary(call(table, "", "getMax",
        request(INTERPRETERS + "LongColumnInterpreter", scan(longs), new byte[] {8, 1}))));
    out.see("rows counted by no class", () -> Bytes.toStringBinary(call(table, "", "getRowNum",
        request("no.such.Interpreter", scan(longs), new byte[0]))));
    out.see("no such family", () -> ask(table, "", "getSum", "Long", new Scan().addColumn(b("h"), b("l"))));
    for (String method : METHODS) {
      out.see(method + " without family", () -> answer(() -> ask(table, "", method, "Long", new Scan())));
    }
    ask("a raw column", () -> ask(table, "", "getSum", "Long", new Scan(longs).setRaw(true)));
    put(table, "r000", "v", new byte[] {0, 0, 0, 2});
    for (String method : METHODS) {
      out.see(method + " of no decimal", () -> answer(() -> ask(table, "", method, "BigDecimal", new Scan().addColumn(b("f"), b("v")))));
    }
    for (String interpreter : new String[] {"Long", "Double", "BigDecimal"}) {
      for (String method : METHODS) {
        out.see(method + " of nothing by " + interpreter, () -> answer(() -> ask(table, "r300", method, interpreter,
            new Scan().addColumn(b("f"), b("l")))));
      }
    }
  }

  private void clients(Table table) throws Exception {
    Class<?> clients;
    try {
      clients = Class.forName("compat.Aggregators");
    } catch (ClassNotFoundException none) {
      return;
    }
    Suite suite = (Suite) clients.getDeclaredConstructor(Table.class).newInstance(table);
    suite.run(s);
  }

  private static void put(Table table, String row, String column, byte[] value) throws Exception {
    table.put(new Put(b(row)).addColumn(b("f"), b(column), 9, value));
  }

  private void every(Table table, String what, String interpreter, String column) {
    for (String method : METHODS) {
      ask(table, method + " of " + what, "", method, interpreter, new Scan().addColumn(b("f"), b(column)));
    }
  }

  private void all(Table table, String what, Scan scan) {
    for (String method : METHODS) {
      ask(table, method + " of " + what, "r100", method, "Long", scan);
    }
  }

  private void ask(Table table, String what, String region, String method, String interpreter, Scan scan) {
    out.see(what, () -> answer(() -> ask(table, region, method, interpreter, scan)));
  }

  private static byte[] ask(Table table, String region, String method, String interpreter, Scan scan) throws Exception {
    return call(table, region, method, request(INTERPRETERS + interpreter + "ColumnInterpreter", scan(scan), new byte[0]));
  }

  private void ask(String what, Callable<byte[]> call) {
    out.see(what, () -> answer(call));
  }

  /** The bytes of the response, or the server's exception. */
  private static String answer(Callable<byte[]> call) throws Exception {
    try {
      return Bytes.toStringBinary(call.call());
    } catch (Exception failed) {
      Throwable last = failed;
      for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
        last = cause;
      }
      String name = last instanceof RemoteWithExtrasException remote ? remote.getClassName() : last.getClass().getName();
      String said = String.valueOf(last.getMessage()).split("\n")[0];
      // As an optimization, Java omits the message of a NullPointerException after a while.
      return "!" + name + (said.contains("Cannot invoke") || said.equals(name) ? "" : " " + said);
    }
  }

  private static byte[] call(Table table, String region, String method, byte[] request) throws Exception {
    return SERVICE.call(table, b(region), method, request);
  }

  /** An AggregateRequest. */
  private static byte[] request(String interpreter, byte[] scan, byte[] ofInterpreter) {
    return Bytes.add(Stub.field(1, Bytes.toBytes(interpreter)), Stub.field(2, scan), Stub.field(3, ofInterpreter));
  }

  private static byte[] scan(Scan scan) throws Exception {
    Class<?> util = Class.forName("org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil");
    Object message = util.getMethod("toScan", Scan.class).invoke(null, scan);
    return (byte[]) message.getClass().getMethod("toByteArray").invoke(message);
  }
}
