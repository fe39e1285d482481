import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.tool.BulkLoadHFilesTool;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.util.ToolRunner;

/**
 * Bulk loads by HBase's own classes, as a transcript: one line for each step, with what a client
 * sees. Arguments: the port of ZooKeeper, and a directory for the HFiles.
 */
public final class Loads {
  private static Configuration conf;
  private static Connection connection;
  private static Path files;

  public static void main(String[] arguments) throws Exception {
    conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", arguments[0]);
    conf.setInt("hbase.bulkload.retries.number", 2);
    files = Path.of(arguments[1]);
    connection = ConnectionFactory.createConnection(conf);
    straddling();
    order();
    unsuitable();
    codecs();
    created();
    tool();
    connection.close();
    System.exit(0);
  }

  /** Files of both families with rows of both regions, twice. */
  private static void straddling() throws Exception {
    TableName name = table("straddling", "m");
    for (String family : List.of("f", "g")) {
      write("straddling/" + family + "/a", family, 10, "from " + family, "a", "l", "m", "z");
    }
    see("load of rows in two regions", () -> load(name, "straddling").size());
    rows(name);
    source("straddling");
    see("same files once more", () -> load(name, "straddling").size());
    rows(name);
    admin().flush(name);
    admin().majorCompact(name);
    rows(name);
  }

  /** Which of equal cells wins: the last write or load. */
  private static void order() throws Exception {
    TableName name = table("order", "m");
    try (Table table = connection.getTable(name)) {
      table.put(put("a", 5, "first"));
      table.put(put("b", 5, "first"));
      admin().flush(name);
      table.put(put("b", 5, "second"));
      write("order/f/a", "f", 5, "loaded", "a", "b", "c", "x");
      see("load", () -> load(name, "order").size());
      rows(name);
      table.put(put("c", 5, "last"));
      rows(name);
      write("deletes/f/a", "f", 5, null, "a", "x");
      see("load of deletes", () -> load(name, "deletes").size());
      rows(name);
    }
  }

  private static void unsuitable() throws Exception {
    TableName name = table("unsuitable", "m");
    write("unmatched/h/a", "h", 5, "v", "a");
    see("unknown family", () -> load(name, "unmatched").size());
    write("unmatched/f/a", "f", 5, "v", "a");
    see("known and unknown family", () -> load(name, "unmatched").size());
    rows(name);
    Files.createDirectories(files.resolve("text/f"));
    Files.writeString(files.resolve("text/f/a"), "this is not an HFile");
    see("text", () -> load(name, "text").size());
    Files.createDirectories(files.resolve("empty/f"));
    see("no files", () -> load(name, "empty").size());
    write("empty/f/a", "f", 5, "v");
    see("a file without cells", () -> load(name, "empty").size());
    for (int at = 0; at < 34; at++) {
      write("many/f/" + at, "f", 5, "v", "a" + at);
    }
    see("too many files", () -> load(name, "many").size());
    rows(name);
    see("absent directory", () -> load(name, "absent").size());
    Configuration without = new Configuration(conf);
    without.set("create.table", "no");
    write("good/f/a", "f", 5, "v", "a");
    see("absent table", () -> BulkLoadHFiles.create(without)
        .bulkLoad(TableName.valueOf("absent"), path("good")).size());
    admin().disableTable(name);
    see("disabled table", () -> load(name, "good").size());
    source("good");
  }

  private static void codecs() throws Exception {
    TableName name = table("codecs", "m");
    int at = 0;
    for (Compression.Algorithm codec : List.of(Compression.Algorithm.NONE, Compression.Algorithm.GZ)) {
      for (DataBlockEncoding encoding : DataBlockEncoding.values()) {
        String row = String.format("r%02d", at++);
        write("codecs/f/" + row, "f", 5, "v", codec, encoding, row + "a", row + "b");
      }
    }
    see("load", () -> load(name, "codecs").size());
    rows(name);
  }

  private static void created() throws Exception {
    TableName name = TableName.valueOf("created");
    write("created/f/a", "f", 5, "v", "a", "c");
    write("created/f/b", "f", 5, "v", "d", "f");
    write("created/g/a", "g", 5, "v", "b", "c");
    see("load into an absent table", () -> load(name, "created").size());
    rows(name);
    source("created");
    see("regions", () -> admin().getRegions(name).stream()
        .map(region -> Bytes.toStringBinary(region.getStartKey())).collect(Collectors.toList()));
  }

