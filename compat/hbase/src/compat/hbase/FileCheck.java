package compat.hbase;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.fs.HFileSystem;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFilePrettyPrinter;
import org.apache.hadoop.hbase.io.hfile.HFileScanner;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALFactory;
import org.apache.hadoop.hbase.wal.WALPrettyPrinter;

/**
 * Reads files with HBase's own printers: every HFile and every log below the given paths, in this
 * one JVM.
 *
 * <p>An HFile is accepted if the printer (-v -m -p -k) ends with 0, prints no complaint, and finds
 * as many cells as the trailer states; and if a reader that verifies checksums, which the printer
 * does not, finds no error. A log is accepted if the printer reads it without an exception. HBase
 * ends silently at a torn or damaged entry, so the output states how far it came. One line per
 * file; exit code 0 if all are accepted, 1 if some are not, 2 if there was no file of either kind.
 */
public final class FileCheck {
  private static final byte[] HFILE_TRAILER_MAGIC = "TRABLK\"$".getBytes(StandardCharsets.US_ASCII);
  /** The trailer of HFile v3 fills the last bytes of a file of this size. */
  private static final int HFILE_TRAILER_BYTES = 4096;
  private static final byte[] LOG_MAGIC = "PWAL".getBytes(StandardCharsets.US_ASCII);

  private static final Pattern SCANNED = Pattern.compile("Scanned kv count -> (\\d+)");
  private static final Pattern PROMISED = Pattern.compile("entryCount=(\\d+)");

  private FileCheck() {
  }

  public static void main(String[] arguments) throws IOException {
    int hfiles = 0;
    int logs = 0;
    int refused = 0;
    for (Path path : filesBelow(arguments)) {
      String verdict;
      if (isHFile(path)) {
        hfiles++;
        verdict = hfile(path);
      } else if (isLog(path)) {
        logs++;
        verdict = log(path);
      } else {
        continue;
      }
      refused += verdict.startsWith("ok") ? 0 : 1;
      System.out.println(path + ": " + verdict);
    }
    System.out.println(hfiles + " HFiles, " + logs + " logs, " + refused + " refused");
    System.exit(hfiles + logs == 0 ? 2 : refused == 0 ? 0 : 1);
  }

  private static List<Path> filesBelow(String[] arguments) throws IOException {
    List<Path> files = new ArrayList<>();
    for (String argument : arguments) {
      try (Stream<Path> walk = Files.walk(Path.of(argument).toAbsolutePath())) {
        walk.filter(Files::isRegularFile).sorted().forEach(files::add);
      }
    }
    return files;
  }

