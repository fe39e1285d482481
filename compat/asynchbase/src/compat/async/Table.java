package compat.async;

import com.stumbleupon.async.Deferred;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.hbase.async.DeleteRequest;
import org.hbase.async.GetRequest;
import org.hbase.async.HBaseClient;
import org.hbase.async.KeyValue;
import org.hbase.async.PutRequest;
import org.hbase.async.Scanner;

/** A table, short methods for requests, and the text of the responses. */
final class Table {
  /** A missing response within this time is a result too. */
  private static final long PATIENCE_MS = 30_000;
  private static final int LONG_BYTES = 48;
  private static final int MANY_ROWS = 14;
  private static final long CLOCK_SLACK_MS = 3_600_000;
  private static final Pattern EXCEPTION = Pattern.compile("(?:[a-z0-9]+\\.)+([A-Z][A-Za-z]*Exception)");

  final HBaseClient client;
  final byte[] name;

  Table(HBaseClient client, String name) {
    this.client = client;
    this.name = b(name);
  }

  static byte[] b(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  static byte[][] bytes(String... texts) {
    byte[][] all = new byte[texts.length][];
    for (int at = 0; at < texts.length; at++) {
      all[at] = b(texts[at]);
    }
    return all;
  }

  static <T> T wait(Deferred<T> answer) throws Exception {
    return answer.join(PATIENCE_MS);
  }

  void topic(String text) {
    System.out.println("# " + text);
  }

  /** Records the result of a request, or the class of its exception. */
  void see(String step, Callable<?> question) {
    String answer;
    try {
      answer = show(question.call());
    } catch (Throwable thrown) {
      answer = exception(thrown);
      if (System.getenv("COMPAT_TRACE") != null) {
        thrown.printStackTrace();
      }
    }
    System.out.println(step + ": " + answer);
  }

  /** Records that a request succeeds, whatever it returns, or the class of its exception. */
  void does(String step, Callable<? extends Deferred<?>> request) {
    see(step, () -> {
      wait(request.call());
      return "ok";
    });
  }

  PutRequest put(String row, String column, String value, long timestamp) {
    int colon = column.indexOf(':');
    return new PutRequest(name, b(row), b(column.substring(0, colon)), b(column.substring(colon + 1)), b(value), timestamp);
  }

  GetRequest get(String row) {
    return new GetRequest(name, b(row));
  }

  DeleteRequest delete(String row) {
    return new DeleteRequest(name, b(row));
  }

  void seeGet(String step, GetRequest get) {
    see(step, () -> wait(client.get(get)));
  }

  /** Configures a scanner. */
  interface Setting {
    void on(Scanner scanner);
  }

  /** Records all rows of a scan, requested in batches of this size. */
  void seeScan(String step, Setting setting) {
    see(step, () -> {
      Scanner scanner = client.newScanner(name);
      setting.on(scanner);
      List<List<KeyValue>> rows = new ArrayList<>();
      for (List<? extends List<KeyValue>> next = wait(scanner.nextRows()); next != null;
          next = wait(scanner.nextRows())) {
        rows.addAll(next);
      }
      return rows;
    });
  }

  /** Sixty rows r00 to r59 with versions, two families and a column that few rows have. */
  void fill() throws Exception {
    List<Deferred<Object>> puts = new ArrayList<>();
    for (int at = 0; at < 60; at++) {
      String row = String.format("r%02d", at);
      puts.add(client.put(put(row, "f:a", "old" + at, 10)));
      puts.add(client.put(put(row, "f:a", "new" + at, 20)));
      puts.add(client.put(put(row, "f:b", "b" + at, 20)));
      if (at % 2 == 0) {
        puts.add(client.put(put(row, "g:x", "x" + at, 15)));
      }
      if (at % 15 == 0) {
        puts.add(client.put(put(row, "f:only", "" + at, 12)));
      }
    }
    wait(Deferred.group(puts));
  }

  private static String show(Object answer) throws Exception {
    if (answer instanceof byte[] bytes) {
      return text(bytes);
    } else if (answer instanceof KeyValue) {
      return cells(List.of(answer));
    } else if (answer instanceof List<?> list && !list.isEmpty() && list.get(0) instanceof KeyValue) {
      return cells(list);
    } else if (answer instanceof List<?> list && !list.isEmpty() && list.get(0) instanceof List) {
      List<String> rows = new ArrayList<>();
      for (Object row : list) {
        rows.add(show(row));
      }
      return rows(rows);
    }
    return String.valueOf(answer);
  }

  private static String rows(List<String> rows) throws Exception {
    String text = "" + rows.size();
    if (rows.size() > MANY_ROWS) {
      text += ", digest " + digest(b(String.join("\n", rows)));
      List<String> ends = new ArrayList<>(rows.subList(0, 3));
      ends.add("...");
      ends.addAll(rows.subList(rows.size() - 2, rows.size()));
      rows = ends;
    }
    return text + "\n    " + String.join("\n    ", rows);
  }

  private static String cells(List<?> cells) throws Exception {
    TreeSet<Long> clock = new TreeSet<>();
    for (Object cell : cells) {
      long at = ((KeyValue) cell).timestamp();
      if (Math.abs(at - System.currentTimeMillis()) < CLOCK_SLACK_MS) {
        clock.add(at);
      }
    }
    List<String> texts = new ArrayList<>();
    for (Object item : cells) {
      KeyValue cell = (KeyValue) item;
      long at = cell.timestamp();
      int rank = clock.headSet(at).size();
      String when = !clock.contains(at) ? "" + at : rank == 0 ? "now" : "now+" + rank;
      texts.add(text(cell.key()) + "/" + text(cell.family()) + ":" + text(cell.qualifier()) + "@" + when + "="
          + text(cell.value()));
    }
    return String.join(" ", texts);
  }

  static String text(byte[] bytes) throws Exception {
    if (bytes.length > LONG_BYTES) {
      return "<" + bytes.length + " bytes " + digest(bytes).substring(0, 8) + ">";
    }
    StringBuilder text = new StringBuilder();
    for (byte b : bytes) {
      text.append(b < ' ' || b > '~' || b == '\\' ? String.format("\\x%02X", b) : "" + (char) b);
    }
    return text.toString();
  }

  private static String digest(byte[] bytes) throws Exception {
    StringBuilder text = new StringBuilder();
    for (byte b : MessageDigest.getInstance("MD5").digest(bytes)) {
      text.append(String.format("%02x", b));
    }
    return text.toString();
  }

  /**
   * The class of an exception, and that of the server's exception which the library wraps in its
   * own.
   */
  private static String exception(Throwable thrown) {
    String text = "!" + thrown.getClass().getSimpleName();
    String message = String.valueOf(thrown.getMessage());
    Matcher named = EXCEPTION.matcher(message);
    return named.find() && !named.group(1).equals(thrown.getClass().getSimpleName()) ? text + " " + named.group(1) : text;
  }
}
