package org.apache.hadoop.hbase.thrift;

import compat.Gateways;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.security.UserProvider;
import org.apache.hadoop.hbase.thrift.generated.Hbase;

/**
 * Replaces HBase's class of this name, which executes the calls of Thrift 1. The tests call it directly;
 * here each call goes to the gateway of the run.
 */
public class ThriftHBaseServiceHandler extends Hbase.Client {
  /** Remains empty: the gateway has one of its own, or none. */
  final IncrementCoalescer coalescer = new IncrementCoalescer(this);

  protected ThriftHBaseServiceHandler(Configuration conf, UserProvider users) throws IOException {
    super(Gateways.connect(1, conf));
  }
}
