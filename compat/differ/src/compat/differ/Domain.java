package compat.differ;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.util.Bytes;

/** The rows, columns, times and values of a program: few, so that operations collide. */
final class Domain {
  /**
   * Rows consist of the program's own prefix and one of these: programs that share a table have
   * distinct rows.
   */
  private static final String[] ROWS = {"a", "aa", "ab", "b", "b\\x00", "c", "c\\xFF", "d", "e", "f"};
  private static final String[] QUALIFIERS = {"", "a", "ab", "b", "c", "\\x00", "longer-qualifier", "\\xFF"};
  private static final String[] VALUES = {"", "1", "2", "7", "v", "value", "Value", "\\x00", "\\xFF\\xFE"};
  static final int TIME_MOST = 9;

  private final Dice dice;
  private final String prefix;
  private final List<String> families;
  /**
   * Whether cells without a qualifier are written; then families are not deleted. HBase may skip a
   * marker of a family after such a cell, and show what it deletes (depending on where blocks end).
   */
  private final boolean writesEmptyQualifiers;

  Domain(Dice dice, String prefix, Schema schema) {
    this.dice = dice;
    this.prefix = prefix;
    families = schema.families();
    writesEmptyQualifiers = dice.chance(50);
  }

  byte[] row() {
    return Bytes.toBytesBinary(prefix + dice.of(ROWS));
  }

  /** A row, or a key between rows. */
  byte[] key() {
    return dice.chance(80) ? row() : Bytes.toBytesBinary(prefix + dice.of("", "a\\x00", "bb", "zz", "c\\xFE"));
  }

  /** A key before the program's first row. */
  byte[] first() {
    return Bytes.toBytesBinary(prefix);
  }

  /** A key after the program's last row. */
  byte[] last() {
    return Bytes.add(Bytes.toBytesBinary(prefix), new byte[] {(byte) 0xFF, (byte) 0xFF});
  }

  /** A family of the table, or occasionally one that it does not have. */
  byte[] family() {
    return dice.chance(1) ? Bytes.toBytes("nosuch") : aFamily();
  }

  /** A family of the table. */
  byte[] aFamily() {
    return Bytes.toBytes(dice.of(families));
  }

  byte[] qualifier() {
    return Bytes.toBytesBinary(dice.of(QUALIFIERS));
  }

  /**
   * A qualifier to delete, never the empty one. HBase seeks from a cell without a qualifier to the
   * next lower type at the same time, with sequence id 0. If the cell has exactly these, as the put
   * that a marker deletes does, HBase treats it as an earlier cell and seeks again, forever.
   */
  byte[] deletedQualifier() {
    byte[] qualifier = qualifier();
    return qualifier.length == 0 ? Bytes.toBytes("b") : qualifier;
  }

  /** A qualifier to write to. */
  byte[] writtenQualifier() {
    byte[] qualifier = qualifier();
    return qualifier.length == 0 && !writesEmptyQualifiers ? Bytes.toBytes("b") : qualifier;
  }

  boolean writesEmptyQualifiers() {
    return writesEmptyQualifiers;
  }

  boolean deletesFamilies() {
    return !writesEmptyQualifiers;
  }

  byte[] value() {
    return switch (dice.weighted(70, 20, 4)) {
      case 0 -> Bytes.toBytesBinary(dice.of(VALUES));
      case 1 -> Bytes.toBytes((long) dice.number(-3, 300));
      default -> Bytes.toBytes("x".repeat(dice.number(100, 3000)));
    };
  }

  /** One of a few times, or the server's own. */
  long time() {
    return dice.chance(75) ? someTime() : HConstants.LATEST_TIMESTAMP;
  }

  long someTime() {
    return dice.number(1, TIME_MOST);
  }

  List<byte[]> qualifiers(int least, int most) {
    List<byte[]> all = new ArrayList<>();
    for (int left = dice.number(least, most); left > 0; left--) {
      all.add(qualifier());
    }
    return all;
  }

  List<byte[]> distinctQualifiers(int least, int most) {
    TreeSet<byte[]> distinct = new TreeSet<>(Bytes.BYTES_COMPARATOR);
    distinct.addAll(qualifiers(least, most));
    return new ArrayList<>(distinct);
  }
}
