package org.apache.hadoop.hbase;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.HBaseAdmin;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Replaces HBase's class of this name, which starts a cluster in this JVM. The server of the run is up
 * already; hbase-site.xml names it. It has the methods that the tests of the gateways call.
 */
public class HBaseTestingUtility extends HBaseCommonTestingUtility {
  private Connection connection;

  public HBaseTestingUtility() {
    this(HBaseConfiguration.create());
  }

  public HBaseTestingUtility(Configuration conf) {
    super(conf);
  }

  /** Empties the server, as a new cluster would be. */
  public MiniHBaseCluster startMiniCluster() throws Exception {
    try (Admin admin = getAdmin()) {
      for (TableName table : admin.listTableNames()) {
        delete(admin, table);
      }
      for (NamespaceDescriptor namespace : admin.listNamespaceDescriptors()) {
        if (!NamespaceDescriptor.RESERVED_NAMESPACES.contains(namespace.getName())) {
          admin.deleteNamespace(namespace.getName());
        }
      }
    }
    return getMiniHBaseCluster();
  }

  /** The number of region servers is that of the server of the run. */
  public MiniHBaseCluster startMiniCluster(int servers) throws Exception {
    return startMiniCluster();
  }

  public MiniHBaseCluster getMiniHBaseCluster() {
    try {
      return new MiniHBaseCluster(getConnection());
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  public void shutdownMiniCluster() throws Exception {
    if (connection != null) {
      connection.close();
      connection = null;
    }
  }

  public synchronized Connection getConnection() throws IOException {
    if (connection == null) {
      connection = ConnectionFactory.createConnection(conf);
    }
    return connection;
  }

  public Admin getAdmin() throws IOException {
    return getConnection().getAdmin();
  }

  public HBaseAdmin getHBaseAdmin() throws IOException {
    return (HBaseAdmin) getAdmin();
  }

  public Table createTable(TableName name, byte[] family) throws IOException {
    return createTable(withFamily(name, family), null);
  }

  public Table createTable(TableDescriptor table, byte[][] splits) throws IOException {
    try (Admin admin = getAdmin()) {
      admin.createTable(table, splits);
    }
    return getConnection().getTable(table.getTableName());
  }

  /** Splits at keys of five letters. */
  public Table createMultiRegionTable(TableName name, byte[] family, int regions) throws IOException {
    try (Admin admin = getAdmin()) {
      admin.createTable(withFamily(name, family), Bytes.toBytes("aaaaa"), Bytes.toBytes("zzzzz"), regions);
    }
    return getConnection().getTable(name);
  }

  public void deleteTable(TableName table) throws IOException {
    try (Admin admin = getAdmin()) {
      delete(admin, table);
    }
  }

  private static TableDescriptor withFamily(TableName name, byte[] family) {
    return TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of(family)).build();
  }

  private static void delete(Admin admin, TableName table) throws IOException {
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
    admin.deleteTable(table);
  }
}
