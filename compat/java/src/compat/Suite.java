package compat;

/** A group of observations about one topic, on tables of its own. */
interface Suite {
  void run(Session session) throws Exception;
}
