package compat;

import java.io.PrintStream;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs test classes and prints a line for each finished test: class, method, result, milliseconds. Each
 * argument is a class and the methods to exclude, separated by commas.
 */
public final class Launch {
  private static final String PACKAGE = "org.apache.hadoop.hbase.";

  private Launch() {}

  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    // Standard output has only results.
    System.setOut(System.err);
    for (String arg : args) {
      String[] words = arg.split(",");
      run(words[0], Set.of(Arrays.copyOfRange(words, 1, words.length)), out);
    }
    out.flush();
    // Threads of clients that a test leaves open would keep the program alive.
    System.exit(0);
  }

  private static void run(String name, Set<String> excluded, PrintStream out) throws Exception {
    Class<?> tests = Class.forName(PACKAGE + name);
    checkNames(tests, excluded);
    JUnitCore core = new JUnitCore();
    core.addListener(new Reporter(name, out));
    Request request = Parts.hasParts(tests) ? Request.runner(new Parts(tests)) : Request.aClass(tests);
    core.run(request.filterWith(new Without(excluded)));
  }

  private static void checkNames(Class<?> tests, Set<String> excluded) {
    Set<String> unknown = new TreeSet<>(excluded);
    Arrays.stream(tests.getMethods()).map(Method::getName).forEach(unknown::remove);
    if (!unknown.isEmpty()) {
      throw new IllegalArgumentException("no such tests: " + unknown);
    }
  }

  private static final class Without extends Filter {
    private final Set<String> excluded;

    Without(Set<String> excluded) {
      this.excluded = excluded;
    }

    @Override
    public boolean shouldRun(Description test) {
      if (!test.isTest()) {
        return test.getChildren().stream().anyMatch(this::shouldRun);
      }
      // The name of a test with parameters ends with their index.
      return !excluded.contains(test.getMethodName().replaceFirst("\\[.*", ""));
    }

    @Override
    public String describe() {
      return "without " + excluded;
    }
  }

  private static final class Reporter extends RunListener {
    private final String name;
    private final PrintStream out;
    private final Set<Description> failed = new HashSet<>();
    private long begun;

    Reporter(String name, PrintStream out) {
      this.name = name;
      this.out = out;
    }

    @Override
    public void testStarted(Description test) {
      begun = System.nanoTime();
      System.err.println("begin " + test);
    }

    @Override
    public void testFailure(Failure failure) {
      report(failure, "failed");
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
      report(failure, "skipped");
    }

    @Override
    public void testIgnored(Description test) {
      print(test, "skipped");
    }

    @Override
    public void testFinished(Description test) {
      if (!failed.contains(test)) {
        print(test, "passed");
      }
    }

    private void report(Failure failure, String outcome) {
      System.err.println(outcome + " " + failure.getDescription());
      failure.getException().printStackTrace();
      if (failed.add(failure.getDescription())) {
        print(failure.getDescription(), outcome);
      }
    }

    /** Prints the method, or a name for the whole class. */
    private void print(Description test, String outcome) {
      String method = test.getMethodName();
      long millis = begun == 0 ? 0 : (System.nanoTime() - begun) / 1_000_000;
      out.println(name + " " + (method == null ? "(class)" : method) + " " + outcome + " " + millis);
      out.flush();
    }
  }
}
