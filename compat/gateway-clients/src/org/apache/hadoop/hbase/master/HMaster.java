package org.apache.hadoop.hbase.master;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;

/** Replaces HBase's class of this name: what the tests request from a master, through its clients. */
public class HMaster {
  private final Connection connection;

  public HMaster(Connection connection) {
    this.connection = connection;
  }

  public String getClusterId() {
    try (Admin admin = connection.getAdmin()) {
      return admin.getClusterMetrics().getClusterId();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
