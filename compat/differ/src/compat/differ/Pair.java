package compat.differ;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Both servers, which get the same operations. */
final class Pair implements AutoCloseable {
  /** Prints every operation, to show how a difference arises. */
  private static final boolean TRACE = System.getenv("COMPAT_TRACE") != null;

  private final Side left;
  private final Side right;
  private final ExecutorService beside = Executors.newSingleThreadExecutor();
  private final Explained explained = new Explained();
  private Schema original;
  private Schema current;

  Pair(Side left, Side right) {
    this.left = left;
    this.right = right;
  }

  /** The first operation whose responses differ. */
  record Difference(int number, Operation operation, String left, String right) {
    /** Both responses, from shortly before they diverge. */
    String apart() {
      int at = 0;
      while (at < Math.min(left.length(), right.length()) && left.charAt(at) == right.charAt(at)) {
        at++;
      }
      return "  left:  " + part(left, at) + "\n  right: " + part(right, at);
    }

    private static String part(String text, int at) {
      int begin = Math.max(0, at - 700);
      return (begin > 0 ? "..." : "") + text.substring(begin, Math.min(text.length(), at + 250));
    }
  }

  Explained explained() {
    return explained;
  }

  /** Recreates the table. */
  void create(Schema schema) throws Exception {
    left.create(schema);
    right.create(schema);
    original = schema;
    current = schema;
  }

  /**
   * Executes operations until the responses differ without an explanation; null if they never do.
   * The table starts as created.
   */
  Difference run(List<Operation> operations) throws Exception {
    if (!current.equals(original)) {
      for (Side side : List.of(left, right)) {
        side.admin.modifyTable(original.descriptor());
      }
      current = original;
    }
    Side.Clock leftClock = new Side.Clock();
    Side.Clock rightClock = new Side.Clock();
    for (int number = 0; number < operations.size(); number++) {
      Operation operation = operations.get(number);
      if (operation.alters() != null) {
        current = operation.alters();
      }
      int asked = number;
      Future<String> answer = beside.submit(() -> left.ask(original.name(), operation, leftClock, asked));
      String other = right.ask(original.name(), operation, rightClock, number);
      String one = answer.get();
      if (TRACE) {
        System.out.println("operation " + number + ": " + operation + "\n    " + one);
      }
      if (!one.equals(other) && !explained.explains(operation, one, other)) {
        return new Difference(number, operation, one, other);
      }
    }
    return null;
  }

  @Override
  public void close() throws Exception {
    beside.shutdown();
    left.close();
    right.close();
  }
}
