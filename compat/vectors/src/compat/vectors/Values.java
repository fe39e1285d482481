package compat.vectors;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * The values to encode: the limits of each type, values near zero, and random values with a fixed
 * seed.
 */
final class Values {
  private static final int RANDOM = 30;

  private Values() {
  }

  /** Integers of this many bits. */
  static List<Long> whole(int bits) {
    long least = -1L << (bits - 1);
    long greatest = ~least;
    List<Long> values = new ArrayList<>(List.of(0L, 1L, -1L, 2L, -2L, 100L, -100L, least, least + 1, greatest, greatest - 1));
    Random random = new Random(bits);
    for (int at = 0; at < RANDOM; at++) {
      // Of all magnitudes.
      values.add(random.nextLong() >> (64 - bits + random.nextInt(bits)));
    }
    return values;
  }

  static List<Double> doubles() {
    List<Double> values = new ArrayList<>(List.of(0.0, -0.0, 1.0, -1.0, 0.5, -2.75, 1e23, -1e-7, 123456789.0, 1e300, 9.99e-300,
        Double.MAX_VALUE, -Double.MAX_VALUE, Double.MIN_VALUE, -Double.MIN_VALUE, Double.MIN_NORMAL, Math.PI, 100.0, 0.01,
        9007199254740993.0, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.NaN));
    Random random = new Random(64);
    while (values.size() < 100) {
      double value = Double.longBitsToDouble(random.nextLong());
      if (!Double.isNaN(value)) {
        values.add(value);
      }
      values.add(random.nextInt(2_000_000) / 100.0 - 10_000);
    }
    return values;
  }

  static List<Float> floats() {
    List<Float> values = new ArrayList<>(List.of(0.0f, -0.0f, 1.0f, -1.0f, 0.1f, -2.75f, Float.MAX_VALUE, -Float.MAX_VALUE,
        Float.MIN_VALUE, -Float.MIN_VALUE, Float.MIN_NORMAL, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.NaN));
    Random random = new Random(32);
    while (values.size() < 14 + RANDOM) {
      float value = Float.intBitsToFloat(random.nextInt());
      if (!Float.isNaN(value)) {
        values.add(value);
      }
    }
    return values;
  }

  /** Decimals with up to {@code digits} digits and at most 38 digits before or after the point. */
  static List<BigDecimal> decimals(int digits) {
    List<BigDecimal> values = new ArrayList<>();
    for (String text : new String[] {"0", "0.00", "1", "-1", "9", "10", "99", "100", "-100", "101", "1000", "12345", "123456", "-12345",
        "0.1", "-0.1", "0.01", "-0.01", "0.001", "0.0001", "12.34", "1.234", "-12.340", "1.50", "1E+2", "1E+3", "-7E+20",
        "1E+21", "1E+22", "-1E+22", "1E+37", "-1E+36", "1E-37", "-1E-38", "1E-20", "9223372036854775807"}) {
      values.add(new BigDecimal(text));
    }
    Random random = new Random(digits);
    for (int length = 1; length <= digits; length++) {
      BigInteger nines = BigInteger.TEN.pow(length).subtract(BigInteger.ONE);
      for (int scale : new int[] {0, random.nextInt(length + 1), length - 38 + random.nextInt(77 - length)}) {
        values.add(new BigDecimal(nines, scale));
        values.add(new BigDecimal(nines.negate(), scale));
        BigInteger some = new BigInteger(128, random).mod(nines);
        values.add(new BigDecimal(random.nextBoolean() ? some : some.negate(), scale));
      }
    }
    return values.stream().filter(value -> value.scale() <= 38 && value.precision() - value.scale() <= 38).toList();
  }

  static List<String> texts() {
    List<String> values = new ArrayList<>(List.of("", "a", "ab", "hello world", "grün", "\u0001\u007f", "日本語", "~".repeat(300)));
    Random random = new Random(7);
    for (int length = 0; length < 20; length++) {
      StringBuilder text = new StringBuilder();
      for (int at = 0; at < length; at++) {
        text.append((char) (1 + random.nextInt(random.nextBoolean() ? 127 : 2000)));
      }
      values.add(text.toString());
    }
    return values;
  }

  /**
   * Byte strings of all lengths up to a limit and a long one; without zero bytes unless {@code
   * zeros}.
   */
  static List<byte[]> blobs(boolean zeros) {
    List<byte[]> values = new ArrayList<>();
    Random random = new Random(8);
    for (int length = 0; length <= 20; length++) {
      values.add(new byte[length]);
      values.add(filled(length, (byte) -1));
      byte[] bytes = new byte[length];
      random.nextBytes(bytes);
      values.add(bytes);
    }
    byte[] longer = new byte[250];
    random.nextBytes(longer);
    values.add(longer);
    if (!zeros) {
      for (byte[] bytes : values) {
        for (int at = 0; at < bytes.length; at++) {
          bytes[at] = bytes[at] == 0 ? 1 : bytes[at];
        }
      }
    }
    return values;
  }

  private static byte[] filled(int length, byte with) {
    byte[] bytes = new byte[length];
    java.util.Arrays.fill(bytes, with);
    return bytes;
  }
}
