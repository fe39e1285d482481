package compat.differ;

import java.util.List;
import java.util.Random;

/** Random choices, determined by a seed. */
final class Dice {
  private final Random random;

  Dice(long seed) {
    // Adjacent seeds give similar first numbers.
    random = new Random(seed * 0x9E3779B97F4A7C15L);
    random.nextLong();
  }

  /** True in this percentage of cases. */
  boolean chance(int percent) {
    return random.nextInt(100) < percent;
  }

  /** A number from `least` to `most`, both inclusive. */
  int number(int least, int most) {
    return least + random.nextInt(most - least + 1);
  }

  @SafeVarargs
  final <T> T of(T... choices) {
    return choices[random.nextInt(choices.length)];
  }

  <T> T of(List<T> choices) {
    return choices.get(random.nextInt(choices.size()));
  }

  /** A random index, weighted. */
  int weighted(int... weights) {
    int sum = 0;
    for (int weight : weights) {
      sum += weight;
    }
    int left = random.nextInt(sum);
    for (int at = 0; ; at++) {
      left -= weights[at];
      if (left < 0) {
        return at;
      }
    }
  }
}