  private static boolean isHFile(Path path) throws IOException {
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "r")) {
      if (file.length() < HFILE_TRAILER_BYTES) {
        return false;
      }
      byte[] magic = new byte[HFILE_TRAILER_MAGIC.length];
      file.seek(file.length() - HFILE_TRAILER_BYTES);
      file.readFully(magic);
      return Arrays.equals(magic, HFILE_TRAILER_MAGIC);
    }
  }

  private static boolean isLog(Path path) throws IOException {
    try (InputStream in = Files.newInputStream(path)) {
      return Arrays.equals(in.readNBytes(LOG_MAGIC.length), LOG_MAGIC);
    }
  }

  private static String hfile(Path path) {
    Capture out = new Capture();
    Capture err = new Capture();
    HFilePrettyPrinter printer = new HFilePrettyPrinter(local());
    printer.setPrintStreams(out.stream(), err.stream());
    int code;
    try {
      code = printer.run(new String[] {"-v", "-m", "-p", "-k", "-f", path.toUri().toString()});
    } catch (RuntimeException | Error thrown) {
      return "REFUSED: " + thrown;
    }
    if (code != 0) {
      return "REFUSED: exit code " + code + " " + err.text();
    }
    if (!err.text().isBlank() || out.complains()) {
      return "REFUSED: complaints " + err.text() + out.text();
    }
    long scanned = number(SCANNED, out.text());
    long promised = number(PROMISED, out.text());
    if (scanned != promised || out.cells != scanned) {
      return "REFUSED: " + scanned + " cells scanned, " + out.cells + " printed, " + promised + " in the trailer";
    }
    return verified(path, scanned);
  }

  /** Reads the file again like a region server, which verifies HBase's checksums. */
  private static String verified(Path path, long cells) {
    HFile.getAndResetChecksumFailuresCount();
    try (HFileSystem fs = new HFileSystem(local(), true);
        HFile.Reader reader = HFile.createReader(fs, new org.apache.hadoop.fs.Path(path.toUri()),
            CacheConfig.DISABLED, true, local())) {
      HFileScanner scanner = reader.getScanner(local(), false, false);
      long met = 0;
      for (boolean more = scanner.seekTo(); more; more = scanner.next()) {
        met++;
      }
      long failures = HFile.getAndResetChecksumFailuresCount();
      return failures == 0 && met == cells ? "ok, " + cells + " cells"
          : "REFUSED: " + failures + " checksums fail, " + met + " cells of " + cells;
    } catch (IOException | RuntimeException | Error thrown) {
      return "REFUSED: " + thrown;
    }
  }

  private static String log(Path path) {
    Capture out = new Capture();
    WALPrettyPrinter printer = new WALPrettyPrinter(true, false, -1, java.util.Set.of(), null, null, null, false,
        false, out.stream());
    try {
      printer.processFile(local(), new org.apache.hadoop.fs.Path(path.toUri()));
    } catch (IOException | RuntimeException | Error thrown) {
      return "REFUSED: after " + out.entries + " entries: " + thrown;
    }
    return reach(path, out.entries);
  }

  /** How far the reader comes. A closed log ends in a trailer, which is not an entry. */
  private static String reach(Path path, long printed) {
    try (FileSystem fs = FileSystem.getLocal(local());
        WAL.Reader reader = WALFactory.createReader(fs, new org.apache.hadoop.fs.Path(path.toUri()), local())) {
      long entries = 0;
      while (reader.next() != null) {
        entries++;
      }
      String reach = entries + " entries, read to " + reader.getPosition() + " of " + Files.size(path) + " bytes";
      return entries == printed ? "ok, " + reach : "REFUSED: " + printed + " entries printed, but " + reach;
    } catch (IOException | RuntimeException | Error thrown) {
      return "REFUSED: " + thrown;
    }
  }

  private static Configuration local() {
    Configuration conf = HBaseConfiguration.create();
    conf.set("fs.defaultFS", "file:///");
    conf.set("hbase.rootdir", "file:///");
    return conf;
  }

  /** The last number that follows the pattern, or -1. */
  private static long number(Pattern pattern, String text) {
    Matcher matcher = pattern.matcher(text);
    long found = -1;
    while (matcher.find()) {
      found = Long.parseLong(matcher.group(1));
    }
    return found;
  }

  /** Receives a printer's output: counts cells and entries, and keeps only the other lines. */
  private static final class Capture extends OutputStream {
    private static final byte[] CELL = "K: ".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] ENTRY = "Sequence=".getBytes(StandardCharsets.US_ASCII);
    /** Enough to identify a line; the rest of a long cell is dropped. */
    private static final int LINE_KEPT_BYTES = 4096;

    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final StringBuilder kept = new StringBuilder();
    long cells;
    long entries;

    PrintStream stream() {
      return new PrintStream(this, true, StandardCharsets.UTF_8);
    }

    @Override
    public void write(int one) {
      if (one == '\n') {
        endLine();
      } else if (line.size() < LINE_KEPT_BYTES) {
        line.write(one);
      }
    }

    private void endLine() {
      byte[] bytes = line.toByteArray();
      if (startsWith(bytes, CELL)) {
        cells++;
      } else if (startsWith(bytes, ENTRY)) {
        entries++;
      } else {
        kept.append(new String(bytes, StandardCharsets.UTF_8)).append('\n');
      }
      line.reset();
    }

    private static boolean startsWith(byte[] bytes, byte[] prefix) {
      return bytes.length >= prefix.length && Arrays.equals(bytes, 0, prefix.length, prefix, 0, prefix.length);
    }

    boolean complains() {
      return kept.indexOf("WARNING") >= 0 || kept.indexOf("ERROR") >= 0 || kept.indexOf("Exception") >= 0;
    }

    String text() {
      return kept.toString();
    }
  }
}
