package compat.async;

/** Requests of one topic, sent to one table. */
interface Suite {
  void run(Table table) throws Exception;
}
