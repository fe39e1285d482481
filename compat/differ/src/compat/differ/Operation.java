package compat.differ;

import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;

/**
 * Something that is asked of both servers in the same words.
 *
 * @param alters what the table becomes, if it does
 */
record Operation(String kind, String text, Schema alters, Call call) {
  /** The request; the same objects are sent to both servers. */
  interface Call {
    Object ask(Table table, Admin admin) throws Exception;
  }

  Operation(String kind, String text, Call call) {
    this(kind, text, null, call);
  }

  @Override
  public String toString() {
    return kind + " " + text;
  }
}
