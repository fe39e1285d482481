package compat.differ;

import java.util.Map;
import java.util.TreeMap;

/**
 * The differences that are known, each by a rule over what was asked and answered, and each with its reason in
 * docs/fidelity.md. A program goes on behind them.
 */
final class Explained {
  private final Map<Kind, Integer> met = new TreeMap<>();

  /** A kind of difference. */
  enum Kind {
    /** HBase ends some answers by the size of cells in Java's memory; not all of these differences are understood. */
    MARKS_OF_BATCHES("the marks of partial results in a scan with a batch") {
      @Override
      boolean matches(Operation operation, String left, String right) {
        return operation.kind().equals("scan") && operation.text().contains("\"batch\":")
            && !operation.text().contains("\"batch\":-1") && unmarked(left).equals(unmarked(right));
      }

      private String unmarked(String answer) {
        return answer.replace("partial ", "");
      }
    };

    final String meaning;

    Kind(String meaning) {
      this.meaning = meaning;
    }

    abstract boolean matches(Operation operation, String left, String right);
  }

  /** Whether a difference is of a known kind; it is counted then. */
  boolean explains(Operation operation, String left, String right) {
    for (Kind kind : Kind.values()) {
      if (kind.matches(operation, left, right)) {
        met.merge(kind, 1, Integer::sum);
        return true;
      }
    }
    return false;
  }

  /** How often each kind was met, a line each. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    met.forEach((kind, times) -> text.append("explained, ").append(times).append(times == 1 ? " time: " : " times: ")
        .append(kind.meaning).append('\n'));
    return text.toString();
  }
}
