package compat;

import static compat.Rows.b;
import static compat.Rows.get;
import static compat.Rows.put;

import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.BufferedMutatorParams;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** What a Put stores, and which puts are refused. */
final class Puts implements Suite {
  private Session s;
  private Transcript out;
  private Table table;

  @Override
  public void run(Session session) throws Exception {
    s = session;
    out = session.out;
    table = s.table(TableDescriptorBuilder.newBuilder(s.name("main"))
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(b("f")).setMaxVersions(5).build())
        .setColumnFamily(ColumnFamilyDescriptorBuilder.of("g")).build(), "m");
    timestamps();
    overwriting();
    durability();
    lists();
    largeCells();
    longKeys();
    refused();
    buffered();
    table.close();
  }

  private void timestamps() throws Exception {
    out.topic("timestamps");
    table.put(put("explicit", "f:q@12345=v"));
    see("explicit", get("explicit"));
    table.put(put("zero", "f:q@0=v"));
    see("zero", get("zero"));
    table.put(put("far", "f:q@9223372036854775806=v"));
    see("the last but one", get("far"));
    table.put(put("server", "f:q=first"));
    Thread.sleep(5);
    table.put(put("server", "f:q=second"));
    Thread.sleep(5);
    table.put(put("server", "f:q=third"));
    see("the server's, three versions", get("server").readAllVersions());
    see("the newest", get("server"));
    table.put(put("several", "f:a=1", "f:b=2", "g:c=3"));
    see("the server's for several columns are one", get("several"));
    table.put(new Put(b("ofput"), 77).addColumn(b("f"), b("q"), b("v")).addColumn(b("f"), b("r"), 78, b("v")));
    see("that of the put and that of the cell", get("ofput"));
    table.put(put("mixed", "f:a@100=old", "f:b=new"));
    see("one explicit, one the server's", get("mixed"));
  }

  private void overwriting() throws Exception {
    out.topic("overwriting");
    table.put(put("same", "f:q@10=first"));
    table.put(put("same", "f:q@10=second"));
    see("the same time twice", get("same").readAllVersions());
    s.admin.flush(s.name("main"));
    table.put(put("same", "f:q@10=third"));
    see("and over a file", get("same").readAllVersions());
    s.admin.flush(s.name("main"));
    see("and from two files", get("same").readAllVersions());
    table.put(put("older", "f:q@20=new"));
    table.put(put("older", "f:q@10=old"));
    see("an older time later", get("older"));
    see("both", get("older").readAllVersions());
    table.put(new Put(b("within")).addColumn(b("f"), b("q"), 10, b("first")).addColumn(b("f"), b("q"), 10, b("second")));
    see("the same column and time twice in one put", get("within").readAllVersions());
    for (int time = 1; time <= 8; time++) {
      table.put(put("many", "f:q@" + time + "=" + time));
    }
    see("more versions than are kept", get("many").readAllVersions());
  }

  private void durability() throws Exception {
    out.topic("durability");
    for (Durability level : Durability.values()) {
      String row = level.name();
      out.does(row, () -> table.put(put(row, "f:q@5=v").setDurability(level)));
      see("is there", get(row));
    }
  }

  private void lists() throws Exception {
    out.topic("lists");
    List<Put> puts = new ArrayList<>();
    for (int row = 0; row < 500; row++) {
      puts.add(put(String.format("%s%03d", row % 2 == 0 ? "list" : "xlist", row), "f:q@9=" + row));
    }
    out.does("500 rows over two regions", () -> table.put(puts));
    out.see("are there", () -> Rows.all(table, new Scan().setTimestamp(9)).size());
    out.does("the same row twice", () -> table.put(List.of(put("twice", "f:q@1=a"), put("twice", "f:q@2=b"))));
    see("has both", get("twice").readAllVersions());
    out.does("an empty list", () -> table.put(List.<Put>of()));
    out.does("one of a bad family among good ones", () -> table.put(List.of(
        put("good1", "f:q@1=v"), put("bad", "nosuch:q@1=v"), put("xgood2", "f:q@1=v"))));
    out.see("the good ones are there", () -> table.exists(List.of(get("good1"), get("bad"), get("xgood2"))));
  }

  private void largeCells() throws Exception {
    out.topic("large cells");
    for (int size : new int[] {1000, 65_536, 1 << 20, 5 << 20}) {
      out.does(size + " bytes", () -> table.put(new Put(b("size" + size)).addColumn(b("f"), b("q"), 1, Rows.value(size))));
      see("come back", get("size" + size));
    }
    out.does("three of 2 MiB in one row", () -> {
      Put put = new Put(b("threebig"));
      for (int column = 0; column < 3; column++) {
        put.addColumn(b("f"), b("q" + column), 1, Rows.value(2 << 20));
      }
      table.put(put);
    });
    see("come back", get("threebig"));
    s.admin.flush(s.name("main"));
    see("5 MiB from a file", get("size" + (5 << 20)));
    out.doesMessage("10 MiB, which the client refuses", () -> table.put(tooLarge()));
    // Without its own check, the client leaves it to the server.
    try (Connection unchecked = s.connect("hbase.client.keyvalue.maxsize", "-1");
        Table other = unchecked.getTable(s.name("main"))) {
      out.does("10 MiB, which the server refuses", () -> other.put(tooLarge()));
      out.does("10 MiB among others", () -> other.put(List.of(put("beside", "f:q@1=v"), tooLarge())));
      out.see("is there", () -> other.exists(get("toolarge")));
    }
  }

  private static Put tooLarge() {
    return new Put(b("toolarge")).addColumn(b("f"), b("q"), 1, Rows.value(10 << 20));
  }

  private void longKeys() throws Exception {
    out.topic("long and strange keys");
    byte[] longest = new byte[32767];
    java.util.Arrays.fill(longest, (byte) 'k');
    out.does("a row of 32767 bytes", () -> table.put(new Put(longest).addColumn(b("f"), b("q"), 1, b("v"))));
    out.see("is there", () -> table.get(new Get(longest)).size());
    out.does("a row of 32768 bytes", () -> new Put(new byte[32768]));
    out.does("an empty row", () -> new Put(new byte[0]));
    out.does("a qualifier of 100000 bytes", () -> table.put(
        new Put(b("longq")).addColumn(b("f"), Rows.value(100_000), 1, b("v"))));
    see("is there", get("longq"));
    for (String row : List.of("\\x00", "\\x00\\x00", "\\x7F", "\\x80", "\\xFF", "\\xFF\\xFF", "a,b", "a:b", " ", "\\x0A")) {
      table.put(put(row, "g:\\x00q\\xFF@3=\\x00"));
    }
    out.see("binary rows in their order", () -> Rows.all(table, new Scan().addFamily(b("g")).setTimestamp(3)));
    table.put(put("emptyvalue", "f:q@1=", "f:@2=", "f:r@3=v"));
    see("empty values and an empty qualifier", get("emptyvalue"));
  }

  private void refused() {
    out.topic("refused");
    out.does("no columns", () -> table.put(new Put(b("r"))));
    out.doesMessage("a negative time", () -> table.put(put("r", "f:q@-5=v")));
    out.does("a family that does not exist", () -> table.put(put("r", "nosuch:q@1=v")));
    out.does("one family that exists and one that does not", () -> table.put(put("half", "f:q@1=v", "nosuch:q@1=v")));
    out.see("none of it is there", () -> table.exists(get("half")));
  }

  private void buffered() throws Exception {
    out.topic("a buffered mutator");
    List<String> failures = new ArrayList<>();
    BufferedMutatorParams params = new BufferedMutatorParams(s.name("main")).writeBufferSize(64 << 10)
        .listener((failed, mutator) -> failures.add(Show.exception(failed)));
    try (BufferedMutator mutator = s.connection.getBufferedMutator(params)) {
      for (int row = 0; row < 2000; row++) {
        mutator.mutate(put(String.format("%sbuf%04d", row % 3 == 0 ? "z" : "a", row), "g:q@44=" + row));
      }
      mutator.flush();
      out.see("2000 rows are there", () -> Rows.all(table, new Scan().setTimestamp(44)).size());
      mutator.mutate(Rows.delete("abuf0001"));
      mutator.mutate(put("rbad", "nosuch:q@1=v"));
      mutator.flush();
    } catch (InterruptedIOException interrupted) {
      throw interrupted;
    } catch (Exception thrown) {
      failures.add(Show.exception(thrown));
    }
    out.see("what failed", () -> failures);
    out.see("the deleted row", () -> table.exists(get("abuf0001")));
  }

  private void see(String what, Get get) {
    out.see(what, () -> (Result) table.get(get));
  }
}
