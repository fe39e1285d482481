package compat.differ;

import java.util.function.Supplier;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;

/**
 * An operation that is sent to both servers.
 *
 * @param words the operation as text
 * @param alters the new schema of the table, if it changes
 */
record Operation(String kind, Supplier<Object> words, Schema alters, Call call) {
  /** The request; the same objects are sent to both servers. */
  interface Call {
    Object ask(Table table, Admin admin) throws Exception;
  }

  Operation(String kind, Supplier<Object> words, Call call) {
    this(kind, words, null, call);
  }

  /** The operation as text; computed lazily, because most operations are never shown. */
  String text() {
    return words.get().toString();
  }

  @Override
  public String toString() {
    return kind + " " + text();
  }
}
