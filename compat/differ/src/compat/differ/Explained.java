package compat.differ;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * Accepted differences, each a rule over the request and both responses; docs/fidelity.md gives the
 * reasons. A program continues after them.
 */
final class Explained {
  /** A kind of difference. */
  private record Kind(String meaning, Rule rule) {
  }

  /** Whether the responses to an operation differ in this way. */
  private interface Rule {
    boolean matches(Operation operation, String left, String right);
  }

  private static final Pattern BATCH = Pattern.compile("\"batch\":[0-9]");
  private static final Pattern LIMIT = Pattern.compile("\"limit\":[0-9]");
  private static final String MARK = "partial ";
  private static final String BETWEEN_RESULTS = "; ";
  /** A family of which only some columns are requested. */
  private static final Pattern COLUMN = Pattern.compile("\"families\":\\{[^}]*\\[\"(?!ALL\"\\])");

  private static final List<Kind> KINDS = List.of(
      new Kind("the marks of partial results in a scan of columns with a batch", (operation, left, right) ->
          operation.kind().equals("scan") && BATCH.matcher(operation.text()).find()
              && COLUMN.matcher(operation.text()).find() && withoutMarks(left).equals(withoutMarks(right))),
      new Kind("the mark of the last result of a scan with a batch and a limit of rows", (operation, left, right) ->
          operation.kind().equals("scan") && BATCH.matcher(operation.text()).find()
              && LIMIT.matcher(operation.text()).find() && left.equals(withoutLastMark(right))));

  private final Map<String, Integer> met = new TreeMap<>();

  private static String withoutMarks(String answer) {
    return answer.replace(MARK, "");
  }

  /** The results, with the last of them marked as complete. */
  private static String withoutLastMark(String answer) {
    int last = answer.lastIndexOf(BETWEEN_RESULTS) + 1;
    return answer.substring(0, last) + answer.substring(last).replace(MARK, "");
  }

  /** Whether a difference is accepted; if so, it is counted. */
  boolean explains(Operation operation, String left, String right) {
    for (Kind kind : KINDS) {
      if (kind.rule.matches(operation, left, right)) {
        met.merge(kind.meaning, 1, Integer::sum);
        return true;
      }
    }
    return false;
  }

  /** The count of each kind, one per line. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    met.forEach((meaning, times) -> text.append("explained, ").append(times).append(times == 1 ? " time: " : " times: ")
        .append(meaning).append('\n'));
    return text.toString();
  }
}
