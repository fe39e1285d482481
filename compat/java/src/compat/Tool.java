package compat;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Small services for the scripts.
 *
 * <pre>
 *   count TABLE     prints the number of rows
 *   settle TABLE    flushes and compacts the table and waits until that is done
 *   drop TABLE...   deletes tables, whether they exist or not
 *   sum TABLE       prints the sum of all values of eight bytes
 *   create TABLE[,TABLE...] FAMILY[,FAMILY...] [SPLIT...]   recreates tables; families keep five versions
 * </pre>
 */
public final class Tool {
  private Tool() {
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    try (Session session = new Session(conf, "tool", new Transcript(System.err))) {
      TableName first = TableName.valueOf(arguments[1].split(",")[0]);
      switch (arguments[0]) {
        case "count" -> System.out.println(count(session.connection, first));
        case "sum" -> System.out.println(sum(session.connection, first));
        case "create" -> {
          for (String table : arguments[1].split(",")) {
            create(session, TableName.valueOf(table), arguments);
          }
        }
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

  private static void create(Session session, TableName name, String[] arguments) throws Exception {
    if (session.admin.tableExists(name)) {
      session.drop(name);
    }
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (String family : arguments[2].split(",")) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Rows.b(family)).setMaxVersions(5).build());
    }
    session.table(table.build(), Arrays.copyOfRange(arguments, 3, arguments.length)).close();
  }

  private static long sum(Connection connection, TableName name) throws Exception {
    long sum = 0;
    try (Table table = connection.getTable(name)) {
      for (Result result : Rows.all(table, new Scan().setCaching(10_000))) {
        for (Cell cell : result.rawCells()) {
          sum += cell.getValueLength() == Long.BYTES ? Bytes.toLong(CellUtil.cloneValue(cell)) : 0;
        }
      }
    }
    return sum;
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
