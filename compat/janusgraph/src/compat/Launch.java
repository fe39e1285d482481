package compat;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintStream;
import java.util.Map;
import java.util.TreeMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs test classes, and prints a line for each test: its class and method, and what came of it. */
public class Launch {
  private static final String PACKAGE = "org.janusgraph.diskstorage.hbase.";

  public static void main(String[] args) {
    PrintStream out = System.out;
    // What tests print is not the result.
    System.setOut(System.err);
    LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
    for (String name : args) {
      request.selectors(selectClass(PACKAGE + name));
    }
    Results results = new Results();
    LauncherDiscoveryRequest built = request.build();
    LauncherFactory.create().execute(built, results);
    results.outcomes.forEach((test, outcome) -> out.println(test + ": " + outcome));
    out.flush();
    // Threads of stores that stay open do not keep the program.
    System.exit(0);
  }

  private static final class Results implements TestExecutionListener {
    private final Map<String, String> outcomes = new TreeMap<>();

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      boolean failed = result.getStatus() != TestExecutionResult.Status.SUCCESSFUL;
      if (test.isTest() || failed) {
        outcomes.merge(name(test), failed ? "failed" : "passed", (old, next) -> old.equals("failed") ? old : next);
      }
      result.getThrowable().ifPresent(thrown -> {
        System.err.println(name(test));
        thrown.printStackTrace();
      });
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
      outcomes.put(name(test), "skipped");
    }

    private static String name(TestIdentifier test) {
      // Parameters can be addresses and times; a test of several is one line.
      return test.getSource().filter(MethodSource.class::isInstance).map(MethodSource.class::cast)
          .map(method -> test.getUniqueId().replaceAll(".*class:" + PACKAGE.replace(".", "\\.") + "([A-Za-z]*)\\].*", "$1")
              + "." + method.getMethodName())
          .orElse(test.getDisplayName());
    }
  }
}
