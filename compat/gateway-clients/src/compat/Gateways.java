package compat;

import org.apache.hadoop.conf.Configuration;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.TSocket;

/**
 * The ports of the gateways of the run, from the properties `compat.*`. The configuration that a test
 * passes to its server chooses the gateway that was started with these settings.
 */
public final class Gateways {
  private static final int TIMEOUT_MS = 60_000;

  private Gateways() {}

  public static int rest(Configuration conf) {
    String name = conf.getBoolean("hbase.rest.csrf.enabled", false) ? "rest.csrf" : "rest";
    return port(conf.getBoolean("hbase.rest.readonly", false) ? name + ".readonly" : name);
  }

  public static int thrift(int version, Configuration conf) {
    String name = "thrift" + version;
    if (conf.getBoolean("hbase.regionserver.thrift.http", false)) {
      return port(name + ".http");
    }
    if (conf.getInt("hbase.client.scanner.timeout.period", TIMEOUT_MS) < TIMEOUT_MS) {
      return port(name + ".expiring");
    }
    return port(conf.getBoolean("hbase.thrift.readonly", false) ? name + ".readonly" : name);
  }

  /** A new connection with the transport and protocol that are HBase's defaults. */
  public static TProtocol connect(int version, Configuration conf) {
    try {
      TSocket socket = new TSocket(TConfiguration.DEFAULT, "127.0.0.1", thrift(version, conf), TIMEOUT_MS);
      socket.open();
      return new TBinaryProtocol(socket);
    } catch (TException e) {
      throw new IllegalStateException(e);
    }
  }

  private static int port(String name) {
    Integer port = Integer.getInteger("compat." + name);
    if (port == null) {
      throw new IllegalStateException("no gateway is configured as this test needs it: " + name);
    }
    return port;
  }
}
