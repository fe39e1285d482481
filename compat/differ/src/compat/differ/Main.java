package compat.differ;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/**
 * Runs random programs against two servers and compares every answer.
 *
 * <pre>
 *   java compat.differ.Main LEFT_ZOOKEEPER_PORT RIGHT_ZOOKEEPER_PORT FIRST_SEED PROGRAMS OPERATIONS
 * </pre>
 *
 * A program ends at its first difference, for what comes after may follow from it. So many programs share a table, and
 * their rows differ in the first letters. Exit code 0: all answers equal; 1: some differ.
 */
public final class Main {
  private static final int PROGRAMS_PER_TABLE = 10;

  /** Tells of every operation, to see how a difference came about. */
  private static final boolean TRACE = System.getenv("COMPAT_TRACE") != null;

  private Main() {
  }

  public static void main(String[] arguments) throws Exception {
    long first = Long.parseLong(arguments[2]);
    int programs = Integer.parseInt(arguments[3]);
    int operations = Integer.parseInt(arguments[4]);
    List<String> found = new ArrayList<>();
    try (Side left = new Side(conf(arguments[0])); Side right = new Side(conf(arguments[1]))) {
      Schema schema = null;
      for (long seed = first; seed < first + programs; seed++) {
        // A table belongs to its decade of seeds, wherever a run begins.
        if (schema == null || seed % PROGRAMS_PER_TABLE == 0) {
          schema = new Schema(new Dice(-1 - seed / PROGRAMS_PER_TABLE), "differ_" + seed / PROGRAMS_PER_TABLE % 4);
          left.create(schema);
          right.create(schema);
        }
        String difference = run(left, right, schema, seed, operations);
        if (difference != null) {
          found.add(difference);
          System.out.println(difference);
        }
        System.err.printf("\r%d of %d programs, %d differ", seed - first + 1, programs, found.size());
      }
    }
    System.err.println();
    System.out.println(found.isEmpty() ? "all equal" : found.size() + " of " + programs + " programs differ");
    System.exit(found.isEmpty() ? 0 : 1);
  }

  private static Configuration conf(String zookeeperPort) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", zookeeperPort);
    // What HBase answers with an error that invites to try again would take minutes.
    conf.set("hbase.client.retries.number", "2");
    conf.set("hbase.client.pause", "20");
    return conf;
  }

  /** Null if all answers are equal, else the first that differ. */
  private static String run(Side left, Side right, Schema schema, long seed, int operations) throws Exception {
    String tableThen = schema.toString();
    Program program = new Program(seed, schema);
    Side.Clock leftClock = new Side.Clock();
    Side.Clock rightClock = new Side.Clock();
    String difference = null;
    for (int number = 0; number < operations; number++) {
      Operation operation = program.next();
      // The rest of the program is made all the same: alterations of the table hold for those that follow.
      if (difference != null && !operation.kind().equals("alter")) {
        continue;
      }
      String one = left.ask(schema.name(), operation, leftClock, number);
      String other = right.ask(schema.name(), operation, rightClock, number);
      if (TRACE) {
        System.out.println("seed " + seed + ", operation " + number + ": " + operation + "\n    " + one);
      }
      if (difference == null && !one.equals(other)) {
        difference = "seed " + seed + ", operation " + number + ", table " + tableThen + "\n  " + operation + "\n"
            + apart(one, other);
      }
    }
    return difference;
  }

  /** Both texts from a little before they part. */
  private static String apart(String one, String other) {
    int at = 0;
    while (at < Math.min(one.length(), other.length()) && one.charAt(at) == other.charAt(at)) {
      at++;
    }
    return "  left:  " + part(one, at) + "\n  right: " + part(other, at);
  }

  private static String part(String text, int at) {
    int begin = Math.max(0, at - 150);
    return (begin > 0 ? "..." : "") + text.substring(begin, Math.min(text.length(), at + 250));
  }
}
