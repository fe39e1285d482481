package compat.differ;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.RetriesExhaustedWithDetailsException;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;
import org.apache.hadoop.hbase.util.Bytes;

/** Results as texts that are equal if the results are. */
final class Texts {
  private final Side.Clock clock;

  Texts(Side.Clock clock) {
    this.clock = clock;
  }

  String answer(Object answer) {
    if (answer instanceof Result result) {
      return result(result);
    } else if (answer instanceof Throwable thrown) {
      return exception(thrown);
    } else if (answer instanceof Object[] array) {
      return list(List.of(array));
    } else if (answer instanceof Collection<?> list) {
      return list(list);
    }
    return String.valueOf(answer);
  }

  private String list(Collection<?> list) {
    List<String> texts = new ArrayList<>();
    for (Object item : list) {
      texts.add(answer(item));
    }
    return "[" + String.join("; ", texts) + "]";
  }

  private String result(Result result) {
    StringBuilder text = new StringBuilder();
    if (result.getExists() != null) {
      text.append("exists=").append(result.getExists()).append(' ');
    }
    if (result.mayHaveMoreCellsInRow()) {
      text.append("partial ");
    }
    if (result.isEmpty()) {
      return text.append("(empty)").toString();
    }
    for (Cell cell : result.rawCells()) {
      text.append(cell(cell)).append(' ');
    }
    return text.toString();
  }

  private String cell(Cell cell) {
    return bytes(CellUtil.cloneRow(cell)) + "/" + bytes(CellUtil.cloneFamily(cell)) + ":"
        + bytes(CellUtil.cloneQualifier(cell)) + "@" + clock.text(cell.getTimestamp())
        + (cell.getType() == Cell.Type.Put ? "" : "!" + cell.getType()) + "=" + bytes(CellUtil.cloneValue(cell));
  }

  static String bytes(byte[] bytes) {
    return bytes.length <= 40 ? Bytes.toStringBinary(bytes) : "<" + bytes.length + " bytes " + Bytes.hashCode(bytes) + ">";
  }

  /** The class that the server named, or the class of the client's own exception. */
  static String exception(Throwable thrown) {
    if (thrown instanceof RetriesExhaustedWithDetailsException many) {
      List<String> causes = new ArrayList<>();
      for (int at = 0; at < many.getNumExceptions(); at++) {
        causes.add(exception(many.getCause(at)));
      }
      causes.sort(null);
      return "!" + causes;
    }
    String name = thrown.getClass().getSimpleName();
    for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
      if (cause instanceof RemoteWithExtrasException remote) {
        return "!" + remote.getClassName().replaceAll(".*[.$]", "");
      }
      name = cause.getClass().getSimpleName();
    }
    return "!" + name;
  }
}
