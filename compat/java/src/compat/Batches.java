package compat;

import static compat.Rows.b;
import static compat.Rows.delete;
import static compat.Rows.get;
import static compat.Rows.put;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;

/** Many actions in one call, each with its own response. */
final class Batches implements Suite {
  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(s.descriptor(s.name("main"), "f", "g"), "h", "p");
    table.put(List.of(put("a", "f:q@1=a"), put("i", "f:q@1=i", "g:q@1=i"), put("z", "f:q@1=z")));
    mixed();
    failures();
    order();
    large();
    results();
    table.close();
  }

  private void mixed() {
    out.topic("gets, puts and deletes together");
    batch("over three regions", List.of(get("a"), put("b", "f:q@2=b"), delete("i").addFamily(b("g")), get("nosuch"),
        get("z").addColumn(b("f"), b("q")), put("z", "g:q@2=zz")));
    out.see("left", () -> table.get(List.of(get("a"), get("b"), get("i"), get("z"))));
    batch("empty", List.of());
    batch("one get", List.of(get("a")));
    batch("one put", List.of(put("one", "f:q@1=v")));
    batch("existence", List.of(get("a").setCheckExistenceOnly(true), get("nosuch").setCheckExistenceOnly(true)));
  }

  private void failures() {
    out.topic("some fail");
    batch("a get of a bad family", List.of(get("a"), get("a").addFamily(b("nosuch")), get("z")));
    batch("a put to a bad family", List.of(put("c", "f:q@1=c"), put("c", "nosuch:q@1=v"), put("y", "f:q@1=y")));
    out.see("the others are there", () -> table.exists(List.of(get("c"), get("y"))));
    batch("a delete in a bad family", List.of(delete("c"), delete("y").addFamily(b("nosuch"))));
    out.see("left", () -> table.exists(List.of(get("c"), get("y"))));
    batch("all of them", List.of(get("a").addFamily(b("no1")), put("b", "no2:q@1=v"), delete("z").addFamily(b("no3"))));
    batch("of every kind among good ones", List.of(get("a"), put("d", "f:q@1=d"), get("a").addFamily(b("no1")),
        put("d", "no2:q@1=v"), delete("b"), delete("z").addFamily(b("no3")), get("z")));
    out.see("left", () -> table.exists(List.of(get("d"), get("b"), get("z"))));
  }

  private void order() {
    out.topic("several for one row");
    batch("puts of one time: the last stays", List.of(put("o", "f:q@5=1"), put("o", "f:q@5=2"), put("o", "f:q@5=3")));
    out.see("left", () -> table.get(get("o")));
    batch("a delete and a put of another time", List.of(delete("o").addColumns(b("f"), b("q"), 5), put("o", "f:q@6=4")));
    out.see("left", () -> table.get(get("o")));
  }

  private void large() {
    out.topic("large");
    out.see("5000 puts", () -> {
      List<Put> puts = new ArrayList<>();
      for (int at = 0; at < 5000; at++) {
        puts.add(put(String.format("%c%05d", 'a' + at % 26, at), "g:n@3=" + at));
      }
      Object[] results = new Object[puts.size()];
      table.batch(puts, results);
      return kinds(results);
    });
    out.see("5000 gets", () -> {
      List<Get> gets = new ArrayList<>();
      for (int at = 0; at < 5000; at++) {
        gets.add(get(String.format("%c%05d", 'a' + at % 26, at)));
      }
      Result[] results = table.get(gets);
      return Arrays.asList(results);
    });
    out.see("40 gets of 1 MiB", () -> {
      List<Get> gets = new ArrayList<>();
      for (int at = 0; at < 40; at++) {
        table.put(new Put(b("big" + at)).addColumn(b("f"), b("q"), 1, Rows.value((1 << 20) - at)));
        gets.add(get("big" + at));
      }
      return Arrays.stream(table.get(gets)).map(result -> result.getValue(b("f"), b("q")).length).toList();
    });
  }

  private static TreeSet<String> kinds(Object[] results) {
    TreeSet<String> kinds = new TreeSet<>();
    for (Object result : results) {
      kinds.add(Show.value(result));
    }
    return kinds;
  }

  private void results() {
    out.topic("answers by callback");
    out.see("regions and answers", () -> {
      TreeSet<String> seen = new TreeSet<>();
      List<Row> actions = List.of(get("a"), put("k", "f:q@1=k"), get("z"));
      table.batchCallback(actions, new Object[3], (region, row, answer) -> {
        synchronized (seen) {
          seen.add(Show.bytes(row) + " " + Show.value(answer));
        }
      });
      return seen;
    });
  }

  /** Runs a batch; prints its result and the response to each action. */
  private void batch(String what, List<? extends Row> actions) {
    Object[] results = new Object[actions.size()];
    out.does(what, () -> table.batch(actions, results));
    for (Object result : results) {
      out.line("    " + Show.value(result));
    }
  }
}
