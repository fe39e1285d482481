package compat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.MD5Hash;

/** Canonical text of a client's results. */
final class Show {
  /** Longer byte strings are shown by length and digest. */
  private static final int LONG_BYTES = 48;
  /** Longer lists of results are shown by their ends and a digest. */
  private static final int MANY_RESULTS = 14;
  /**
   * Timestamps within this distance of this machine's clock were set by the server (or by this
   * program just now).
   */
  private static final long CLOCK_SLACK_MS = 3_600_000;

  private Show() {
  }

  /** Any result. */
  static String value(Object answer) {
    if (answer == null) {
      return "null";
    } else if (answer instanceof Result result) {
      return result(result);
    } else if (answer instanceof byte[] bytes) {
      return bytes(bytes);
    } else if (answer instanceof TableDescriptor descriptor) {
      return descriptor(descriptor);
    } else if (answer instanceof RegionInfo region) {
      return region(region);
    } else if (answer instanceof TableName name) {
      return name.getNameAsString();
    } else if (answer instanceof Throwable thrown) {
      return exception(thrown);
    } else if (answer instanceof boolean[] flags) {
      return Arrays.toString(flags);
    } else if (answer instanceof Object[] array) {
      return list(Arrays.asList(array));
    } else if (answer instanceof Collection<?> list) {
      return list(list);
    }
    return normal(answer.toString());
  }

  private static String list(Collection<?> list) {
    List<String> texts = new ArrayList<>();
    boolean lines = false;
    for (Object item : list) {
      lines |= item instanceof Result || item instanceof TableDescriptor;
      texts.add(value(item));
    }
    if (!lines) {
      return texts.size() + " " + texts;
    }
    return texts.size() + lines(texts);
  }

  private static String lines(List<String> texts) {
    if (texts.size() <= MANY_RESULTS) {
      return texts.isEmpty() ? "" : "\n    " + String.join("\n    ", texts);
    }
    String digest = MD5Hash.getMD5AsHex(Bytes.toBytes(String.join("\n", texts)));
    return ", digest " + digest + "\n    " + String.join("\n    ", texts.subList(0, 3)) + "\n    ...\n    "
        + String.join("\n    ", texts.subList(texts.size() - 2, texts.size()));
  }

  /** All cells of a result, after its unusual properties. */
  static String result(Result result) {
    StringBuilder text = new StringBuilder();
    if (result.getExists() != null) {
      text.append("exists=").append(result.getExists()).append(' ');
    }
    if (result.isStale()) {
      text.append("stale ");
    }
    if (result.mayHaveMoreCellsInRow()) {
      text.append("partial ");
    }
    if (result.isEmpty()) {
      return text.append("(empty)").toString();
    }
    return text.append(cells(Arrays.asList(result.rawCells()))).toString();
  }

  static String cells(List<Cell> cells) {
    List<Long> clock = new ArrayList<>(new TreeSet<>(
        cells.stream().map(Cell::getTimestamp).filter(Show::isClock).toList()));
    List<String> texts = new ArrayList<>();
    for (Cell cell : cells) {
      texts.add(cell(cell, clock));
    }
    if (texts.size() <= 60) {
      return String.join(" ", texts);
    }
    return texts.size() + " cells, digest " + MD5Hash.getMD5AsHex(Bytes.toBytes(String.join(" ", texts))) + " "
        + texts.get(0) + " ... " + texts.get(texts.size() - 1);
  }

  /** row/family:qualifier@timestamp=value; `@now`, `@now+1` ... are clock times in their order. */
  private static String cell(Cell cell, List<Long> clock) {
    String type = cell.getType() == Cell.Type.Put ? "" : "!" + cell.getType();
    return bytes(CellUtil.cloneRow(cell)) + "/" + bytes(CellUtil.cloneFamily(cell)) + ":"
        + bytes(CellUtil.cloneQualifier(cell)) + "@" + timestamp(cell.getTimestamp(), clock) + type + "="
        + bytes(CellUtil.cloneValue(cell));
  }

  private static String timestamp(long timestamp, List<Long> clock) {
    if (timestamp == HConstants.LATEST_TIMESTAMP) {
      return "latest";
    }
    int rank = clock.indexOf(timestamp);
    return rank < 0 ? Long.toString(timestamp) : rank == 0 ? "now" : "now+" + rank;
  }

