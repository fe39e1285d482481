package compat;

import java.util.Map;

/** A group of observations about one topic, on tables of its own. */
interface Suite {
  void run(Session session) throws Exception;

  /** Settings that the servers must run with, beyond their defaults. */
  default Map<String, String> settings() {
    return Map.of();
  }
}
