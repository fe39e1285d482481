package compat.vectors;

import java.math.BigDecimal;
import java.sql.Date;
import java.sql.Time;
import java.sql.Timestamp;
import java.util.List;
import java.util.Random;
import org.apache.phoenix.schema.SortOrder;
import org.apache.phoenix.schema.types.PBoolean;
import org.apache.phoenix.schema.types.PChar;
import org.apache.phoenix.schema.types.PDataType;
import org.apache.phoenix.schema.types.PDate;
import org.apache.phoenix.schema.types.PDecimal;
import org.apache.phoenix.schema.types.PDouble;
import org.apache.phoenix.schema.types.PFloat;
import org.apache.phoenix.schema.types.PInteger;
import org.apache.phoenix.schema.types.PLong;
import org.apache.phoenix.schema.types.PSmallint;
import org.apache.phoenix.schema.types.PTime;
import org.apache.phoenix.schema.types.PTimestamp;
import org.apache.phoenix.schema.types.PTinyint;
import org.apache.phoenix.schema.types.PUnsignedDouble;
import org.apache.phoenix.schema.types.PUnsignedFloat;
import org.apache.phoenix.schema.types.PUnsignedInt;
import org.apache.phoenix.schema.types.PUnsignedLong;
import org.apache.phoenix.schema.types.PUnsignedSmallint;
import org.apache.phoenix.schema.types.PUnsignedTinyint;

/** Values as encoded by the types of Phoenix; unsigned types use the encoding of Bytes. */
public final class PhoenixVectors {
  private static final int CHARS = 400;

  private PhoenixVectors() {
  }

  public static void main(String[] arguments) {
    Lines.title("Written by org.apache.phoenix.schema.types of Phoenix 5.1.3.");
    line("PHOENIX_BOOLEAN", "0", PBoolean.INSTANCE, false);
    line("PHOENIX_BOOLEAN", "1", PBoolean.INSTANCE, true);
    integers();
    reals();
    for (BigDecimal value : Values.decimals(PDataType.MAX_PRECISION)) {
      line("PHOENIX_DECIMAL", Lines.decimal(value), PDecimal.INSTANCE, value);
      BigDecimal read = (BigDecimal) PDecimal.INSTANCE.toObject(PDecimal.INSTANCE.toBytes(value));
      if (read.compareTo(value) != 0) {
        throw new IllegalStateException(value + " is read as " + read);
      }
    }
    times();
    for (String text : List.of("a", "ab", "hello world", "a  b", "\u0001", "~".repeat(300))) {
      for (int length : new int[] {text.length(), text.length() + 3, CHARS}) {
        byte[] bytes = PChar.INSTANCE.pad(PChar.INSTANCE.toBytes(text), length, SortOrder.ASC);
        Lines.line("PHOENIX_CHAR", length == text.length() ? Lines.ASCENDING : Lines.OTHER, Lines.raw(text), bytes);
      }
    }
  }

  private static void integers() {
    for (long value : Values.whole(8)) {
      line("PHOENIX_TINYINT", Lines.whole(value), PTinyint.INSTANCE, (byte) value);
      unsigned("BYTES_BYTE", value, PUnsignedTinyint.INSTANCE, (byte) value);
    }
    for (long value : Values.whole(16)) {
      line("PHOENIX_SMALLINT", Lines.whole(value), PSmallint.INSTANCE, (short) value);
      unsigned("BYTES_SHORT", value, PUnsignedSmallint.INSTANCE, (short) value);
    }
    for (long value : Values.whole(32)) {
      line("PHOENIX_INTEGER", Lines.whole(value), PInteger.INSTANCE, (int) value);
      unsigned("BYTES_INT", value, PUnsignedInt.INSTANCE, (int) value);
    }
    for (long value : Values.whole(64)) {
      line("PHOENIX_BIGINT", Lines.whole(value), PLong.INSTANCE, value);
      unsigned("BYTES_LONG", value, PUnsignedLong.INSTANCE, value);
    }
  }

  private static void reals() {
    for (float value : Values.floats()) {
      line("PHOENIX_FLOAT", Lines.real(value), PFloat.INSTANCE, value);
      if (value >= 0) {
        line("BYTES_FLOAT", Lines.real(value), PUnsignedFloat.INSTANCE, value);
      }
    }
    for (double value : Values.doubles()) {
      line("PHOENIX_DOUBLE", Lines.real(value), PDouble.INSTANCE, value);
      if (value >= 0) {
        line("BYTES_DOUBLE", Lines.real(value), PUnsignedDouble.INSTANCE, value);
      }
    }
  }

  private static void times() {
    for (long value : Values.whole(64)) {
      line("PHOENIX_DATE", Lines.whole(value), PDate.INSTANCE, new Date(value));
      line("PHOENIX_DATE", Lines.whole(value), PTime.INSTANCE, new Time(value));
    }
    Random random = new Random(9);
    long[] milliseconds = {0, 1, -1, 1_700_000_000_123L, -9_223_372_036_854L, 9_223_372_036_853L, random.nextInt(), -1_000, -1_001};
    for (long millisecond : milliseconds) {
      for (int nanosecond : new int[] {0, 1, 999_999, random.nextInt(1_000_000)}) {
        Timestamp value = new Timestamp(millisecond);
        value.setNanos(value.getNanos() + nanosecond);
        line("PHOENIX_TIMESTAMP", Lines.whole(millisecond * 1_000_000 + nanosecond), PTimestamp.INSTANCE, value);
      }
    }
  }

  private static void unsigned(String encoding, long number, PDataType<?> type, Object value) {
    if (number >= 0) {
      line(encoding, Lines.whole(number), type, value);
    }
  }

  private static void line(String encoding, String text, PDataType<?> type, Object value) {
    Lines.line(encoding, Lines.ASCENDING, text, type.toBytes(value));
  }
}
