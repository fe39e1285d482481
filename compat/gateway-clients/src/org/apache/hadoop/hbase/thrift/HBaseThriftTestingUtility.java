package org.apache.hadoop.hbase.thrift;

import compat.Gateways;
import org.apache.hadoop.conf.Configuration;

/** Replaces HBase's class of this name, which starts a Thrift server in this JVM. */
public class HBaseThriftTestingUtility {
  private int port;

  public void startThriftServer(Configuration conf, ThriftMetrics.ThriftServerType type) throws Exception {
    port = Gateways.thrift(type == ThriftMetrics.ThriftServerType.ONE ? 1 : 2, conf);
  }

  public int getServerPort() {
    return port;
  }

  public void stopThriftServer() throws Exception {}
}
