package compat.spark;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Runs steps with HBase's input and output formats in Apache Spark, and prints for each a line
 * {@code ## NAME} and its results.
 * <p>
 * Arguments: a directory for files, and the names of the steps. The class path has the settings of
 * the server in hbase-site.xml.
 */
public final class Steps {
  private interface Step {
    void run(Session session) throws Exception;
  }

  private static Map<String, Step> all() {
    Map<String, Step> steps = new LinkedHashMap<>();
    steps.put("fill", Tables::fill);
    steps.put("partitions", Partitions::ofTheTable);
    steps.put("autobalance", Partitions::balanced);
    steps.put("small-regions", Partitions::ofSmallRegions);
    steps.put("rows", Reads::settings);
    steps.put("scans", Reads::scans);
    steps.put("several-tables", Reads::severalTables);
    steps.put("words", Words::count);
    steps.put("join", Words::join);
    steps.put("puts-and-deletes", Writes::putsAndDeletes);
    steps.put("several-outputs", Writes::severalTables);
    steps.put("failures", Failures::run);
    steps.put("snapshot", Snapshots::read);
    steps.put("several-snapshots", Snapshots::several);
    steps.put("bulk-load", HFiles::load);
    steps.put("splits", Splits::run);
    steps.put("copy-to-peer", Peers::copy);
    steps.put("received", Peers::received);
    return steps;
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, Step> steps = all();
    try (Session session = new Session(arguments[0])) {
      for (int index = 1; index < arguments.length; index++) {
        session.print("## " + arguments[index]);
        System.err.println("## " + arguments[index] + " at " + java.time.LocalTime.now());
        try {
          steps.get(arguments[index]).run(session);
        } catch (Exception failure) {
          session.print("the step failed: " + Session.chain(failure));
          failure.printStackTrace();
        }
      }
      session.print("## end");
    }
    // Threads of clients may still run.
    System.exit(0);
  }

  private Steps() {
  }
}
