package compat.vectors;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Locale;

/**
 * The lines of a file of vectors: encoding, order, value, bytes.
 *
 * <p>The order is {@link #ASCENDING}, {@link #DESCENDING}, or {@link #OTHER} for bytes that are
 * ascending too, and decode to the value, but differ from those that Grampus writes.
 *
 * <p>An integer is written in decimal, a floating-point number as the 16 hex digits of its bits, a
 * decimal as its unscaled number and scale, raw bytes in hex; empty is {@code -}, null is {@code
 * null}.
 */
final class Lines {
  static final String ASCENDING = "asc";
  static final String DESCENDING = "desc";
  static final String OTHER = "other";

  private Lines() {
  }

  static void title(String text) {
    System.out.println("# " + text);
    System.out.println("# Made by compat/vectors/run. Encoding, order, value, bytes in hex.");
  }

  static void line(String encoding, String order, String value, byte[] bytes) {
    System.out.println(encoding.toLowerCase(Locale.ROOT) + " " + order + " " + value + " " + hex(bytes));
  }

  static String whole(long value) {
    return Long.toString(value);
  }

  static String real(double value) {
    return String.format("%016x", Double.doubleToRawLongBits(value));
  }

  static String decimal(BigDecimal value) {
    return value.unscaledValue() + "/" + value.scale();
  }

  static String raw(String value) {
    return hex(value.getBytes(StandardCharsets.UTF_8));
  }

  static String hex(byte[] bytes) {
    return bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
  }
}
