package compat.hbase;

import java.io.DataInput;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparatorImpl;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.Tag;
import org.apache.hadoop.hbase.fs.HFileSystem;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.util.BloomFilter;
import org.apache.hadoop.hbase.util.BloomFilterFactory;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.ChecksumType;

/**
 * HFiles of random cells: each NAME.hfile has its cells in NAME.txt, one per line.
 *
 * <pre>
 *   write DIR COUNT SEED   writes files with HBase's writer, in all encodings, compressions, Bloom filters
 *   check DIR              reads all files with HBase's reader and compares every cell
 * </pre>
 */
public final class RoundTrip {
  private static final Compression.Algorithm[] COMPRESSIONS = {Compression.Algorithm.NONE, Compression.Algorithm.GZ,
      Compression.Algorithm.SNAPPY, Compression.Algorithm.LZ4, Compression.Algorithm.ZSTD};
  private static final DataBlockEncoding[] ENCODINGS = {DataBlockEncoding.NONE, DataBlockEncoding.PREFIX,
      DataBlockEncoding.DIFF, DataBlockEncoding.FAST_DIFF, DataBlockEncoding.ROW_INDEX_V1};
  private static final BloomType[] BLOOMS = {BloomType.NONE, BloomType.ROW, BloomType.ROWCOL,
      BloomType.ROWPREFIX_FIXED_LENGTH};
  private static final KeyValue.Type[] TYPES = {KeyValue.Type.Put, KeyValue.Type.Put, KeyValue.Type.Put,
      KeyValue.Type.Put, KeyValue.Type.Delete, KeyValue.Type.DeleteColumn, KeyValue.Type.DeleteFamily,
      KeyValue.Type.DeleteFamilyVersion};

  private RoundTrip() {
  }

