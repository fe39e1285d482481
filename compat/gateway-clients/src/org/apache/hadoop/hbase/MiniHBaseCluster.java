package org.apache.hadoop.hbase;

import java.io.IOException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.master.HMaster;

/** Replaces HBase's class of this name: what the tests request from a cluster, through its clients. */
public class MiniHBaseCluster {
  private final Connection connection;

  MiniHBaseCluster(Connection connection) {
    this.connection = connection;
  }

  public HMaster getMaster() {
    return new HMaster(connection);
  }

  public ClusterStatus getClusterStatus() throws IOException {
    try (Admin admin = connection.getAdmin()) {
      return new ClusterStatus(admin.getClusterMetrics());
    }
  }
}
