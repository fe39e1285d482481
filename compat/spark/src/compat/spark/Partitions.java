package compat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableInputFormatBase;
import org.apache.hadoop.hbase.mapreduce.TableSplit;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.Partition;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.rdd.NewHadoopPartition;
import scala.collection.JavaConverters;

/** The partitions that Spark makes of a table: key ranges, locations, lengths. */
final class Partitions {
  private static final String SIZES = "hbase.regionsizecalculator.enable";

  static void ofTheTable(Session session) throws Exception {
    show(session, "defaults", session.input(Tables.MAIN));
    show(session, "a range of rows", session.input(Tables.MAIN,
      TableInputFormat.SCAN_ROW_START, "row0700", TableInputFormat.SCAN_ROW_STOP, "row1200"));
    show(session, "a range in one region", session.input(Tables.MAIN,
      TableInputFormat.SCAN_ROW_START, "row0700", TableInputFormat.SCAN_ROW_STOP, "row0800"));
    show(session, "three mappers per region", session.input(Tables.MAIN,
      TableInputFormatBase.NUM_MAPPERS_PER_REGION, "3"));
    session.ignoreEmptySplits(false);
    show(session, "without sizes", session.input(Tables.MAIN, SIZES, "false"));
    show(session, "a system table", session.input("hbase:meta"));
    session.ignoreEmptySplits(true);
    show(session, "without sizes, partitions of length 0 ignored", session.input(Tables.MAIN, SIZES, "false"));
  }

  /** HBase's format splits and merges partitions only if the average region has at least 16 MiB. */
  static void balanced(Session session) throws Exception {
    Tables.create(session, "heavy", new String[] {"b", "c", "d", "e"}, Tables.family("f"));
    Random random = new Random(3);
    try (Table table = session.connection.getTable(TableName.valueOf("heavy"))) {
      for (String region : new String[] {"a", "b", "c", "d", "e"}) {
        int rows = switch (region) {
          case "d" -> 62;
          case "e" -> 25;
          default -> 1;
        };
        for (int row = 0; row < rows; row++) {
          byte[] value = new byte[rows == 1 ? 1000 : 1_020_000];
          random.nextBytes(value);
          table.put(new Put(Tables.bytes(String.format("%s%02d", region, row)))
            .addColumn(Tables.bytes("f"), Tables.bytes("q"), 1, value));
        }
      }
    }
    Tables.flush(session, "heavy");
    show(session, "not balanced", session.input("heavy"));
    for (long average : new long[] {1L << 20, 16L << 20, 1L << 33}) {
      Configuration conf = session.input("heavy", TableInputFormatBase.MAPREDUCE_INPUT_AUTOBALANCE, "true",
        TableInputFormatBase.MAX_AVERAGE_REGION_SIZE, String.valueOf(average));
      show(session, "average of at most " + average + " bytes", conf);
      session.printRows("  rows", session.rows(conf));
    }
    session.admin.disableTable(TableName.valueOf("heavy"));
    session.admin.deleteTable(TableName.valueOf("heavy"));
  }

  static void ofSmallRegions(Session session) throws Exception {
    for (boolean ignored : new boolean[] {true, false}) {
      session.ignoreEmptySplits(ignored);
      show(session, "partitions of length 0 " + (ignored ? "ignored" : "read"), session.input("small"));
      session.printRows("  rows", session.rows(session.input("small")), 10);
    }
    session.ignoreEmptySplits(true);
    Tables.flush(session, "small");
    show(session, "after a flush", session.input("small"));
    session.printRows("  rows", session.rows(session.input("small")), 10);
  }

  static void show(Session session, String what, Configuration conf) throws Exception {
    Map<String, Integer> regions = session.regions(conf.get(TableInputFormat.INPUT_TABLE));
    JavaPairRDD<ImmutableBytesWritable, Result> rows = session.rows(conf);
    List<String> lines = new ArrayList<>();
    try {
      for (Partition partition : rows.rdd().partitions()) {
        TableSplit split = (TableSplit) ((NewHadoopPartition) partition).serializableHadoopSplit().value();
        lines.add("  " + Bytes.toStringBinary(split.getStartRow()) + " to " + Bytes.toStringBinary(split.getEndRow())
          + " of region " + regions.get(split.getEncodedRegionName()) + " at " + split.getRegionLocation() + " "
          + Arrays.toString(split.getLocations()) + " for Spark "
          + JavaConverters.seqAsJavaList(rows.rdd().preferredLocations(partition)) + " length " + split.getLength());
      }
    } catch (Exception failure) {
      lines.add("  " + Session.chain(failure));
    }
    session.print(what + ": partitions " + lines.size());
    lines.forEach(session::print);
  }

  private Partitions() {
  }
}
