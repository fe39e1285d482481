package compat;

import static compat.Rows.b;

import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.coprocessor.AggregationClient;
import org.apache.hadoop.hbase.client.coprocessor.AsyncAggregationClient;
import org.apache.hadoop.hbase.client.coprocessor.BigDecimalColumnInterpreter;
import org.apache.hadoop.hbase.client.coprocessor.DoubleColumnInterpreter;
import org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter;
import org.apache.hadoop.hbase.coprocessor.ColumnInterpreter;

/**
 * HBase's own clients of AggregateService, over all regions of a table that {@link Aggregation}
 * filled. The client finds a median by adding up rows until it has half of the sum, which needs
 * non-negative numbers; the asynchronous one parses the responses incorrectly and never ends.
 */
final class Aggregators implements Suite {
  // Excludes the region without cells, which a scan up to its first row would also query: a median
  // of nothing is an exception there, which clients retry for minutes.
  private static final List<Scan> SCANS = List.of(new Scan().withStopRow(b("r290")),
      new Scan().withStartRow(b("r120")).withStopRow(b("r280")), new Scan().withStartRow(b("r400")));
  private final Table table;

  /** A call; HBase's client declares that it throws anything. */
  private interface Question {
    Object ask() throws Throwable;
  }

  Aggregators(Table table) {
    this.table = table;
  }

  @Override
  public void run(Session s) throws Exception {
    try (AggregationClient client = new AggregationClient(s.conf);
         AsyncConnection connection = ConnectionFactory.createAsyncConnection(s.conf).get()) {
      AsyncTable<AdvancedScanResultConsumer> async = connection.getTable(table.getName());
      of(s.out, client, async, new LongColumnInterpreter(), "l");
      // Numbers whose sums are exact, whatever the order in which regions respond.
      of(s.out, client, async, new DoubleColumnInterpreter(), "e");
      of(s.out, client, async, new BigDecimalColumnInterpreter(), "b");
      s.out.topic("what the client refuses");
      see(s.out, "no family", () -> client.sum(table, new LongColumnInterpreter(), new Scan()));
      see(s.out, "rows in the wrong order", () -> client.sum(table, new LongColumnInterpreter(),
          new Scan().addFamily(b("f")).withStartRow(b("r2")).withStopRow(b("r1"))));
    }
  }

  private <T, S, P extends com.google.protobuf.Message, Q extends com.google.protobuf.Message,
      R extends com.google.protobuf.Message> void of(Transcript out, AggregationClient client, AsyncTable<AdvancedScanResultConsumer> async,
      ColumnInterpreter<T, S, P, Q, R> interpreter, String column) throws Exception {
    out.topic("AggregationClient with " + interpreter.getClass().getSimpleName());
    for (Scan rows : SCANS) {
      Callable<Scan> scan = () -> new Scan(rows).addColumn(b("f"), b(column));
      see(out, "max", () -> client.max(table, interpreter, scan.call()));
      see(out, "max, async", () -> AsyncAggregationClient.max(async, interpreter, scan.call()).get());
      see(out, "min", () -> client.min(table, interpreter, scan.call()));
      see(out, "min, async", () -> AsyncAggregationClient.min(async, interpreter, scan.call()).get());
      see(out, "sum", () -> client.sum(table, interpreter, scan.call()));
      see(out, "sum, async", () -> AsyncAggregationClient.sum(async, interpreter, scan.call()).get());
      see(out, "rows", () -> client.rowCount(table, interpreter, scan.call()));
      see(out, "rows, async", () -> AsyncAggregationClient.rowCount(async, interpreter, scan.call()).get());
      see(out, "average", () -> client.avg(table, interpreter, scan.call()));
      see(out, "average, async", () -> AsyncAggregationClient.avg(async, interpreter, scan.call()).get());
      see(out, "deviation", () -> client.std(table, interpreter, scan.call()));
      see(out, "deviation, async", () -> AsyncAggregationClient.std(async, interpreter, scan.call()).get());
      Scan positive = new Scan(rows).addColumn(b("f"), b("+" + column));
      see(out, "median", () -> client.median(table, interpreter, positive));
      Scan weighted = new Scan(positive).addColumn(b("f"), b("w" + column));
      see(out, "weighted median", () -> client.median(table, interpreter, weighted));
    }
    see(out, "rows of the table", () -> client.rowCount(table, interpreter, new Scan()));
    see(out, "rows of a family", () -> client.rowCount(table, interpreter, new Scan().addFamily(b("g"))));
    see(out, "rows of a column", () -> client.rowCount(table, interpreter, new Scan().addColumn(b("f"), b(column))));
  }

  /**
   * Plain numbers, not the transcript's form: a number with many digits is not a clock time here.
   */
  private static void see(Transcript out, String what, Question question) {
    try {
      out.line(what + ": " + question.ask());
    } catch (Throwable failed) {
      out.line(what + ": " + Show.exceptionWithMessage(failed));
    }
  }
}
