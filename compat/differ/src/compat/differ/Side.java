package compat.differ;

import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** One of the two servers. */
final class Side implements AutoCloseable {
  final Connection connection;
  final Admin admin;

  Side(Configuration conf) throws Exception {
    connection = ConnectionFactory.createConnection(conf);
    admin = connection.getAdmin();
    Compactions.forbid(admin);
  }

  /**
   * The times of a program's requests: a timestamp that the server chose is shown as its request.
   */
  static final class Clock {
    private final TreeMap<Long, Integer> begins = new TreeMap<>();
    private long last;

    /** Begins a request, in its own millisecond. */
    void begin(int number) throws InterruptedException {
      while (System.currentTimeMillis() <= last) {
        Thread.sleep(1);
      }
      begins.put(System.currentTimeMillis(), number);
    }

    void end() {
      last = System.currentTimeMillis();
    }

    String text(long time) {
      var request = begins.floorEntry(time);
      return request == null ? Long.toString(time) : "request" + request.getValue();
    }
  }

  /** Sends a request, and returns the text of its result or exception. */
  String ask(TableName name, Operation operation, Clock clock, int number) throws Exception {
    clock.begin(number);
    try (var table = connection.getTable(name)) {
      return new Texts(clock).answer(operation.call().ask(table, admin));
    } catch (Exception failed) {
      return Texts.exception(failed);
    } finally {
      clock.end();
    }
  }

  void create(Schema schema) throws Exception {
    drop(schema.name());
    admin.createTable(schema.descriptor());
  }

  void drop(TableName name) throws Exception {
    if (admin.tableExists(name)) {
      if (admin.isTableEnabled(name)) {
        admin.disableTable(name);
      }
      admin.deleteTable(name);
    }
  }

  @Override
  public void close() throws Exception {
    admin.close();
    connection.close();
  }
}
