package compat;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/**
 * Small services for the scripts.
 *
 * <pre>
 *   count TABLE     prints the number of rows
 *   settle TABLE    flushes and compacts the table and waits until that is done
 *   drop TABLE...   deletes tables, whether they exist or not
 * </pre>
 */
public final class Tool {
  private Tool() {
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    try (Session session = new Session(conf, "tool", new Transcript(System.err))) {
      TableName first = TableName.valueOf(arguments[1]);
      switch (arguments[0]) {
        case "count" -> System.out.println(count(session.connection, first));
        case "settle" -> {
          session.admin.flush(first);
          session.majorCompact(first);
        }
        case "drop" -> {
          for (int at = 1; at < arguments.length; at++) {
            TableName table = TableName.valueOf(arguments[at]);
            if (session.admin.tableExists(table)) {
              session.drop(table);
            }
          }
        }
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
    System.exit(0);
  }

  private static long count(Connection connection, TableName name) throws Exception {
    long rows = 0;
    Scan scan = new Scan().setCaching(10_000).setMaxResultsPerColumnFamily(1).setCacheBlocks(false);
    try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
      for (Result result = scanner.next(); result != null; result = scanner.next()) {
        rows++;
      }
    }
    return rows;
  }
}
