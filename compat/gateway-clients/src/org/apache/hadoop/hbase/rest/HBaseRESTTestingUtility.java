package org.apache.hadoop.hbase.rest;

import compat.Gateways;
import compat.Relay;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;

/**
 * Replaces HBase's class of this name, which starts its REST server in this JVM. Tests change the
 * configuration of the running server, so a relay chooses the gateway for each request.
 */
public class HBaseRESTTestingUtility {
  private Relay relay;

  public void startServletContainer(Configuration conf) throws Exception {
    relay = new Relay(0, () -> Gateways.rest(conf));
    Relay.inBackground(relay::run);
  }

  public int getServletPort() {
    return relay.port();
  }

  public void shutdownServletContainer() {
    try {
      if (relay != null) {
        relay.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
