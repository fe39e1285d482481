package compat.cluster;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.BufferedMutatorParams;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Fills the memstores of one server.
 *
 * <pre>
 *   create TABLE REGIONS          creates the table
 *   busiest TABLE                 prints `HOST,PORT` of the server that has most of its regions
 *   rows TABLE HOST,PORT N ROUND  flushes the table, then puts N rows into the regions on that server;
 *                                 prints `rows=N`
 *   count TABLE                   prints `rows=N`
 * </pre>
 */
public final class Fill {
  private static final byte[] VALUE = Bytes.toBytes("v".repeat(100));

  private Fill() {
  }

  public static void main(String[] arguments) throws Exception {
    TableName name = TableName.valueOf(arguments[1]);
    try (Connection connection = ConnectionFactory.createConnection(Rows.configuration())) {
      switch (arguments[0]) {
        case "create" -> Rows.createTable(connection, name, Integer.parseInt(arguments[2]));
        case "busiest" -> System.out.println(busiest(connection, name));
        case "rows" -> System.out.println("rows=" + fill(connection, name, arguments[2],
            Long.parseLong(arguments[3]), arguments[4]));
        case "count" -> System.out.println("rows=" + count(connection, name));
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
    System.exit(0);
  }

  private static String server(HRegionLocation location) {
    return location.getHostname() + "," + location.getPort();
  }

  private static String busiest(Connection connection, TableName name) throws Exception {
    java.util.Map<String, Integer> regions = new java.util.TreeMap<>();
    for (HRegionLocation location : connection.getRegionLocator(name).getAllRegionLocations()) {
      regions.merge(server(location), 1, Integer::sum);
    }
    return regions.entrySet().stream().max(java.util.Map.Entry.comparingByValue()).orElseThrow().getKey();
  }

  private static long fill(Connection connection, TableName name, String server, long rows, String round)
      throws Exception {
    connection.getAdmin().flush(name);
    List<byte[]> starts = new ArrayList<>();
    for (HRegionLocation location : connection.getRegionLocator(name).getAllRegionLocations()) {
      if (server(location).equals(server)) {
        byte[] start = location.getRegion().getStartKey();
        starts.add(start.length == 0 ? Bytes.toBytes("00000000") : start);
      }
    }
    AtomicLong failed = new AtomicLong();
    BufferedMutatorParams params = new BufferedMutatorParams(name).writeBufferSize(4 << 20)
        .listener((exception, mutator) -> failed.addAndGet(exception.getNumExceptions()));
    try (BufferedMutator mutator = connection.getBufferedMutator(params)) {
      for (long row = 0; row < rows; row++) {
        byte[] start = starts.get((int) (row % starts.size()));
        Put put = new Put(Bytes.add(start, Bytes.toBytes("-" + round + "-" + row)));
        mutator.mutate(put.addColumn(Rows.FAMILIES[0], Rows.COUNTER, VALUE));
      }
    }
    return rows - failed.get();
  }

  private static long count(Connection connection, TableName name) throws Exception {
    long rows = 0;
    Scan scan = new Scan().setCaching(10_000).setCacheBlocks(false).setFilter(new KeyOnlyFilter());
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
      for (Result result = scanner.next(); result != null; result = scanner.next()) {
        rows++;
      }
    }
    return rows;
  }
}
