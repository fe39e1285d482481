package compat.spark;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;

/** A Spark context and a connection to the server, and what the steps print. */
final class Session implements AutoCloseable {
  /** Spark drops partitions of length 0 unless this is false. */
  static final String IGNORE_EMPTY = "spark.hadoopRDD.ignoreEmptySplits";

  private static final Pattern HBASE_EXCEPTION = Pattern.compile("org\\.apache\\.hadoop\\.hbase\\.[a-z.]*([A-Z]\\w*Exception)");

  final JavaSparkContext spark;
  final Connection connection;
  final Admin admin;
  private final Path directory;
  private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  Session(String directory) throws Exception {
    this.directory = Path.of(directory).toAbsolutePath();
    Files.createDirectories(this.directory);
    SparkConf settings = new SparkConf()
      .setMaster("local[2]").setAppName("compat")
      .set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
      .set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
      .set("spark.local.dir", this.directory.resolve("spark").toString())
      .set("spark.default.parallelism", "2");
    spark = new JavaSparkContext(settings);
    connection = ConnectionFactory.createConnection(conf());
    admin = connection.getAdmin();
  }

  @Override
  public void close() throws Exception {
    spark.close();
    admin.close();
    connection.close();
  }

  void print(String line) {
    out.println(line);
  }

  Path path(String name) {
    return directory.resolve(name);
  }

  org.apache.hadoop.fs.Path uri(String name) {
    return new org.apache.hadoop.fs.Path("file://" + path(name));
  }

  /** The settings of the server with further ones: names and values in alternation. */
  Configuration conf(String... settings) {
    Configuration conf = HBaseConfiguration.create();
    for (int index = 0; index < settings.length; index += 2) {
      conf.set(settings[index], settings[index + 1]);
    }
    return conf;
  }

  Configuration input(String table, String... settings) {
    Configuration conf = conf(settings);
    conf.set(TableInputFormat.INPUT_TABLE, table);
    return conf;
  }

  JavaPairRDD<ImmutableBytesWritable, Result> rows(Configuration conf) {
    return rows(conf, TableInputFormat.class);
  }

  JavaPairRDD<ImmutableBytesWritable, Result> rows(Configuration conf,
      Class<? extends InputFormat<ImmutableBytesWritable, Result>> format) {
    return spark.newAPIHadoopRDD(conf, format, ImmutableBytesWritable.class, Result.class);
  }

  void ignoreEmptySplits(boolean ignored) {
    spark.sc().conf().set(IGNORE_EMPTY, String.valueOf(ignored));
  }

  /** Prints the number of results in each partition, and the number and digest of all cells. */
  void printRows(String what, JavaPairRDD<ImmutableBytesWritable, Result> rows) {
    printRows(what, rows, 0);
  }

  /** The same, with the cells if they are at most {@code shown}. */
  void printRows(String what, JavaPairRDD<ImmutableBytesWritable, Result> rows, int shown) {
    List<List<String>> partitions;
    try {
      partitions = rows.mapPartitions(Session::linesOfPartition).collect();
    } catch (Exception failure) {
      print(what + ": " + chain(failure));
      return;
    }
    List<String> counts = new ArrayList<>();
    List<String> cells = new ArrayList<>();
    for (List<String> partition : partitions) {
      counts.add(partition.get(0));
      cells.addAll(partition.subList(1, partition.size()));
    }
    Collections.sort(cells);
    print(what + ": results " + counts + " cells " + cells.size() + " digest " + digest(cells));
    if (cells.size() <= shown) {
      cells.forEach(cell -> print("  " + cell));
    }
  }

  /** One list: the number of results, then the cells. Its key must be that of the results. */
  private static Iterator<List<String>> linesOfPartition(
      Iterator<scala.Tuple2<ImmutableBytesWritable, Result>> rows) {
    List<String> lines = new ArrayList<>();
    lines.add("");
    int count = 0;
    while (rows.hasNext()) {
      scala.Tuple2<ImmutableBytesWritable, Result> row = rows.next();
      if (!Bytes.equals(row._1.copyBytes(), row._2.getRow())) {
        lines.add("key " + row._1 + " for row " + Bytes.toStringBinary(row._2.getRow()));
      }
      lines.addAll(lines(row._2));
      count++;
    }
    lines.set(0, String.valueOf(count));
    return List.of(lines).iterator();
  }

  static List<String> lines(Result result) {
    List<String> lines = new ArrayList<>();
    for (Cell cell : result.rawCells()) {
      byte[] value = CellUtil.cloneValue(cell);
      lines.add(Bytes.toStringBinary(CellUtil.cloneRow(cell)) + " "
        + Bytes.toStringBinary(CellUtil.cloneFamily(cell)) + ":"
        + Bytes.toStringBinary(CellUtil.cloneQualifier(cell)) + " " + cell.getTimestamp() + " "
        + cell.getType() + " "
        + (value.length < 60 ? Bytes.toStringBinary(value) : value.length + " bytes " + hash(value)));
    }
    return lines;
  }

  static String digest(List<String> lines) {
    return hash(String.join("\n", lines).getBytes(StandardCharsets.UTF_8));
  }

  private static String hash(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes), 0, 8);
    } catch (java.security.NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** The cells that HBase's client sees, by a scan without Spark. */
  List<String> scan(String table, Scan scan) throws Exception {
    List<String> lines = new ArrayList<>();
    try (Table opened = connection.getTable(TableName.valueOf(table));
        ResultScanner results = opened.getScanner(scan)) {
      for (Result result : results) {
        lines.addAll(lines(result));
      }
    }
    return lines;
  }

  /** Prints all cells of a table with delete markers and all versions, or their digest. */
  void printTable(String table, int shown) throws Exception {
    List<String> lines = scan(table, new Scan().setRaw(true).readAllVersions());
    print("table " + table + ": cells " + lines.size() + " digest " + digest(lines));
    if (lines.size() <= shown) {
      lines.forEach(line -> print("  " + line));
    }
  }

  /** The classes of an exception and of its causes, and the message of the last. */
  static String chain(Throwable failure) {
    StringBuilder classes = new StringBuilder("!" + failure.getClass().getSimpleName());
    Throwable last = failure;
    while (last.getCause() != null && last.getCause() != last) {
      last = last.getCause();
      classes.append(" < ").append(last.getClass().getSimpleName());
    }
    String text = String.valueOf(last.getMessage());
    if (last instanceof org.apache.spark.SparkException) {
      // Spark has no exception for the cause on the executor, only its text.
      return classes + " of " + HBASE_EXCEPTION.matcher(text).results().map(found -> found.group(1)).distinct().toList();
    }
    // Grampus does not append the descriptor of the table.
    String message = text.lines().findFirst().orElse("").replaceAll(" in table '.*", "");
    // Directories, times, ports and region names differ from run to run.
    message = message.replaceAll("file:\\S*/(root|data)/", "@root/").replaceAll("[0-9a-f]{32}", "@region").replaceAll("\\d{10,}", "@time")
      .replaceAll("localhost(/127.0.0.1)?[:,]\\d+(,@time)?|127.0.0.1:\\d+", "@server");
    return classes + ": " + message;
  }

  /** The index of each region by its encoded name. */
  Map<String, Integer> regions(String table) throws Exception {
    Map<String, Integer> regions = new java.util.HashMap<>();
    for (var region : admin.getRegions(TableName.valueOf(table))) {
      regions.put(region.getEncodedName(), regions.size());
    }
    return regions;
  }
}