  private static void tool() throws Exception {
    TableName name = table("tool", "m");
    write("tool/f/a", "f", 5, "v", "a", "z");
    see("completebulkload", () -> ToolRunner.run(conf, new BulkLoadHFilesTool(conf),
        new String[] {path("tool").toString(), "tool"}));
    rows(name);
    Configuration copying = new Configuration(conf);
    copying.setBoolean(BulkLoadHFiles.ALWAYS_COPY_FILES, true);
    write("copied/f/a", "f", 5, "v", "b");
    see("copied", () -> BulkLoadHFiles.create(copying).bulkLoad(name, path("copied")).size());
    source("copied");
    Configuration unsplit = new Configuration(conf);
    unsplit.setBoolean("hbase.loadincremental.fail.if.need.split.hfile", true);
    write("unsplit/f/a", "f", 5, "v", "a", "z");
    see("a file that must not be split",
        () -> BulkLoadHFiles.create(unsplit).bulkLoad(name, path("unsplit")).size());
    rows(name);
  }

  private static Admin admin() throws IOException {
    return connection.getAdmin();
  }

  private static TableName table(String text, String split) throws IOException {
    TableName name = TableName.valueOf(text);
    admin().createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("f"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), new byte[][] {Bytes.toBytes(split)});
    return name;
  }

  private static org.apache.hadoop.fs.Path path(String directory) {
    return new org.apache.hadoop.fs.Path(files.resolve(directory).toUri());
  }

  private static java.util.Map<?, ?> load(TableName name, String directory) throws IOException {
    return BulkLoadHFiles.create(conf).bulkLoad(name, path(directory));
  }

  private static Put put(String row, long timestamp, String value) {
    return new Put(Bytes.toBytes(row)).addColumn(Bytes.toBytes("f"), Bytes.toBytes("q"), timestamp, Bytes.toBytes(value));
  }

  private static void write(String file, String family, long timestamp, String value, String... rows)
      throws IOException {
    write(file, family, timestamp, value, Compression.Algorithm.NONE, DataBlockEncoding.NONE, rows);
  }

  /** Writes a file with one cell for each row; a delete of the column if there is no value. */
  private static void write(String file, String family, long timestamp, String value,
      Compression.Algorithm codec, DataBlockEncoding encoding, String... rows) throws IOException {
    FileSystem local = FileSystem.getLocal(conf);
    org.apache.hadoop.fs.Path path = path(file);
    local.mkdirs(path.getParent());
    HFile.Writer writer = HFile.getWriterFactory(conf, new CacheConfig(conf)).withPath(local, path)
        .withFileContext(new HFileContextBuilder().withCompression(codec).withDataBlockEncoding(encoding).build())
        .create();
    for (String row : rows) {
      KeyValue.Type type = value == null ? KeyValue.Type.DeleteColumn : KeyValue.Type.Put;
      writer.append(new KeyValue(Bytes.toBytes(row), Bytes.toBytes(family), Bytes.toBytes("q"), timestamp, type,
          Bytes.toBytes(value == null ? "" : value)));
    }
    writer.appendFileInfo(HStoreFile.BULKLOAD_TIME_KEY, Bytes.toBytes(1L));
    writer.close();
  }

  private static void rows(TableName name) throws IOException {
    StringBuilder text = new StringBuilder();
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(new Scan())) {
      for (Result result : scanner) {
        for (Cell cell : result.rawCells()) {
          text.append(' ').append(Bytes.toString(CellUtil.cloneRow(cell))).append('/')
              .append(Bytes.toString(CellUtil.cloneFamily(cell))).append('=')
              .append(Bytes.toString(CellUtil.cloneValue(cell)));
        }
      }
    }
    System.out.println("  rows:" + text);
  }

  /** Which of the files are still there. */
  private static void source(String directory) throws IOException {
    try (Stream<Path> found = Files.walk(files.resolve(directory))) {
      System.out.println("  files left: " + found.filter(Files::isRegularFile)
          .filter(file -> !file.getFileName().toString().endsWith(".crc") && !file.toString().contains("/.tmp/"))
          .map(file -> files.relativize(file).toString()).sorted().collect(Collectors.toList()));
    }
  }

  private static void see(String what, Callable<Object> step) {
    String seen;
    try {
      seen = String.valueOf(step.call());
    } catch (Exception error) {
      // The rest of a message has names of servers, files and times.
      String message = String.valueOf(error.getMessage()).split("\n")[0];
      seen = "! " + error.getClass().getName() + ": " + message.replaceAll("\\d{3,}|/[^ ]*", "*");
    }
    System.out.println(what + ": " + seen);
  }
}
