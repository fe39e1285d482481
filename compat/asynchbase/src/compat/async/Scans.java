package compat.async;

import static compat.async.Table.b;
import static compat.async.Table.bytes;

import org.hbase.async.Scanner;

/** Scans: bounds, batches, order, columns, times. */
final class Scans implements Suite {
  @Override
  public void run(Table t) throws Exception {
    t.fill();
    t.topic("bounds");
    t.seeScan("everything", scanner -> { });
    t.seeScan("from a row", scanner -> scanner.setStartKey("r57"));
    t.seeScan("before a row", scanner -> scanner.setStopKey("r02"));
    t.seeScan("between", scanner -> between(scanner, "r18", "r22"));
    t.seeScan("nothing between", scanner -> between(scanner, "s", "t"));
    t.seeScan("reversed", scanner -> scanner.setReversed(true));
    t.seeScan("reversed between", scanner -> {
      between(scanner, "r22", "r18");
      scanner.setReversed(true);
    });
    t.topic("pieces");
    for (int rows : new int[] {1, 7, 20, 1000}) {
      t.seeScan("rows a call " + rows, scanner -> scanner.setMaxNumRows(rows));
      t.seeScan("reversed, rows a call " + rows, scanner -> {
        scanner.setMaxNumRows(rows);
        scanner.setReversed(true);
      });
    }
    t.seeScan("cells a row 2", scanner -> {
      scanner.setMaxNumKeyValues(2);
      between(scanner, "r00", "r04");
    });
    t.seeScan("bytes a call 200", scanner -> scanner.setMaxNumBytes(200));
    t.seeScan("without the cache", scanner -> {
      scanner.setServerBlockCache(false);
      between(scanner, "r00", "r04");
    });
    t.topic("columns, versions, times");
    t.seeScan("a family", scanner -> scanner.setFamily("g"));
    t.seeScan("a column", scanner -> {
      scanner.setFamily("f");
      scanner.setQualifier("only");
    });
    t.seeScan("columns", scanner -> {
      scanner.setFamily("f");
      scanner.setQualifiers(bytes("b", "only"));
      between(scanner, "r14", "r17");
    });
    t.seeScan("columns of two families", scanner -> {
      scanner.setFamilies(bytes("f", "g"), new byte[][][] {bytes("b"), bytes("x")});
      between(scanner, "r14", "r17");
    });
    t.seeScan("versions", scanner -> {
      scanner.setMaxVersions(3);
      between(scanner, "r14", "r17");
    });
    t.seeScan("a range of times", scanner -> {
      scanner.setTimeRange(10, 16);
      between(scanner, "r14", "r17");
    });
    t.seeScan("a family that is not there", scanner -> scanner.setFamily("nosuch"));
    closedEarly(t);
  }

  private static void closedEarly(Table t) {
    t.topic("a scanner that is closed early");
    Scanner scanner = t.client.newScanner(t.name);
    t.see("two rows", () -> Table.wait(scanner.nextRows(2)));
    t.does("close", scanner::close);
  }

  private static void between(Scanner scanner, String start, String stop) {
    scanner.setStartKey(b(start));
    scanner.setStopKey(b(stop));
  }
}
