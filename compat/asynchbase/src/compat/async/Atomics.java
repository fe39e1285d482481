package compat.async;

import static compat.async.Table.b;
import static compat.async.Table.bytes;

import com.stumbleupon.async.Deferred;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.hbase.async.AtomicIncrementRequest;
import org.hbase.async.MultiColumnAtomicIncrementRequest;
import org.hbase.async.PutRequest;
import org.hbase.async.RowLockRequest;

/**
 * Increments (single, of several columns, buffered), compare-and-set, and the row locks of old
 * versions.
 */
final class Atomics implements Suite {
  @Override
  public void run(Table t) throws Exception {
    increments(t);
    comparisons(t);
    t.topic("row locks");
    t.does("lock", () -> t.client.lockRow(new RowLockRequest(t.name, b("r"))));
  }

  private static void increments(Table t) throws Exception {
    t.topic("increments");
    for (long amount : new long[] {5, 0, -7, 1L << 40}) {
      t.see("by " + amount, () -> Table.wait(t.client.atomicIncrement(
          new AtomicIncrementRequest(t.name, b("i"), b("f"), b("n"), amount))));
    }
    t.see("not durable", () -> Table.wait(t.client.atomicIncrement(
        new AtomicIncrementRequest(t.name, b("i"), b("f"), b("n"), 1), false)));
    t.see("of several columns", () -> {
      Map<String, Long> sums = new TreeMap<>();
      for (Map.Entry<byte[], Long> sum : Table.wait(t.client.atomicIncrement(new MultiColumnAtomicIncrementRequest(
          t.name, b("m"), b("f"), bytes("a", "b"), new long[] {1, 2}))).entrySet()) {
        sums.put(Table.text(sum.getKey()), sum.getValue());
      }
      return sums;
    });
    Table.wait(t.client.put(t.put("text", "f:n", "no number", 5)));
    t.see("of what is no number", () -> Table.wait(t.client.atomicIncrement(
        new AtomicIncrementRequest(t.name, b("text"), b("f"), b("n"), 1))));
    t.see("of a family that is not there", () -> Table.wait(t.client.atomicIncrement(
        new AtomicIncrementRequest(t.name, b("i"), b("nosuch"), b("n"), 1))));
    t.see("300 buffered ones of three counters", () -> {
      List<Deferred<Long>> answers = new ArrayList<>();
      for (int at = 0; at < 300; at++) {
        answers.add(t.client.bufferAtomicIncrement(
            new AtomicIncrementRequest(t.name, b("buffered" + at % 3), b("f"), b("n"), 1)));
      }
      Table.wait(t.client.flush());
      return Table.wait(Deferred.group(answers)).size();
    });
    t.seeScan("the counters", scanner -> {
      scanner.setStartKey("buffered");
      scanner.setStopKey("buffered9");
    });
  }

  private static void comparisons(Table t) throws Exception {
    t.topic("comparisons");
    Table.wait(t.client.put(t.put("c", "f:q", "old", 10)));
    t.see("another value", () -> Table.wait(t.client.compareAndSet(t.put("c", "f:q", "new", 20), "other")));
    t.see("the value", () -> Table.wait(t.client.compareAndSet(t.put("c", "f:q", "new", 20), "old")));
    t.see("nothing where something is", () -> Table.wait(t.client.atomicCreate(t.put("c", "f:q", "newer", 30))));
    t.see("nothing where nothing is", () -> Table.wait(t.client.atomicCreate(t.put("c", "f:r", "first", 30))));
    t.see("the empty value where nothing is", () -> Table.wait(
        t.client.compareAndSet(t.put("c", "f:s", "first", 30), "")));
    t.seeGet("the row", t.get("c"));
    t.see("of a family that is not there", () -> Table.wait(
        t.client.compareAndSet(t.put("c", "nosuch:q", "new", 20), "old")));
    t.see("by the clock", () -> Table.wait(t.client.compareAndSet(
        new PutRequest(t.name, b("c"), b("f"), b("q"), b("last")), "new")));
    t.seeGet("the row", t.get("c"));
  }
}
