package compat.vectors;

import java.math.BigDecimal;
import org.apache.hadoop.hbase.util.Bytes;

/** Values as encoded by org.apache.hadoop.hbase.util.Bytes. */
public final class BytesVectors {
  private BytesVectors() {
  }

  public static void main(String[] arguments) {
    Lines.title("Written by org.apache.hadoop.hbase.util.Bytes of HBase 2.5.10.");
    Lines.line("BYTES_BOOLEAN", Lines.ASCENDING, "0", Bytes.toBytes(false));
    Lines.line("BYTES_BOOLEAN", Lines.ASCENDING, "1", Bytes.toBytes(true));
    for (long value : Values.whole(8)) {
      Lines.line("BYTES_BYTE", Lines.ASCENDING, Lines.whole(value), new byte[] {(byte) value});
    }
    for (long value : Values.whole(16)) {
      Lines.line("BYTES_SHORT", Lines.ASCENDING, Lines.whole(value), Bytes.toBytes((short) value));
    }
    for (long value : Values.whole(32)) {
      Lines.line("BYTES_INT", Lines.ASCENDING, Lines.whole(value), Bytes.toBytes((int) value));
    }
    for (long value : Values.whole(64)) {
      Lines.line("BYTES_LONG", Lines.ASCENDING, Lines.whole(value), Bytes.toBytes(value));
    }
    for (float value : Values.floats()) {
      Lines.line("BYTES_FLOAT", Lines.ASCENDING, Lines.real(value), Bytes.toBytes(value));
    }
    for (double value : Values.doubles()) {
      Lines.line("BYTES_DOUBLE", Lines.ASCENDING, Lines.real(value), Bytes.toBytes(value));
    }
    for (BigDecimal value : Values.decimals(38)) {
      // No column has a negative scale.
      String order = value.scale() < 0 ? Lines.OTHER : Lines.ASCENDING;
      Lines.line("BYTES_DECIMAL", order, Lines.decimal(value), Bytes.toBytes(value));
    }
  }
}
