package compat;

import java.util.Map;

/** Observations about one topic, on the suite's own tables. */
interface Suite {
  void run(Session session) throws Exception;

  /** Settings that the servers need, beyond their defaults. */
  default Map<String, String> settings() {
    return Map.of();
  }
}
