package compat.spark;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.mapreduce.MultiTableSnapshotInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableMapReduceUtil;
import org.apache.hadoop.hbase.mapreduce.TableSnapshotInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableSnapshotInputFormat.TableSnapshotRegionSplit;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.RegionSplitter;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.Partition;
import org.apache.spark.rdd.NewHadoopPartition;

/** Snapshots that the job reads from the directory of the server, without the server. */
final class Snapshots {
  static void read(Session session) throws Exception {
    Tables.create(session, "kept", Tables.SPLITS, Tables.family("f"), Tables.family("g"));
    copyRows(session);
    session.admin.snapshot("kept-snapshot", TableName.valueOf("kept"));
    // The length of each split is 0, so Spark's default ignores all.
    show(session, "partitions of length 0 ignored", input(session, 0, new Scan()));
    session.ignoreEmptySplits(false);
    show(session, "all", input(session, 0, new Scan()));
    show(session, "versions of a family", input(session, 0, new Scan().addFamily(Tables.bytes("f")).readAllVersions()));
    show(session, "range", input(session, 0, new Scan().withStartRow(Tables.row(700)).withStopRow(Tables.row(1200))));
    show(session, "time range", input(session, 0, new Scan().setTimeRange(1500, 1600)));
    show(session, "raw", input(session, 0, new Scan().setRaw(true).readAllVersions()));
    show(session, "two mappers per region", input(session, 2, new Scan()));
    // The files of the snapshot move to the archive.
    try (Table table = session.connection.getTable(TableName.valueOf("kept"))) {
      List<Delete> deletes = new ArrayList<>();
      for (int number = 0; number < Tables.ROWS; number += 2) {
        deletes.add(new Delete(Tables.row(number)));
      }
      table.delete(deletes);
    }
    Tables.flush(session, "kept");
    majorCompact(session, "kept");
    show(session, "after a major compaction", input(session, 0, new Scan()));
    session.admin.disableTable(TableName.valueOf("kept"));
    session.admin.deleteTable(TableName.valueOf("kept"));
    show(session, "after the table was dropped", input(session, 0, new Scan()));
    session.ignoreEmptySplits(true);
  }

  /** Copies the families f and g of the main table by a job. */
  private static void copyRows(Session session) throws Exception {
    Peers.copyRows(session, "kept", session.conf());
  }

  static void majorCompact(Session session, String table) throws Exception {
    TableName name = TableName.valueOf(table);
    long before = session.admin.getLastMajorCompactionTimestamp(name);
    session.admin.majorCompact(name);
    // The state is that of the table: some regions may not have started.
    for (int attempt = 0; attempt < 600; attempt++) {
      Thread.sleep(100);
      boolean idle = session.admin.getCompactionState(name) == org.apache.hadoop.hbase.client.CompactionState.NONE;
      if (idle && session.admin.getLastMajorCompactionTimestamp(name) > before) {
        return;
      }
    }
    throw new IllegalStateException("the major compaction did not end");
  }

  private static Configuration input(Session session, int mappers, Scan scan) throws Exception {
    Job job = Job.getInstance(session.conf());
    job.getConfiguration().set(TableInputFormat.SCAN, TableMapReduceUtil.convertScanToString(scan));
    if (mappers == 0) {
      TableSnapshotInputFormat.setInput(job, "kept-snapshot", session.uri("restored"));
    } else {
      TableSnapshotInputFormat.setInput(job, "kept-snapshot", session.uri("restored"),
        new RegionSplitter.UniformSplit(), mappers);
    }
    return job.getConfiguration();
  }

  private static void show(Session session, String what, Configuration conf) throws Exception {
    var rows = session.rows(conf, TableSnapshotInputFormat.class);
    Partition[] partitions = rows.rdd().partitions();
    session.print(what + ": partitions " + partitions.length);
    List<String> lines = new ArrayList<>();
    for (Partition partition : partitions) {
      var split = (TableSnapshotRegionSplit) ((NewHadoopPartition) partition).serializableHadoopSplit().value();
      lines.add("  " + Bytes.toStringBinary(split.getRegion().getStartKey()) + " to "
        + Bytes.toStringBinary(split.getRegion().getEndKey())
        + " at " + List.of(split.getLocations()) + " length " + split.getLength());
    }
    // HBase reads the regions of a snapshot concurrently, so their order differs from run to run.
    lines.stream().sorted().forEach(session::print);
    session.printRows("  rows", rows.coalesce(1));
    Job job = Job.getInstance(conf);
    TableSnapshotInputFormat.cleanRestoreDir(job, "kept-snapshot");
    session.print("  files left: " + files(session.path("restored")));
  }

  private static long files(Path directory) throws Exception {
    if (!Files.exists(directory)) {
      return 0;
    }
    try (Stream<Path> files = Files.walk(directory)) {
      return files.filter(Files::isRegularFile).count();
    }
  }

  /** Scans of several snapshots in one RDD. */
  static void several(Session session) throws Exception {
    session.admin.snapshot("main-snapshot", TableName.valueOf(Tables.MAIN));
    session.admin.snapshot("text-snapshot", TableName.valueOf("text"));
    Map<String, Collection<Scan>> scans = new LinkedHashMap<>();
    scans.put("main-snapshot", List.of(
      new Scan().addFamily(Tables.bytes("g")).withStopRow(Tables.row(600)),
      new Scan().addFamily(Tables.bytes("big")).withStartRow(Tables.row(1800))));
    scans.put("text-snapshot", List.of(new Scan()));
    Configuration conf = session.conf();
    MultiTableSnapshotInputFormat.setInput(conf, scans, session.uri("restored-several"));
    session.ignoreEmptySplits(false);
    var rows = session.rows(conf, MultiTableSnapshotInputFormat.class);
    session.print("partitions " + rows.getNumPartitions());
    session.printRows("rows", rows.coalesce(1));
    session.ignoreEmptySplits(true);
  }

  private Snapshots() {
  }
}
