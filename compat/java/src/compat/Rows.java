package compat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** Short constructors for bytes, gets, puts and scans. */
final class Rows {
  private Rows() {
  }

  /** The bytes of a text in which `\xNN` is the byte NN. */
  static byte[] b(String text) {
    return Bytes.toBytesBinary(text);
  }

  static byte[][] bytes(String... texts) {
    return Arrays.stream(texts).map(Rows::b).toArray(byte[][]::new);
  }

  static Get get(String row) {
    return new Get(b(row));
  }

  static Delete delete(String row) {
    return new Delete(b(row));
  }

  /**
   * A put of `family:qualifier@timestamp=value` and so on; without `@` the server sets the
   * timestamp.
   */
  static Put put(String row, String... cells) {
    Put put = new Put(b(row));
    for (String cell : cells) {
      int colon = cell.indexOf(':');
      int equals = cell.indexOf('=', colon);
      int at = cell.substring(0, equals).lastIndexOf('@');
      byte[] family = b(cell.substring(0, colon));
      byte[] value = b(cell.substring(equals + 1));
      if (at < 0) {
        put.addColumn(family, b(cell.substring(colon + 1, equals)), value);
      } else {
        put.addColumn(family, b(cell.substring(colon + 1, at)), Long.parseLong(cell.substring(at + 1, equals)), value);
      }
    }
    return put;
  }

  /** All results of a scan. */
  static List<Result> all(Table table, Scan scan) throws Exception {
    return Patience.read(() -> allAtOnce(table, scan));
  }

  private static List<Result> allAtOnce(Table table, Scan scan) throws Exception {
    List<Result> results = new ArrayList<>();
    try (ResultScanner scanner = table.getScanner(scan)) {
      for (Result result = scanner.next(); result != null; result = scanner.next()) {
        results.add(result);
      }
    }
    return results;
  }

  /** A value of `length` bytes that does not repeat within 251 bytes. */
  static byte[] value(int length) {
    byte[] value = new byte[length];
    for (int at = 0; at < length; at++) {
      value[at] = (byte) (at % 251);
    }
    return value;
  }
}
