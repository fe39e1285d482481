package compat.async;

import static compat.async.Table.b;
import static compat.async.Table.bytes;

import com.stumbleupon.async.Deferred;
import java.util.ArrayList;
import java.util.List;
import org.hbase.async.AppendRequest;
import org.hbase.async.DeleteRequest;
import org.hbase.async.PutRequest;

/** Puts, deletes and appends, single and in batches. */
final class Mutations implements Suite {
  @Override
  public void run(Table t) throws Exception {
    puts(t);
    batches(t);
    deletes(t);
    appends(t);
  }

  private static void puts(Table t) {
    t.topic("puts");
    t.does("one column", () -> t.client.put(t.put("p", "f:a", "1", 10)));
    t.does("several columns", () -> t.client.put(new PutRequest(t.name, b("p"), b("f"), bytes("b", "c"), bytes("2", "3"), 10)));
    t.does("by the clock", () -> t.client.put(new PutRequest(t.name, b("clock"), b("f"), b("a"), b("1"))));
    t.seeGet("the row", t.get("p"));
    t.seeGet("the row by the clock", t.get("clock"));
    t.does("unbuffered", () -> {
      PutRequest put = t.put("p", "g:d", "4", 10);
      put.setBufferable(false);
      return t.client.put(put);
    });
    t.does("not durable", () -> {
      PutRequest put = t.put("p", "g:e", "5", 10);
      put.setDurable(false);
      return t.client.put(put);
    });
    t.does("an empty value", () -> t.client.put(t.put("p", "g:f", "", 10)));
    t.does("a long value", () -> t.client.put(t.put("p", "g:g", "0123456789".repeat(100_000), 10)));
    t.does("a value too long", () -> t.client.put(t.put("p", "g:h", "x".repeat(11 << 20), 10)));
    t.seeGet("the row", t.get("p"));
    t.does("a family that is not there", () -> t.client.put(t.put("p", "nosuch:a", "1", 10)));
    t.does("a table that is not there", () -> t.client.put(
        new PutRequest(b("compat_async_nosuch"), b("r"), b("f"), b("q"), b("v"))));
  }

  /** The library sends all requests of a flush interval as one Multi per server. */
  private static void batches(Table t) {
    t.topic("batches");
    t.see("many rows, one of a bad family", () -> {
      List<Deferred<Object>> answers = new ArrayList<>();
      for (int at = 0; at < 30; at++) {
        answers.add(t.client.put(t.put(String.format("r%02d", at * 2), at == 7 ? "nosuch:a" : "f:a", "" + at, 10)));
      }
      Table.wait(t.client.flush());
      StringBuilder text = new StringBuilder();
      for (Deferred<Object> answer : answers) {
        try {
          Table.wait(answer);
          text.append('+');
        } catch (Exception failed) {
          text.append(" !").append(failed.getClass().getSimpleName()).append(' ');
        }
      }
      return text.toString();
    });
    t.seeScan("the rows", scanner -> scanner.setStartKey("r"));
    t.see("puts, deletes and appends together", () -> {
      List<Deferred<Object>> answers = new ArrayList<>();
      for (int at = 0; at < 30; at++) {
        String row = String.format("r%02d", at * 2);
        answers.add(switch (at % 3) {
          case 0 -> t.client.put(t.put(row, "g:b", "new", 10));
          case 1 -> t.client.delete(new DeleteRequest(t.name, b(row), 20));
          default -> t.client.append(new AppendRequest(t.name, b(row), b("f"), b("a"), b("+")));
        });
      }
      Table.wait(t.client.flush());
      return Table.wait(Deferred.group(answers)).size();
    });
    t.seeScan("the rows without times", scanner -> {
      scanner.setStartKey("r");
      scanner.setMaxTimestamp(1000);
    });
  }

  private static void deletes(Table t) throws Exception {
    t.topic("deletes");
    String[] kinds = {"a row", "a row up to a time", "a family", "a family up to a time", "a column", "a column up to a time",
        "a column at a time", "columns", "a family that is not there"};
    for (String kind : kinds) {
      String row = "delete " + kind;
      for (long at : new long[] {10, 20, 30}) {
        for (String column : new String[] {"f:a", "f:b", "g:c"}) {
          Table.wait(t.client.put(t.put(row, column, "v", at)));
        }
      }
      t.does(kind, () -> t.client.delete(delete(t, kind, b(row))));
      t.seeGet("what is left", t.get(row).maxVersions(10));
    }
  }

  private static DeleteRequest delete(Table t, String kind, byte[] row) {
    return switch (kind) {
      case "a row" -> new DeleteRequest(t.name, row);
      case "a row up to a time" -> new DeleteRequest(t.name, row, 20);
      case "a family" -> new DeleteRequest(t.name, row, b("f"));
      case "a family up to a time" -> new DeleteRequest(t.name, row, b("f"), 20);
      case "a column" -> new DeleteRequest(t.name, row, b("f"), b("a"));
      case "a column up to a time" -> new DeleteRequest(t.name, row, b("f"), b("a"), 20);
      case "a column at a time" -> {
        DeleteRequest delete = new DeleteRequest(t.name, row, b("f"), b("a"), 20);
        delete.setDeleteAtTimestampOnly(true);
        yield delete;
      }
      case "columns" -> new DeleteRequest(t.name, row, b("f"), bytes("a", "b"), 30);
      default -> new DeleteRequest(t.name, row, b("nosuch"));
    };
  }

  private static void appends(Table t) {
    t.topic("appends");
    for (String more : new String[] {"one", " two"}) {
      t.see("of '" + more + "'", () -> {
        AppendRequest append = new AppendRequest(t.name, b("a"), b("f"), b("t"), b(more));
        append.returnResult(true);
        return Table.wait(t.client.append(append));
      });
    }
    t.see("of several columns, no answer wanted", () -> Table.wait(t.client.append(
        new AppendRequest(t.name, b("a"), b("f"), bytes("t", "u"), bytes("3", "4")))));
    t.seeGet("the row", t.get("a"));
    t.see("to a family that is not there", () -> Table.wait(t.client.append(
        new AppendRequest(t.name, b("a"), b("nosuch"), b("t"), b("x")))));
  }
}
