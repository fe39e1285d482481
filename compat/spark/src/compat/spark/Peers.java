package compat.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.mapreduce.TableInputFormat;
import org.apache.hadoop.hbase.mapreduce.TableOutputFormat;
import org.apache.hadoop.mapreduce.MRJobConfig;
import scala.Tuple2;

/** Copies between tables, also from one server to another. */
final class Peers {
  /** Writes the main table to the table `received` of the server that `compat.peer` names. */
  static void copy(Session session) throws Exception {
    Configuration conf = session.conf();
    conf.set(TableOutputFormat.QUORUM_ADDRESS, conf.get("compat.peer"));
    copyRows(session, "received", conf);
    session.printRows("rows", session.rows(session.input(Tables.MAIN,
      TableInputFormat.SCAN_COLUMNS, "f g", TableInputFormat.SCAN_MAXVERSIONS, "3")).coalesce(1));
  }

  /** Prints what a peer wrote. */
  static void received(Session session) throws Exception {
    session.ignoreEmptySplits(false);
    session.printRows("rows", session.rows(session.input("received",
      TableInputFormat.SCAN_MAXVERSIONS, "3")).coalesce(1));
    session.ignoreEmptySplits(true);
  }

  static void copyRows(Session session, String table, Configuration conf) throws Exception {
    conf.set(TableOutputFormat.OUTPUT_TABLE, table);
    conf.set(MRJobConfig.OUTPUT_FORMAT_CLASS_ATTR, TableOutputFormat.class.getName());
    session.rows(session.input(Tables.MAIN,
        TableInputFormat.SCAN_COLUMNS, "f g", TableInputFormat.SCAN_MAXVERSIONS, "3"))
      .mapToPair(row -> new Tuple2<>(row._1, put(row._2)))
      .saveAsNewAPIHadoopDataset(conf);
  }

  private static Put put(Result result) throws java.io.IOException {
    Put put = new Put(result.getRow());
    for (Cell cell : result.rawCells()) {
      put.add(cell);
    }
    return put;
  }

  private Peers() {
  }
}
