package compat.spark;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.api.java.JavaPairRDD;
import scala.Tuple2;

/** Aggregations over cells. */
final class Words {
  /** Counts words, writes the counts to a table, and reads them from it. */
  static void count(Session session) throws Exception {
    JavaPairRDD<String, Long> counts = session.rows(session.input("text"))
      .map(row -> Bytes.toString(row._2.value()))
      .flatMap(line -> Arrays.asList(line.split(" ")).iterator())
      .mapToPair(word -> new Tuple2<>(word, 1L))
      .reduceByKey(Long::sum);
    print(session, counts);
    Tables.create(session, "counts", new String[] {"m"}, Tables.family("c"));
    Writes.save(session, "counts", counts.mapToPair(count -> new Tuple2<>(new ImmutableBytesWritable(),
      new Put(Bytes.toBytes(count._1)).addColumn(Bytes.toBytes("c"), Bytes.toBytes("count"), 1, Bytes.toBytes(count._2)))));
    session.printTable("counts", 20);
    JavaPairRDD<String, Long> read = session.rows(session.input("counts"))
      .mapToPair(row -> new Tuple2<>(Bytes.toString(row._2.getRow()), Bytes.toLong(row._2.value())));
    // A table that was written only now is in memstores, so its partitions have length 0.
    session.print("partitions " + read.getNumPartitions());
    session.ignoreEmptySplits(false);
    print(session, session.rows(session.input("counts"))
      .mapToPair(row -> new Tuple2<>(Bytes.toString(row._2.getRow()), Bytes.toLong(row._2.value()))));
    session.ignoreEmptySplits(true);
  }

  private static void print(Session session, JavaPairRDD<String, Long> counts) {
    List<Tuple2<String, Long>> sorted = counts.sortByKey().collect();
    session.print("words: " + sorted.stream().map(word -> word._1 + "=" + word._2).collect(Collectors.joining(" ")));
  }

  /** Joins two families of a table, and sums by a part of the row key. */
  static void join(Session session) {
    Configuration numbers = session.input(Tables.MAIN, "hbase.mapreduce.scan.columns", "f:number");
    Configuration binary = session.input(Tables.MAIN, "hbase.mapreduce.scan.columns", "g");
    JavaPairRDD<String, Long> left = session.rows(numbers)
      .mapToPair(row -> new Tuple2<>(key(row._2), Bytes.toLong(row._2.value())));
    JavaPairRDD<String, Long> right = session.rows(binary)
      .mapToPair(row -> new Tuple2<>(key(row._2), row._2.rawCells()[0].getTimestamp()));
    JavaPairRDD<String, Tuple2<Long, Long>> joined = left.join(right).cache();
    session.print("joined rows " + joined.count());
    List<Tuple2<String, Long>> sums = joined
      .mapToPair(row -> new Tuple2<>(row._1.substring(0, 5), row._2._1 * 31 + row._2._2))
      .reduceByKey(Long::sum).sortByKey().collect();
    session.print("sums " + sums);
    session.print("only left " + left.subtractByKey(right).count() + ", only right " + right.subtractByKey(left).count());
  }

  private static String key(Result result) {
    return Bytes.toString(result.getRow());
  }

  private Words() {
  }
}