  public static void main(String[] arguments) throws IOException {
    Path directory = Path.of(arguments[1]).toAbsolutePath();
    if (arguments[0].equals("write")) {
      write(directory, Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
    } else {
      System.exit(check(directory) ? 0 : 1);
    }
  }

  private static void write(Path directory, int count, long seed) throws IOException {
    Files.createDirectories(directory);
    for (int at = 0; at < count; at++) {
      Random random = new Random(seed * 1_000_003 + at);
      // Cycles through every combination of encoding and compression.
      DataBlockEncoding encoding = ENCODINGS[at % ENCODINGS.length];
      Compression.Algorithm compression = COMPRESSIONS[at / ENCODINGS.length % COMPRESSIONS.length];
      BloomType bloom = BLOOMS[random.nextInt(BLOOMS.length)];
      boolean tags = random.nextBoolean();
      boolean mvcc = random.nextInt(4) > 0;
      List<KeyValue> cells = cells(random, tags, mvcc);
      Configuration conf = local();
      conf.setInt("RowPrefixBloomFilter.prefix_length", 1 + random.nextInt(8));
      if (random.nextBoolean()) {
        conf.setInt("io.storefile.bloom.block.size", 256);
        conf.setInt("hfile.index.block.max.size", 300);
        conf.setInt("hfile.index.block.min.entries", 3);
      }
      HFileContextBuilder context = new HFileContextBuilder().withBlockSize(pick(random, 300, 4096, 65536))
          .withIncludesMvcc(mvcc).withIncludesTags(tags).withCompressTags(random.nextBoolean())
          .withDataBlockEncoding(encoding).withCompression(compression).withHBaseCheckSum(true)
          .withChecksumType(random.nextBoolean() ? ChecksumType.CRC32C : ChecksumType.CRC32)
          .withBytesPerCheckSum(pick(random, 100, 16384)).withColumnFamily(Bytes.toBytes("fam"))
          .withCreateTime(1_700_000_000_000L);
      Path file = directory.resolve(String.format("%04d.hfile", at));
      Files.deleteIfExists(file);
      StoreFileWriter writer = new StoreFileWriter.Builder(conf, CacheConfig.DISABLED, new HFileSystem(conf, true))
          .withFilePath(new org.apache.hadoop.fs.Path(file.toUri())).withBloomType(bloom)
          .withMaxKeyCount(Math.max(1, cells.size())).withFileContext(context.build()).build();
      for (KeyValue cell : cells) {
        writer.append(cell);
      }
      writer.appendMetadata(at, random.nextBoolean());
      writer.close();
      try (PrintStream out = new PrintStream(listing(file).toFile(), StandardCharsets.UTF_8)) {
        out.println("FILE " + encoding + " " + compression + " " + bloom + " tags=" + tags + " mvcc=" + mvcc);
        cells.forEach(cell -> out.println(listed(cell)));
      }
    }
    System.out.println(count + " files written by HBase");
  }

  private static int pick(Random random, int... choices) {
    return choices[random.nextInt(choices.length)];
  }

  private static List<KeyValue> cells(Random random, boolean tags, boolean mvcc) {
    int count = random.nextInt(20) == 0 ? 0 : 1 + random.nextInt(1500);
    List<KeyValue> cells = new ArrayList<>();
    for (int at = 0; at < count; at++) {
      KeyValue.Type type = TYPES[random.nextInt(TYPES.length)];
      boolean ofFamily = type == KeyValue.Type.DeleteFamily || type == KeyValue.Type.DeleteFamilyVersion;
      List<Tag> own = new ArrayList<>();
      for (int tag = random.nextInt(4); tags && tag > 1; tag--) {
        own.add(new ArrayBackedTag((byte) (64 + random.nextInt(60)), bytes(random, random.nextInt(6), 3)));
      }
      KeyValue cell = new KeyValue(row(random), Bytes.toBytes("fam"), ofFamily ? new byte[0] : qualifier(random),
          timestamp(random), type, type == KeyValue.Type.Put ? value(random) : new byte[0], own);
      cell.setSequenceId(mvcc ? random.nextInt(1 << (1 + random.nextInt(29))) : 0);
      cells.add(cell);
    }
    cells.sort(CellComparatorImpl.COMPARATOR);
    return cells;
  }

  private static byte[] row(Random random) {
    switch (random.nextInt(3)) {
      case 0:
        return Bytes.toBytes(String.format("user%06d", random.nextInt(300)));
      case 1:
        return bytes(random, 1 + random.nextInt(4), 3);
      default:
        return Bytes.toBytes("x".repeat(random.nextInt(300) + 1));
    }
  }

  private static byte[] qualifier(Random random) {
    return random.nextBoolean() ? bytes(random, random.nextInt(4), 4) : Bytes.toBytes("column" + random.nextInt(30));
  }

  private static long timestamp(Random random) {
    switch (random.nextInt(4)) {
      case 0:
        return random.nextInt(300);
      case 1:
        return random.nextLong() & Long.MAX_VALUE;
      default:
        return 1_700_000_000_000L + random.nextInt(100_000);
    }
  }

  /** Occasionally one that is longer than a codec's buffer, either well or badly compressible. */
  private static byte[] value(Random random) {
    switch (random.nextInt(400)) {
      case 0:
        return bytes(random, 300_000 + random.nextInt(400_000), 256);
      case 1:
        return new byte[600_000];
      default:
        return random.nextInt(3) == 0 ? Bytes.toBytes("the same value") : bytes(random, random.nextInt(60), 256);
    }
  }

  private static byte[] bytes(Random random, int length, int kinds) {
    byte[] bytes = new byte[length];
    for (int at = 0; at < length; at++) {
      int kind = random.nextInt(kinds);
      bytes[at] = (byte) (kind == 2 ? 0xff : kind);
    }
    return bytes;
  }

  private static boolean check(Path directory) throws IOException {
    List<Path> files;
    try (Stream<Path> all = Files.list(directory)) {
      files = all.filter(path -> path.toString().endsWith(".hfile")).sorted().collect(Collectors.toList());
    }
    int wrong = 0;
    long cells = 0;
    for (Path file : files) {
      List<String> expected = Files.readAllLines(listing(file));
      String options = expected.remove(0);
      String verdict;
      try {
        verdict = compare(file, expected);
        cells += expected.size();
      } catch (IOException | RuntimeException | Error thrown) {
        verdict = "REFUSED: " + thrown;
      }
      if (verdict != null) {
        wrong++;
        System.out.println(file.getFileName() + " (" + options + "): " + verdict);
      }
    }
    System.out.println(files.size() + " files read by HBase, " + cells + " cells, " + wrong + " wrong");
    return wrong == 0 && !files.isEmpty();
  }

  /** The error of a file, or null. */
  private static String compare(Path file, List<String> expected) throws IOException {
    Configuration conf = local();
    HFile.getAndResetChecksumFailuresCount();
    try (HFile.Reader reader = HFile.createReader(new HFileSystem(conf, true),
        new org.apache.hadoop.fs.Path(file.toUri()), CacheConfig.DISABLED, true, conf)) {
      List<Cell> cells = new ArrayList<>();
      HFileScanner scanner = reader.getScanner(conf, false, false);
      for (boolean more = scanner.seekTo(); more; more = scanner.next()) {
        Cell cell = new KeyValue(CellUtil.cloneRow(scanner.getCell()), CellUtil.cloneFamily(scanner.getCell()),
            CellUtil.cloneQualifier(scanner.getCell()), scanner.getCell().getTimestamp(),
            KeyValue.Type.codeToType(scanner.getCell().getTypeByte()), CellUtil.cloneValue(scanner.getCell()),
            PrivateCellUtil.getTags(scanner.getCell()));
        PrivateCellUtil.setSequenceId(cell, scanner.getCell().getSequenceId());
        if (cells.size() >= expected.size() || !listed(cell).equals(expected.get(cells.size()))) {
          return "cell " + cells.size() + ": found " + listed(cell);
        }
        cells.add(cell);
      }
      if (cells.size() != expected.size()) {
        return cells.size() + " cells of " + expected.size();
      }
      String lost = sought(reader.getScanner(conf, false, true), cells);
      if (lost == null) {
        lost = denied(reader, cells);
      }
      long failures = HFile.getAndResetChecksumFailuresCount();
      return lost == null && failures > 0 ? failures + " checksums fail" : lost;
    }
  }

  /** Seeks every cell, backwards, so that each search begins in the index. */
  private static String sought(HFileScanner scanner, List<Cell> cells) throws IOException {
    for (int at = cells.size() - 1; at >= 0; at -= 3) {
      Cell cell = cells.get(at);
      // As HBase seeks: an index key has no sequence id, and a key with one would sort before it.
      if (scanner.seekTo(withoutSequenceId(cell)) != 0 || CellComparatorImpl.COMPARATOR.compare(scanner.getCell(), cell, true) != 0) {
        return "cell " + at + " is not found: " + listed(cell);
      }
    }
    return null;
  }

  private static KeyValue withoutSequenceId(Cell cell) {
    KeyValue key = ((KeyValue) cell).shallowCopy();
    key.setSequenceId(0);
    return key;
  }

  /** Looks up every cell in the general and the delete family Bloom filter, if they exist. */
  private static String denied(HFile.Reader reader, List<Cell> cells) throws IOException {
    byte[] kind = reader.getHFileInfo().get(Bytes.toBytes("BLOOM_FILTER_TYPE"));
    byte[] prefix = reader.getHFileInfo().get(Bytes.toBytes("BLOOM_FILTER_PARAM"));
    BloomType type = kind == null ? BloomType.NONE : BloomType.valueOf(Bytes.toString(kind));
    DataInput general = reader.getGeneralBloomFilterMetadata();
    DataInput deletes = reader.getDeleteBloomFilterMetadata();
    BloomFilter rows = general == null ? null : BloomFilterFactory.createFromMeta(general, reader);
    BloomFilter markers = deletes == null ? null : BloomFilterFactory.createFromMeta(deletes, reader);
    if (rows == null && type != BloomType.NONE) {
      return "the Bloom filter is missing";
    }
    for (Cell cell : cells) {
      byte[] row = CellUtil.cloneRow(cell);
      boolean has = true;
      if (rows != null && type == BloomType.ROWPREFIX_FIXED_LENGTH) {
        has = rows.contains(row, 0, Math.min(Bytes.toInt(prefix), row.length), null);
      } else if (rows != null && type == BloomType.ROWCOL) {
        has = rows.contains(PrivateCellUtil.createFirstOnRowCol(cell), null, type);
      } else if (rows != null) {
        has = rows.contains(row, 0, row.length, null);
      }
      int code = cell.getTypeByte();
      boolean ofFamily = code == KeyValue.Type.DeleteFamily.getCode() || code == KeyValue.Type.DeleteFamilyVersion.getCode();
      if (has && markers != null && ofFamily) {
        has = markers.contains(row, 0, row.length, null);
      }
      if (!has) {
        return "a Bloom filter denies " + listed(cell);
      }
    }
    return null;
  }

  private static Path listing(Path file) {
    return Path.of(file.toString().replace(".hfile", ".txt"));
  }

  private static String listed(Cell cell) {
    return "CELL row=" + Bytes.toStringBinary(CellUtil.cloneRow(cell))
        + " fam=" + Bytes.toStringBinary(CellUtil.cloneFamily(cell))
        + " qual=" + Bytes.toStringBinary(CellUtil.cloneQualifier(cell))
        + " ts=" + cell.getTimestamp() + " type=" + (cell.getTypeByte() & 0xff) + " seq=" + cell.getSequenceId()
        + " tags=" + Bytes.toHex(PrivateCellUtil.cloneTags(cell))
        + " val=" + Bytes.toStringBinary(CellUtil.cloneValue(cell));
  }

  private static Configuration local() {
    Configuration conf = HBaseConfiguration.create();
    conf.set("fs.defaultFS", "file:///");
    conf.set("hbase.rootdir", "file:///");
    return conf;
  }
}
