package compat.differ;

import java.util.function.Supplier;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;

/**
 * Something that is asked of both servers in the same words.
 *
 * @param words what is asked
 * @param alters what the table becomes, if it does
 */
record Operation(String kind, Supplier<Object> words, Schema alters, Call call) {
  /** The request; the same objects are sent to both servers. */
  interface Call {
    Object ask(Table table, Admin admin) throws Exception;
  }

  Operation(String kind, Supplier<Object> words, Call call) {
    this(kind, words, null, call);
  }

  /** What is asked, as a text; most operations are never shown. */
  String text() {
    return words.get().toString();
  }

  @Override
  public String toString() {
    return kind + " " + text();
  }
}
