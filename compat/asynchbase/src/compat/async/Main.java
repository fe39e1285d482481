package compat.async;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.hbase.async.HBaseClient;

/**
 * Sends requests to a server through an unmodified asynchbase and prints the responses.
 *
 * <pre>
 *   java compat.async.Main QUORUM SUITE...        (all: every suite)
 *   java compat.async.Main --list
 * </pre>
 *
 * asynchbase cannot create tables, so each suite's table exists beforehand: compat_async_SUITE,
 * with the families f and g of five versions, split at r20 and r40, empty. The output is a
 * transcript like that of compat/java.
 */
public final class Main {
  private static final Map<String, Suite> SUITES = new LinkedHashMap<>();

  static {
    SUITES.put("tables", new Tables());
    SUITES.put("gets", new Gets());
    SUITES.put("mutations", new Mutations());
    SUITES.put("atomics", new Atomics());
    SUITES.put("scans", new Scans());
    SUITES.put("filters", new Filters());
  }

  private Main() {
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("--list")) {
      System.out.println(String.join(" ", SUITES.keySet()));
      return;
    }
    for (String name : chosen(arguments)) {
      System.out.println("## " + name);
      HBaseClient client = new HBaseClient(arguments[0]);
      // By default a blocking put takes the second during which the library batches other puts.
      client.setFlushInterval((short) 20);
      try {
        SUITES.get(name).run(new Table(client, "compat_async_" + name));
      } catch (Throwable broken) {
        // A suite that fails records this in its transcript, and the next one still runs.
        System.out.println("BROKEN OFF: " + broken);
        broken.printStackTrace();
      }
      client.shutdown().join(10_000);
      System.out.println("end of " + name);
    }
    System.exit(0);
  }

  private static List<String> chosen(String[] arguments) {
    List<String> names = new ArrayList<>();
    for (int at = 1; at < arguments.length; at++) {
      if (arguments[at].equals("all")) {
        names.addAll(SUITES.keySet());
      } else {
        names.add(arguments[at]);
      }
    }
    return names;
  }
}
