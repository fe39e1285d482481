package compat.differ;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/** A table with random families. */
final class Schema {
  private static final int FOREVER_S = Integer.MAX_VALUE;
  private static final int ONE_BLOCK_BYTES = 4 << 20;

  private final TableName name;
  /**
   * Whether a store's files have one block each. In tables with small blocks HBase returned rows of
   * the other region after a split, so only tables with one block are split.
   */
  private final boolean hasOneBlock;
  private final List<ColumnFamilyDescriptor> families;

  private Schema(TableName name, boolean hasOneBlock, List<ColumnFamilyDescriptor> families) {
    this.name = name;
    this.hasOneBlock = hasOneBlock;
    this.families = List.copyOf(families);
  }

  static Schema any(Dice dice, String name) {
    boolean hasOneBlock = dice.chance(50);
    List<ColumnFamilyDescriptor> families = new ArrayList<>();
    for (String family : List.of("f", "g", "h").subList(0, dice.number(1, 3))) {
      families.add(family(dice, family, hasOneBlock));
    }
    return new Schema(TableName.valueOf(name), hasOneBlock, families);
  }

  private static ColumnFamilyDescriptor family(Dice dice, String name, boolean hasOneBlock) {
    // Explicit times are in 1970: a family whose cells expire keeps only cells that the server
    // timestamps.
    ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(name))
        .setMaxVersions(dice.of(1, 1, 2, 3, 5, Integer.MAX_VALUE))
        .setTimeToLive(dice.chance(12) ? 3600 : FOREVER_S)
        .setKeepDeletedCells(dice.of(KeepDeletedCells.FALSE, KeepDeletedCells.FALSE, KeepDeletedCells.FALSE,
            KeepDeletedCells.TRUE, KeepDeletedCells.TTL))
        .setBloomFilterType(dice.of(BloomType.NONE, BloomType.ROW, BloomType.ROWCOL))
        .setDataBlockEncoding(dice.of(DataBlockEncoding.values()))
        .setCompressionType(dice.of(Compression.Algorithm.NONE, Compression.Algorithm.GZ, Compression.Algorithm.SNAPPY))
        .setBlocksize(hasOneBlock ? ONE_BLOCK_BYTES : dice.of(64, 1024, 65536));
    int minVersions = dice.of(0, 0, 0, 1, 2);
    family.setMinVersions(Math.min(minVersions, family.build().getMaxVersions() - 1));
    return family.build();
  }

  TableName name() {
    return name;
  }

  boolean hasOneBlock() {
    return hasOneBlock;
  }

  List<String> families() {
    return families.stream().map(ColumnFamilyDescriptor::getNameAsString).toList();
  }

  TableDescriptor descriptor() {
    // Otherwise HBase refuses blocks so small that a few cells fill several of them.
    return TableDescriptorBuilder.newBuilder(name).setColumnFamilies(families)
        .setValue("hbase.table.sanity.checks", "false").build();
  }

  /** The same table with other settings of one family. */
  Schema altered(Dice dice) {
    List<ColumnFamilyDescriptor> altered = new ArrayList<>(families);
    int at = dice.number(0, families.size() - 1);
    altered.set(at, family(dice, families.get(at).getNameAsString(), hasOneBlock));
    return new Schema(name, hasOneBlock, altered);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Schema schema && name.equals(schema.name) && families.equals(schema.families);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }

  @Override
  public String toString() {
    return families.toString();
  }
}
