package org.apache.hadoop.hbase.thrift2;

import org.apache.hadoop.conf.Configuration;

/** Replaces HBase's class of this name: the relay of Thrift 1, to the gateway of Thrift 2. */
public class ThriftServer extends org.apache.hadoop.hbase.thrift.ThriftServer {
  public ThriftServer(Configuration conf) {
    super(conf);
  }

  @Override
  protected int version() {
    return 2;
  }
}
