package compat.differ;

import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Table;

/** Something that is asked of both servers in the same words. */
record Operation(String kind, String text, Call call) {
  /** The request; the same objects are sent to both servers. */
  interface Call {
    Object ask(Table table, Admin admin) throws Exception;
  }

  @Override
  public String toString() {
    return kind + " " + text;
  }
}
