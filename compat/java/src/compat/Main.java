package compat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/**
 * Sends requests to a server through an unmodified hbase-client and prints the responses.
 *
 * <pre>
 *   java compat.Main SUITE...        (all: every default suite)
 *   java compat.Main --list
 * </pre>
 *
 * hbase-site.xml on the class path has the server's address. The output is a transcript: one line
 * per observation, with everything that differs from run to run (clock, ports, region names)
 * replaced. So two servers are compared by comparing two texts.
 */
public final class Main {
  /** The suites that run by default, in order; then those that take minutes. */
  private static final Map<String, Suite> DEFAULT = new LinkedHashMap<>();
  private static final Map<String, Suite> FURTHER = new LinkedHashMap<>();

  static {
    DEFAULT.put("tables", new Tables());
    DEFAULT.put("schema", new Schema());
    DEFAULT.put("regions", new Regions());
    DEFAULT.put("gets", new Gets());
    DEFAULT.put("puts", new Puts());
    DEFAULT.put("deletes", new Deletes());
    DEFAULT.put("batches", new Batches());
    DEFAULT.put("scans", new Scans());
    DEFAULT.put("storage", new Storage());
    DEFAULT.put("compactions", new Compactions());
    DEFAULT.put("mob", new Mob());
    DEFAULT.put("codecs", new Codecs());
    DEFAULT.put("atomics", new Atomics());
    DEFAULT.put("filters", new Filters());
    DEFAULT.put("async", new Async());
    DEFAULT.put("changes", new Changes());
    DEFAULT.put("aggregation", new Aggregation());
    FURTHER.put("throttles", new Throttles());
    FURTHER.put("slow", new Slow());
    FURTHER.put("endpoints", new Endpoints());
    DEFAULT.put("quotas", new Quotas());
    DEFAULT.put("versions", new Versions());
    DEFAULT.put("splits", new Splits());
    DEFAULT.put("moves", new Moves());
    DEFAULT.put("oddities", new Oddities());
    DEFAULT.put("limits", new Limits());
  }

  private Main() {
  }

  public static void main(String[] arguments) throws Exception {
    if (Arrays.asList(arguments).contains("--list")) {
      System.out.println(String.join(" ", DEFAULT.keySet()));
      System.out.println(String.join(" ", FURTHER.keySet()));
      for (Map<String, Suite> suites : Arrays.asList(DEFAULT, FURTHER)) {
        suites.forEach((name, suite) -> suite.settings().forEach((key, value) ->
            System.out.println(name + " " + key + "=" + value)));
      }
      return;
    }
    Configuration conf = HBaseConfiguration.create();
    Transcript out = new Transcript(System.out);
    Patience.watch(out);
    for (String name : chosen(arguments)) {
      Suite suite = DEFAULT.containsKey(name) ? DEFAULT.get(name) : FURTHER.get(name);
      if (suite == null) {
        throw new IllegalArgumentException("no suite " + name);
      }
      run(name, suite, conf, out);
    }
    // Threads of the client library must not keep a finished program alive.
    System.exit(0);
  }

  private static List<String> chosen(String[] arguments) {
    List<String> names = new ArrayList<>();
    for (String argument : arguments) {
      if (argument.equals("all")) {
        names.addAll(DEFAULT.keySet());
      } else {
        names.add(argument);
      }
    }
    return names.isEmpty() ? new ArrayList<>(DEFAULT.keySet()) : names;
  }

  private static void run(String name, Suite suite, Configuration conf, Transcript out) {
    out.suite(name);
    // A suite that fails records this in its transcript, and the next one still runs.
    try (Session session = new Session(conf, name, out)) {
      session.dropAll();
      suite.run(session);
      session.dropAll();
    } catch (Throwable broken) {
      out.line("BROKEN OFF: " + Show.exceptionWithMessage(broken));
      broken.printStackTrace();
    }
    out.line("end of " + name);
  }
}
