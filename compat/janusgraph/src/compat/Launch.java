package compat;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.launcher.TagFilter.excludeTags;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs one test class and prints a line for each finished test: method, result, milliseconds. The
 * arguments are the class, `only` or `without`, and the methods to run or to exclude.
 */
public class Launch {
  private static final String PACKAGE = "org.janusgraph.diskstorage.hbase.";
  private static final TableName TABLE = TableName.valueOf("janusgraph");

  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    // Standard output has only results.
    System.setOut(System.err);
    dropTable();
    boolean only = args[1].equals("only");
    Set<String> named = Set.of(Arrays.copyOfRange(args, 2, args.length));
    // Classes and engines have no method.
    PostDiscoveryFilter wanted = test -> FilterResult.includedIf(
        method(test.getSource()).map(name -> named.contains(name) == only).orElse(true));
    LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
        .selectors(selectClass(PACKAGE + args[0]))
        // The tests that JanusGraph's own build excludes too.
        .filters(excludeTags("MEMORY_TESTS", "PERFORMANCE_TESTS", "BRITTLE_TESTS"), wanted)
        .build();
    LauncherFactory.create().execute(request, new Reporter(out));
    out.flush();
    // Threads of stores that a test leaves open would keep the program alive.
    System.exit(0);
  }

  /** Gives each class a server without its table, like a new container. */
  private static void dropTable() throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
         Admin admin = connection.getAdmin()) {
      if (admin.tableExists(TABLE)) {
        if (admin.isTableEnabled(TABLE)) {
          admin.disableTable(TABLE);
        }
        admin.deleteTable(TABLE);
      }
    }
  }

  private static Optional<String> method(Optional<TestSource> source) {
    return source.filter(MethodSource.class::isInstance).map(MethodSource.class::cast).map(MethodSource::getMethodName);
  }

  private static final class Reporter implements TestExecutionListener {
    private final PrintStream out;
    private final Map<String, Long> begun = new ConcurrentHashMap<>();

    Reporter(PrintStream out) {
      this.out = out;
    }

    @Override
    public void executionStarted(TestIdentifier test) {
      begun.put(test.getUniqueId(), System.nanoTime());
      System.err.println("begin " + name(test));
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      String outcome = switch (result.getStatus()) {
        case SUCCESSFUL -> "passed";
        // An assumption failed.
        case ABORTED -> "skipped";
        case FAILED -> "failed";
      };
      if (test.isTest() || result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
        report(test, outcome);
      }
      result.getThrowable().ifPresent(thrown -> {
        System.err.println(outcome + " " + name(test));
        thrown.printStackTrace();
      });
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
      report(test, "skipped");
    }

    private void report(TestIdentifier test, String outcome) {
      long now = System.nanoTime();
      long millis = (now - begun.getOrDefault(test.getUniqueId(), now)) / 1_000_000;
      out.println(name(test) + " " + outcome + " " + millis);
      out.flush();
    }

    /** The method, without the values of parameters; the class's name if the whole class failed. */
    private static String name(TestIdentifier test) {
      return method(test.getSource()).orElse(test.getDisplayName());
    }
  }
}
