package compat.spark;

import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableSnapshotInputFormat;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.api.java.JavaPairRDD;
import scala.Tuple2;

/** What a job gets for a missing or disabled table, a missing family or snapshot. */
final class Failures {
  private interface Action {
    void run() throws Exception;
  }

  static void run(Session session) throws Exception {
    session.printRows("a missing table", session.rows(session.input("missing")));
    session.printRows("a missing family", session.rows(session.input(Tables.MAIN,
      TableInputFormat.SCAN_COLUMN_FAMILY, "x", TableInputFormat.SCAN_ROW_STOP, "row0100")));
    session.printRows("a scan that cannot be parsed", session.rows(session.input(Tables.MAIN, TableInputFormat.SCAN, "AAAA")));
    session.printRows("rows in the wrong order", session.rows(session.input(Tables.MAIN,
      TableInputFormat.SCAN_ROW_START, "row1200", TableInputFormat.SCAN_ROW_STOP, "row0100")));
    attempt(session, "a write to a missing table", () -> Writes.save(session, "missing", puts(session, "f", 10)));
    Tables.create(session, "refusing", new String[] {"m"}, Tables.family("f"));
    attempt(session, "a write to a missing family", () -> Writes.save(session, "refusing", puts(session, "x", 10)));
    attempt(session, "a value that is too long", () -> Writes.save(session, "refusing", puts(session, "f", 11 << 20)));
    session.admin.disableTable(TableName.valueOf("refusing"));
    attempt(session, "a write to a disabled table", () -> Writes.save(session, "refusing", puts(session, "f", 10)));
    session.ignoreEmptySplits(false);
    session.printRows("a disabled table", session.rows(session.input("refusing")));
    session.ignoreEmptySplits(true);
    attempt(session, "a missing snapshot", () -> {
      Job job = Job.getInstance(session.conf());
      TableSnapshotInputFormat.setInput(job, "missing", session.uri("restored"));
    });
  }

  private static JavaPairRDD<ImmutableBytesWritable, Mutation> puts(Session session, String family, int length) {
    return session.spark.parallelize(java.util.List.of("a", "z"), 1)
      .mapToPair(row -> new Tuple2<>(new ImmutableBytesWritable(), new Put(Bytes.toBytes(row))
        .addColumn(Bytes.toBytes(family), Bytes.toBytes("q"), 1, new byte[length])));
  }

  private static void attempt(Session session, String what, Action action) {
    try {
      action.run();
      session.print(what + ": no exception");
    } catch (Exception failure) {
      session.print(what + ": " + Session.chain(failure));
    }
  }

  private Failures() {
  }
}