  static boolean isClock(long timestamp) {
    return Math.abs(timestamp - System.currentTimeMillis()) < CLOCK_SLACK_MS;
  }

  static String bytes(byte[] bytes) {
    if (bytes == null) {
      return "null";
    }
    return bytes.length <= LONG_BYTES ? Bytes.toStringBinary(bytes)
        : "<" + bytes.length + " bytes " + MD5Hash.getMD5AsHex(bytes).substring(0, 8) + ">";
  }

  /** Every attribute and setting of a table and its families, sorted. */
  static String descriptor(TableDescriptor table) {
    StringBuilder text = new StringBuilder(table.getTableName().getNameAsString());
    Map<String, String> values = new TreeMap<>();
    table.getValues().forEach((key, value) -> values.put(Bytes.toStringBinary(key.copyBytes()),
        Bytes.toStringBinary(value.copyBytes())));
    text.append(' ').append(values);
    for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
      text.append("\n      ").append(family(family));
    }
    return text.toString();
  }

  private static String family(ColumnFamilyDescriptor family) {
    Map<String, String> values = new TreeMap<>();
    family.getValues().forEach((key, value) -> values.put(Bytes.toStringBinary(key.copyBytes()),
        Bytes.toStringBinary(value.copyBytes())));
    return family.getNameAsString() + " " + values + " configuration " + new TreeMap<>(family.getConfiguration());
  }

  /** A region without its creation time and hash. */
  static String region(RegionInfo region) {
    return region.getTable() + "[" + bytes(region.getStartKey()) + "," + bytes(region.getEndKey()) + ")"
        + (region.getReplicaId() == 0 ? "" : " replica " + region.getReplicaId())
        + (region.isOffline() ? " offline" : "") + (region.isSplit() ? " split" : "");
  }

  /** The class of an exception; for one that collects several, their classes. */
  static String exception(Throwable thrown) {
    Throwable bare = bare(thrown);
    if (bare instanceof RetriesExhaustedWithDetailsException many) {
      List<String> causes = new ArrayList<>();
      for (int at = 0; at < many.getNumExceptions(); at++) {
        causes.add(Show.bytes(many.getRow(at).getRow()) + " " + exception(many.getCause(at)));
      }
      causes.sort(null);
      return "!RetriesExhaustedWithDetails" + causes;
    }
    String inner = bare.getCause() == null ? "" : innerClasses(bare);
    return "!" + bare.getClass().getSimpleName() + inner;
  }

  /**
   * The classes of the causes, without repetitions and without the wrappers that only carry a
   * server's exception.
   */
  private static String innerClasses(Throwable outer) {
    StringBuilder text = new StringBuilder();
    String last = outer.getClass().getSimpleName();
    for (Throwable cause = outer.getCause(); cause != null; cause = cause.getCause()) {
      String name = cause instanceof RemoteWithExtrasException remote
          ? remote.getClassName().replaceAll(".*[.$]", "") : cause.getClass().getSimpleName();
      if (!isCarrier(cause) && !name.equals(last)) {
        text.append(" < ").append(name);
        last = name;
      }
    }
    return text.toString();
  }

  private static boolean isCarrier(Throwable thrown) {
    return thrown instanceof ExecutionException || thrown instanceof CompletionException
        || thrown.getClass() == RuntimeException.class;
  }

  private static Throwable bare(Throwable thrown) {
    return isCarrier(thrown) && thrown.getCause() != null ? bare(thrown.getCause()) : thrown;
  }

  static String exceptionWithMessage(Throwable thrown) {
    String message = bare(thrown).getMessage();
    String firstLine = message == null ? "null" : message.split("\n", 2)[0];
    return exception(thrown) + " \"" + normal(firstLine) + "\"";
  }

  /**
   * Replaces text that differs from run to run: region names, servers, addresses, times, thread
   * names.
   */
  static String normal(String text) {
    return text
        .replaceAll("[0-9a-f]{32}", "<hash>")
        .replaceAll("(localhost|127\\.0\\.0\\.1|[A-Za-z0-9_.-]+),\\d+,\\d{13}", "<server>")
        .replaceAll(",\\d{13}\\.<hash>\\.", ",<id>.<hash>.")
        .replaceAll("[A-Za-z0-9_.-]+/127\\.0\\.0\\.1:\\d+", "<address>")
        .replaceAll("(localhost|127\\.0\\.0\\.1):\\d+", "<address>")
        .replaceAll("\\d{13}", "<ms>");
  }
}
