package compat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.MultiTableOutputFormat;
import org.apache.hadoop.hbase.mapreduce.TableOutputFormat;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.mapreduce.MRJobConfig;
import org.apache.spark.api.java.JavaPairRDD;
import scala.Tuple2;

/** Puts and deletes with TableOutputFormat. */
final class Writes {
  static <M extends Mutation> void save(Session session, String table, JavaPairRDD<ImmutableBytesWritable, M> mutations) {
    mutations.saveAsNewAPIHadoopDataset(output(session, table));
  }

  static Configuration output(Session session, String table, String... settings) {
    Configuration conf = session.conf(settings);
    conf.set(TableOutputFormat.OUTPUT_TABLE, table);
    conf.set(MRJobConfig.OUTPUT_FORMAT_CLASS_ATTR, TableOutputFormat.class.getName());
    return conf;
  }

  private static JavaPairRDD<ImmutableBytesWritable, Mutation> mutations(Session session, int rows,
      org.apache.spark.api.java.function.Function<Integer, Mutation> mutation) {
    List<Integer> numbers = new ArrayList<>();
    for (int number = 0; number < rows; number++) {
      numbers.add(number);
    }
    return session.spark.parallelize(numbers, 3)
      .mapToPair(number -> new Tuple2<>(new ImmutableBytesWritable(), mutation.call(number)));
  }

  private static Mutation put(int number, long timestamp) {
    Put put = new Put(Tables.row(number));
    put.addColumn(Bytes.toBytes("f"), Bytes.toBytes("a"), timestamp, Bytes.toBytes("value " + number));
    put.addColumn(Bytes.toBytes("f"), Bytes.toBytes("b"), timestamp + 1, new byte[number * 10]);
    put.addColumn(Bytes.toBytes("g"), new byte[0], timestamp, new byte[] {(byte) number, 0, -1});
    if (number % 4 == 0) {
      put.setDurability(Durability.ASYNC_WAL);
    }
    if (number % 10 == 3) {
      put.setTTL(86_400_000L * 365 * 100);
    }
    return put;
  }

  private static Mutation delete(int number) {
    Delete delete = new Delete(Tables.row(number));
    return switch (number % 5) {
      case 0 -> new Delete(Tables.row(number), 150);
      case 1 -> delete.addFamily(Bytes.toBytes("f"), 150);
      case 2 -> delete.addColumns(Bytes.toBytes("f"), Bytes.toBytes("a"), 250);
      case 3 -> delete.addColumn(Bytes.toBytes("f"), Bytes.toBytes("b"), 101);
      default -> delete.addFamilyVersion(Bytes.toBytes("g"), 200);
    };
  }

  static void putsAndDeletes(Session session) throws Exception {
    Tables.create(session, "written", new String[] {"row0100", "row0200"}, Tables.family("f"), Tables.family("g"));
    save(session, "written", mutations(session, 300, number -> put(number, 100)));
    session.printTable("written", 0);
    save(session, "written", mutations(session, 300, number -> put(number, 200)));
    save(session, "written", mutations(session, 250, Writes::delete));
    session.printTable("written", 0);
    session.ignoreEmptySplits(false);
    session.printRows("read again", session.rows(session.input("written")));
    session.ignoreEmptySplits(true);
    Tables.flush(session, "written");
    session.printRows("after a flush", session.rows(session.input("written")));
    // Puts and deletes of the same rows, from a table into itself.
    JavaPairRDD<ImmutableBytesWritable, Mutation> changes = session.rows(session.input("written"))
      .mapToPair(row -> {
        byte[] key = row._2.getRow();
        boolean put = row._2.size() < 3;
        return new Tuple2<>(row._1, put
          ? new Put(key).addColumn(Bytes.toBytes("g"), Bytes.toBytes("size"), 300, Bytes.toBytes(row._2.size()))
          : new Delete(key, 300));
      });
    save(session, "written", changes);
    session.printTable("written", 0);
    session.printRows("changed", session.rows(session.input("written")));
  }

  /** The key of each pair names its table. */
  static void severalTables(Session session) throws Exception {
    Tables.create(session, "even", new String[] {}, Tables.family("f"), Tables.family("g"));
    Tables.create(session, "odd", new String[] {"row0050"}, Tables.family("f"), Tables.family("g"));
    JavaPairRDD<ImmutableBytesWritable, Mutation> mutations = mutations(session, 100, number -> put(number, 100))
      .mapToPair(pair -> {
        int last = pair._2.getRow()[6];
        return new Tuple2<>(new ImmutableBytesWritable(Bytes.toBytes(last % 2 == 0 ? "even" : "odd")), pair._2);
      });
    for (boolean logged : new boolean[] {true, false}) {
      Configuration conf = session.conf(MultiTableOutputFormat.WAL_PROPERTY, String.valueOf(logged));
      conf.set(MRJobConfig.OUTPUT_FORMAT_CLASS_ATTR, MultiTableOutputFormat.class.getName());
      mutations.saveAsNewAPIHadoopDataset(conf);
      session.printTable("even", 0);
      session.printTable("odd", 0);
    }
  }

  private Writes() {
  }
}
