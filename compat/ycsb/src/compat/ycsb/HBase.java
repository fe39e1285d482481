package compat.ycsb;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * A YCSB binding with the HBase client: one connection per thread, one column of the family `cf`
 * per field.
 *
 * Unlike YCSB's own bindings it counts a missing row or field as an error, because the workloads
 * only read rows that were loaded before.
 */
public final class HBase extends DB {
  private static final byte[] FAMILY = Bytes.toBytes("cf");

  private Connection connection;
  private Table table;
  private int fields;

  @Override
  public void init() throws DBException {
    TableName name = TableName.valueOf(getProperties().getProperty("table", "usertable"));
    fields = Integer.parseInt(getProperties().getProperty("fieldcount", "10"));
    try {
      connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
      try (Admin admin = connection.getAdmin()) {
        if (!admin.tableExists(name)) {
          admin.createTable(TableDescriptorBuilder.newBuilder(name)
              .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build(), splits());
        }
      } catch (TableExistsException another) {
        // Another thread was faster.
      }
      table = connection.getTable(name);
    } catch (IOException failed) {
      throw new DBException(failed);
    }
  }

  /** Keys are "user" followed by a hash in decimal digits. */
  private static byte[][] splits() {
    return new byte[][] {Bytes.toBytes("user3"), Bytes.toBytes("user5"), Bytes.toBytes("user7")};
  }

  @Override
  public void cleanup() throws DBException {
    try {
      table.close();
      connection.close();
    } catch (IOException failed) {
      throw new DBException(failed);
    }
  }

  @Override
  public Status read(String name, String key, Set<String> wanted, Map<String, ByteIterator> out) {
    Get get = new Get(Bytes.toBytes(key)).addFamily(FAMILY);
    if (wanted != null) {
      wanted.forEach(field -> get.addColumn(FAMILY, Bytes.toBytes(field)));
    }
    return tried(() -> {
      fill(table.get(get), out);
      return out.size() == (wanted == null ? fields : wanted.size()) ? Status.OK : Status.NOT_FOUND;
    });
  }

  @Override
  public Status scan(String name, String first, int count, Set<String> wanted,
      Vector<HashMap<String, ByteIterator>> out) {
    Scan scan = new Scan().withStartRow(Bytes.toBytes(first)).addFamily(FAMILY).setLimit(count).setCaching(count);
    if (wanted != null) {
      wanted.forEach(field -> scan.addColumn(FAMILY, Bytes.toBytes(field)));
    }
    return tried(() -> {
      try (ResultScanner scanner = table.getScanner(scan)) {
        for (Result result : scanner) {
          HashMap<String, ByteIterator> row = new HashMap<>();
          fill(result, row);
          out.add(row);
        }
      }
      // The scan starts at a loaded row.
      return out.isEmpty() || out.get(0).size() != (wanted == null ? fields : wanted.size()) ? Status.NOT_FOUND : Status.OK;
    });
  }

  @Override
  public Status update(String name, String key, Map<String, ByteIterator> values) {
    Put put = new Put(Bytes.toBytes(key));
    values.forEach((field, value) -> put.addColumn(FAMILY, Bytes.toBytes(field), value.toArray()));
    return tried(() -> {
      table.put(put);
      return Status.OK;
    });
  }

  @Override
  public Status insert(String name, String key, Map<String, ByteIterator> values) {
    return update(name, key, values);
  }

  @Override
  public Status delete(String name, String key) {
    return tried(() -> {
      table.delete(new Delete(Bytes.toBytes(key)));
      return Status.OK;
    });
  }

  private static void fill(Result result, Map<String, ByteIterator> out) {
    for (Cell cell : result.rawCells()) {
      out.put(Bytes.toString(CellUtil.cloneQualifier(cell)), new ByteArrayByteIterator(CellUtil.cloneValue(cell)));
    }
  }

  private interface Attempt {
    Status run() throws IOException;
  }

  private static Status tried(Attempt attempt) {
    try {
      return attempt.run();
    } catch (IOException failed) {
      System.err.println(failed);
      return Status.ERROR;
    }
  }
}
