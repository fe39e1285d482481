package compat.spark;

import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.api.java.JavaPairRDD;
import scala.Tuple2;

/** Regions that change after Spark made its partitions of them, and while it reads them. */
final class Splits {
  private static final TableName NAME = TableName.valueOf("changing");
  private static final AtomicInteger READ = new AtomicInteger();

  static void run(Session session) throws Exception {
    Tables.create(session, "changing", new String[] {"row1000"}, Tables.family("f"), Tables.family("g"));
    Peers.copyRows(session, "changing", session.conf());
    Tables.flush(session, "changing");
    JavaPairRDD<ImmutableBytesWritable, Result> planned = rows(session);
    session.print("planned partitions " + planned.getNumPartitions());
    split(Tables.row(300));
    session.printRows("split before the job", planned);
    Partitions.show(session, "new partitions", session.input("changing"));
    READ.set(0);
    JavaPairRDD<ImmutableBytesWritable, Result> disturbed = rows(session)
      .mapPartitionsToPair(Splits::splitWhileReading);
    session.printRows("split while the job reads", disturbed);
    session.print("regions " + session.admin.getRegions(NAME).size());
    planned = rows(session);
    session.print("planned partitions " + planned.getNumPartitions());
    merge(session);
    session.printRows("merge before the job", planned);
    session.print("regions " + session.admin.getRegions(NAME).size());
  }

  /** Few rows in each request, so that a split meets open scanners. */
  private static JavaPairRDD<ImmutableBytesWritable, Result> rows(Session session) {
    return session.rows(session.input("changing", TableInputFormat.SCAN_CACHEDROWS, "10"));
  }

  private static Iterator<Tuple2<ImmutableBytesWritable, Result>> splitWhileReading(
      Iterator<Tuple2<ImmutableBytesWritable, Result>> rows) {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public Tuple2<ImmutableBytesWritable, Result> next() {
        Tuple2<ImmutableBytesWritable, Result> row = rows.next();
        // The key is an object that the reader changes, so it is copied.
        Tuple2<ImmutableBytesWritable, Result> copy =
          new Tuple2<>(new ImmutableBytesWritable(row._1.copyBytes()), row._2);
        if (Bytes.equals(copy._2.getRow(), Tables.row(1100)) && READ.incrementAndGet() == 1) {
          try {
            split(Tables.row(1500));
          } catch (Exception failure) {
            throw new IllegalStateException(failure);
          }
        }
        return copy;
      }
    };
  }

  private static void split(byte[] row) throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
        Admin admin = connection.getAdmin()) {
      retried(admin, () -> {
        RegionInfo region = connection.getRegionLocator(NAME).getRegionLocation(row, true).getRegion();
        return admin.splitRegionAsync(region.getRegionName(), row);
      });
    }
  }

  private static void merge(Session session) throws Exception {
    retried(session.admin, () -> {
      List<RegionInfo> regions = session.admin.getRegions(NAME);
      byte[][] names = {regions.get(0).getRegionName(), regions.get(1).getRegionName()};
      return session.admin.mergeRegionsAsync(names, false);
    });
  }

  /** A region cannot be split or merged before the files of its parent are compacted. */
  private static void retried(Admin admin, Callable<Future<Void>> change) throws Exception {
    Exception last = null;
    for (int attempt = 0; attempt < 100; attempt++) {
      try {
        change.call().get(60, TimeUnit.SECONDS);
        return;
      } catch (IOException | ExecutionException refused) {
        last = refused;
        admin.majorCompact(NAME);
        Thread.sleep(500);
      }
    }
    throw last;
  }

  private Splits() {
  }
}
