package org.apache.hadoop.hbase.thrift;

import compat.Gateways;
import compat.Relay;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hbase.thirdparty.org.eclipse.jetty.server.Server;
import org.apache.thrift.server.TServer;

/**
 * Replaces HBase's class of this name, a Thrift server in this JVM. It forwards connections from the
 * port that the test chose to the gateway of the run.
 */
public class ThriftServer {
  private static final int DEFAULT_PORT = 9090;

  protected final Configuration conf;
  protected volatile int listenPort;
  /** A marker that the server is up: the tests wait for one of the two. */
  protected volatile TServer tserver;
  protected volatile Server httpServer;
  private volatile Relay relay;

  public ThriftServer(Configuration conf) {
    this.conf = conf;
    this.listenPort = conf.getInt("hbase.regionserver.thrift.port", DEFAULT_PORT);
  }

  /** Of the options of HBase's command line, only the port concerns a relay. */
  public int run(String[] args) throws Exception {
    int option = Arrays.asList(args).indexOf("-port");
    if (option >= 0) {
      listenPort = Integer.parseInt(args[option + 1]);
    }
    return run();
  }

  public int run() throws Exception {
    relay = new Relay(listenPort, () -> Gateways.thrift(version(), conf));
    if (conf.getBoolean("hbase.regionserver.thrift.http", false)) {
      httpServer = new Server();
    } else {
      tserver = new Marker();
    }
    relay.run();
    return 0;
  }

  public void stop() {
    try {
      if (relay != null) {
        relay.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  public TServer getTserver() {
    return tserver;
  }

  public Server getHttpServer() {
    return httpServer;
  }

  protected int version() {
    return 1;
  }

  private static final class Marker extends TServer {
    Marker() {
      super(new Args(null));
    }

    @Override
    public void serve() {
      throw new UnsupportedOperationException();
    }
  }
}
