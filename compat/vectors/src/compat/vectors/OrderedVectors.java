package compat.vectors;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.util.Order;
import org.apache.hadoop.hbase.util.OrderedBytes;
import org.apache.hadoop.hbase.util.PositionedByteRange;
import org.apache.hadoop.hbase.util.SimplePositionedMutableByteRange;

/**
 * Values as encoded by org.apache.hadoop.hbase.util.OrderedBytes, ascending and descending; it also
 * decodes each again.
 */
public final class OrderedVectors {
  /** Digits that encodeNumeric keeps. */
  private static final int DIGITS = OrderedBytes.MAX_PRECISION;

  private OrderedVectors() {
  }

  public static void main(String[] arguments) {
    Lines.title("Written by org.apache.hadoop.hbase.util.OrderedBytes of HBase 2.5.10.");
    for (Order order : Order.values()) {
      integers(order);
      reals(order);
      numerics(order);
      texts(order);
    }
  }

  private static void integers(Order order) {
    for (long value : Values.whole(8)) {
      line("ORDERED_INT8", order, Lines.whole(value), to -> OrderedBytes.encodeInt8(to, (byte) value, order),
          from -> Lines.whole(OrderedBytes.decodeInt8(from)));
    }
    for (long value : Values.whole(16)) {
      line("ORDERED_INT16", order, Lines.whole(value), to -> OrderedBytes.encodeInt16(to, (short) value, order),
          from -> Lines.whole(OrderedBytes.decodeInt16(from)));
    }
    for (long value : Values.whole(32)) {
      line("ORDERED_INT32", order, Lines.whole(value), to -> OrderedBytes.encodeInt32(to, (int) value, order),
          from -> Lines.whole(OrderedBytes.decodeInt32(from)));
    }
    for (long value : Values.whole(64)) {
      line("ORDERED_INT64", order, Lines.whole(value), to -> OrderedBytes.encodeInt64(to, value, order),
          from -> Lines.whole(OrderedBytes.decodeInt64(from)));
    }
    line("ORDERED_INT64", order, "null", to -> OrderedBytes.encodeNull(to, order), from -> "null");
  }

  private static void reals(Order order) {
    for (float value : Values.floats()) {
      line("ORDERED_FLOAT32", order, Lines.real(value), to -> OrderedBytes.encodeFloat32(to, value, order),
          from -> Lines.real(OrderedBytes.decodeFloat32(from)));
    }
    for (double value : Values.doubles()) {
      line("ORDERED_FLOAT64", order, Lines.real(value), to -> OrderedBytes.encodeFloat64(to, value, order),
          from -> Lines.real(OrderedBytes.decodeFloat64(from)));
      // A numeric zero has no sign.
      line("ORDERED_DOUBLE", order, Lines.real(value + 0.0), to -> OrderedBytes.encodeNumeric(to, value, order),
          from -> Lines.real(OrderedBytes.decodeNumericAsDouble(from)));
    }
  }

  private static void numerics(Order order) {
    for (BigDecimal value : Values.decimals(DIGITS)) {
      line("ORDERED_DECIMAL", order, Lines.decimal(value), to -> OrderedBytes.encodeNumeric(to, value, order), from -> {
        BigDecimal read = OrderedBytes.decodeNumericAsBigDecimal(from);
        return Lines.decimal(read.compareTo(value) == 0 ? value : read);
      });
    }
    for (String text : new String[] {"1E+480", "-12.3E+480", "1E+482", "1E+4574", "-1E+4575", "1E+4576", "-1E+135645", "1E+135646",
        "1E-480", "-1E-482", "45E-4576", "-1E-4577", "-1E-135646"}) {
      BigDecimal value = new BigDecimal(text);
      line("ORDERED_DECIMAL", order, Lines.decimal(value), to -> OrderedBytes.encodeNumeric(to, value, order), from -> {
        BigDecimal read = OrderedBytes.decodeNumericAsBigDecimal(from);
        return Lines.decimal(read.compareTo(value) == 0 ? value : read);
      });
    }
    for (long value : Values.whole(64)) {
      line("ORDERED_DECIMAL", order, value + "/0", to -> OrderedBytes.encodeNumeric(to, value, order),
          from -> OrderedBytes.decodeNumericAsLong(from) + "/0");
    }
    line("ORDERED_DECIMAL", order, "null", to -> OrderedBytes.encodeNumeric(to, (BigDecimal) null, order),
        from -> "" + OrderedBytes.decodeNumericAsBigDecimal(from));
  }

  private static void texts(Order order) {
    for (String value : Values.texts()) {
      line("ORDERED_STRING", order, Lines.raw(value), to -> OrderedBytes.encodeString(to, value, order),
          from -> Lines.raw(OrderedBytes.decodeString(from)));
    }
    line("ORDERED_STRING", order, "null", to -> OrderedBytes.encodeString(to, null, order), from -> "null");
    for (byte[] value : Values.blobs(true)) {
      line("ORDERED_BLOB", order, Lines.hex(value), to -> OrderedBytes.encodeBlobVar(to, value, order),
          from -> Lines.hex(OrderedBytes.decodeBlobVar(from)));
    }
    // A descending copy ends with a byte that must not occur in it.
    for (byte[] value : Values.blobs(order == Order.ASCENDING)) {
      line("ORDERED_BLOB_COPY", order, Lines.hex(value), to -> OrderedBytes.encodeBlobCopy(to, value, order),
          from -> Lines.hex(OrderedBytes.decodeBlobCopy(from)));
    }
  }

  private static void line(String encoding, Order order, String value, ToIntFunction<PositionedByteRange> write,
      Function<PositionedByteRange, String> read) {
    PositionedByteRange range = new SimplePositionedMutableByteRange(1000);
    int length = write.applyAsInt(range);
    byte[] bytes = Arrays.copyOf(range.getBytes(), length);
    String again = read.apply(new SimplePositionedMutableByteRange(bytes));
    if (!again.equals(value)) {
      throw new IllegalStateException(encoding + " " + order + " " + value + " is read as " + again);
    }
    boolean other = encoding.equals("ORDERED_DOUBLE") && order == Order.ASCENDING && isWordy(value);
    Lines.line(encoding, other ? Lines.OTHER : named(order), value, bytes);
  }

  private static String named(Order order) {
    return order == Order.ASCENDING ? Lines.ASCENDING : Lines.DESCENDING;
  }

  /**
   * Whether this Java prints a double with more digits than necessary, as versions before 19 do for
   * some.
   */
  private static boolean isWordy(String bits) {
    double value = Double.longBitsToDouble(Long.parseUnsignedLong(bits, 16));
    if (value == 0 || !Double.isFinite(value)) {
      return false;
    }
    int shown = BigDecimal.valueOf(value).stripTrailingZeros().precision();
    return IntStream.range(2, shown)
        .anyMatch(digits -> new BigDecimal(value).round(new MathContext(digits)).doubleValue() == value);
  }
}
