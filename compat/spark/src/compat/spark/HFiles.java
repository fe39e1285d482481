package compat.spark;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.io.compress.Compression.Algorithm;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.mapreduce.HFileOutputFormat2;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.spark.Partitioner;
import org.apache.spark.api.java.JavaPairRDD;
import scala.Tuple2;

/** HFiles that a job writes with the settings of a table, and their bulk load. */
final class HFiles {
  /** The region of a row. */
  private static final class Regions extends Partitioner {
    private final String[] starts;

    Regions(byte[][] starts) {
      this.starts = Arrays.stream(starts).map(Bytes::toString).toArray(String[]::new);
    }

    @Override
    public int numPartitions() {
      return starts.length;
    }

    @Override
    public int getPartition(Object key) {
      int found = Arrays.binarySearch(starts, key.toString().substring(0, 7));
      return found >= 0 ? found : -found - 2;
    }
  }

  static void load(Session session) throws Exception {
    Tables.create(session, "loaded", new String[] {"row0400", "row1300"},
      Tables.family("f").setBloomFilterType(BloomType.ROWCOL).setDataBlockEncoding(DataBlockEncoding.FAST_DIFF),
      Tables.family("g").setCompressionType(Algorithm.GZ).setBlocksize(4096));
    TableName name = TableName.valueOf("loaded");
    Path directory = session.path("hfiles");
    Configuration conf;
    try (Table table = session.connection.getTable(name);
        RegionLocator locator = session.connection.getRegionLocator(name)) {
      Job job = Job.getInstance(session.conf());
      HFileOutputFormat2.configureIncrementalLoad(job, table, locator);
      FileOutputFormat.setOutputPath(job, session.uri("hfiles"));
      conf = job.getConfiguration();
      // Each cell once: its sort key, and its parts.
      JavaPairRDD<String, byte[][]> cells = session.rows(session.input(Tables.MAIN, TableInputFormat.SCAN_COLUMNS, "f g"))
        .flatMapToPair(row -> {
          List<Tuple2<String, byte[][]>> parts = new ArrayList<>();
          for (var cell : row._2.rawCells()) {
            byte[][] part = {CellUtil.cloneRow(cell), CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell),
              Bytes.toBytes(cell.getTimestamp()), CellUtil.cloneValue(cell)};
            parts.add(new Tuple2<>(Bytes.toString(part[0]) + Bytes.toString(part[1]) + " " + Bytes.toHex(part[2]), part));
          }
          return parts.iterator();
        });
      cells.repartitionAndSortWithinPartitions(new Regions(locator.getStartKeys()))
        .mapToPair(cell -> new Tuple2<>(new ImmutableBytesWritable(cell._2[0]),
          new KeyValue(cell._2[0], cell._2[1], cell._2[2], Bytes.toLong(cell._2[3]), cell._2[4])))
        .saveAsNewAPIHadoopDataset(conf);
    }
    show(session, directory, conf);
    var loaded = BulkLoadHFiles.create(session.conf()).bulkLoad(name, session.uri("hfiles"));
    session.print("loaded files " + loaded.size());
    session.printTable("loaded", 0);
    session.printRows("read", session.rows(session.input("loaded")));
    Partitions.show(session, "loaded", session.input("loaded"));
    session.print("HFiles left " + hfiles(directory).size());
  }

  private static List<Path> hfiles(Path directory) throws Exception {
    try (Stream<Path> files = Files.walk(directory)) {
      return files.filter(Files::isRegularFile)
        .filter(file -> !file.getFileName().toString().matches("[._].*")).toList();
    }
  }

  /** The settings of the table that the files have. */
  private static void show(Session session, Path directory, Configuration conf) throws Exception {
    TreeMap<String, String> shown = new TreeMap<>();
    for (Path file : hfiles(directory)) {
      var path = new org.apache.hadoop.fs.Path("file://" + file);
      try (HFile.Reader reader = HFile.createReader(path.getFileSystem(conf), path, new CacheConfig(conf), true, conf)) {
        shown.put(file.getParent().getFileName() + " from " + Bytes.toStringBinary(reader.getFirstRowKey().get()),
          " to " + Bytes.toStringBinary(reader.getLastRowKey().get()) + " cells " + reader.getEntries() + " "
            + reader.getTrailer().getCompressionCodec() + " " + reader.getDataBlockEncoding());
      }
    }
    shown.forEach((first, rest) -> session.print(first + rest));
  }

  private HFiles() {
  }
}
