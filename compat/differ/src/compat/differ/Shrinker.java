package compat.differ;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Removes operations from a program while it still ends in a difference, until only the relevant
 * ones remain.
 *
 * Each attempt uses its own rows.
 */
final class Shrinker {
  /** A program for rows with this prefix. */
  interface Source {
    List<Operation> operations(String prefix) throws Exception;
  }

  private final Pair pair;
  private final Source source;
  private final long seed;
  private int tries;
  private Pair.Difference last;
  private List<Operation> lastOperations;

  Shrinker(Pair pair, long seed, Source source) {
    this.pair = pair;
    this.seed = seed;
    this.source = source;
  }

  /** The prefix of the rows of an attempt; all have the same length. */
  static String prefix(long seed, int attempt) {
    return String.format("%06d%c%c-", seed, 'a' + attempt / 26 % 26, 'a' + attempt % 26);
  }

  /** The remaining operations and their difference, as text. */
  String shrink(Pair.Difference first) throws Exception {
    List<Integer> kept = new ArrayList<>(IntStream.rangeClosed(0, first.number()).boxed().toList());
    if (!differs(kept)) {
      return "  is not met again alone\n";
    }
    for (int size = Math.max(1, kept.size() / 2); size >= 1; size = size == 1 ? 0 : (size + 1) / 2) {
      for (int at = 0; at < kept.size(); ) {
        List<Integer> fewer = new ArrayList<>(kept);
        fewer.subList(at, Math.min(kept.size(), at + size)).clear();
        if (!fewer.isEmpty() && differs(fewer)) {
          kept = new ArrayList<>(fewer.subList(0, last.number() + 1));
        } else {
          at += size;
        }
      }
    }
    StringBuilder text = new StringBuilder();
    if (differs(kept)) {
      for (Operation operation : lastOperations) {
        text.append("    ").append(operation).append('\n');
      }
      text.append(last.apart()).append('\n');
    }
    return text.toString();
  }

  private boolean differs(List<Integer> kept) throws Exception {
    List<Operation> all = source.operations(prefix(seed, ++tries));
    lastOperations = kept.stream().map(all::get).toList();
    last = pair.run(lastOperations);
    return last != null;
  }
}
