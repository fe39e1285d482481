package compat.async;

/** Questions of one topic, asked of one table. */
interface Suite {
  void run(Table table) throws Exception;
}
