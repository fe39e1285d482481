package compat.differ;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/**
 * Runs random programs against two servers and compares every response.
 *
 * <pre>
 *   java compat.differ.Main LEFT_ZOOKEEPER_PORT RIGHT_ZOOKEEPER_PORT FIRST_SEED PROGRAMS OPERATIONS SHRINK
 * </pre>
 *
 * A program ends at its first difference, because later ones may follow from it. Several programs
 * share a table; the first letters of their rows differ. Exit code 0: all responses equal; 1: some
 * differ.
 */
public final class Main {
  private static final int PROGRAMS_PER_TABLE = 10;

  private final Pair pair;
  private final int operations;
  private final boolean shrink;

  private Main(Pair pair, int operations, boolean shrink) {
    this.pair = pair;
    this.operations = operations;
    this.shrink = shrink;
  }

  public static void main(String[] arguments) throws Exception {
    long first = Long.parseLong(arguments[2]);
    int programs = Integer.parseInt(arguments[3]);
    int differ;
    try (Pair pair = new Pair(new Side(conf(arguments[0])), new Side(conf(arguments[1])))) {
      differ = new Main(pair, Integer.parseInt(arguments[4]), Boolean.parseBoolean(arguments[5])).run(first, programs);
      System.out.print(pair.explained());
    }
    System.out.println(differ == 0 ? "all equal" : differ + " of " + programs + " programs differ");
    System.exit(differ == 0 ? 0 : 1);
  }

  private static Configuration conf(String zookeeperPort) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", zookeeperPort);
    // HBase's retriable errors would take minutes with the default settings.
    conf.set("hbase.client.retries.number", "2");
    conf.set("hbase.client.pause", "20");
    return conf;
  }

  /** Runs the programs and returns how many end in a difference. */
  private int run(long first, int programs) throws Exception {
    int differ = 0;
    Schema schema = null;
    for (long seed = first; seed < first + programs; seed++) {
      // Ten consecutive seeds share a table, wherever a run begins.
      if (schema == null || seed % PROGRAMS_PER_TABLE == 0) {
        long decade = seed / PROGRAMS_PER_TABLE;
        schema = Schema.any(new Dice(-1 - decade), "differ_" + decade % 4);
        pair.create(schema);
      }
      differ += run(seed, schema) ? 0 : 1;
      System.err.printf("\r%d of %d programs, %d differ", seed - first + 1, programs, differ);
    }
    System.err.println();
    return differ;
  }

  /** Whether all responses to a program are equal. */
  private boolean run(long seed, Schema schema) throws Exception {
    Shrinker.Source source = prefix -> Program.operations(seed, prefix, schema, operations);
    Pair.Difference difference = pair.run(source.operations(Shrinker.prefix(seed, 0)));
    if (difference == null) {
      return true;
    }
    System.out.println("seed " + seed + ", operation " + difference.number() + ", table " + schema + "\n  "
        + difference.operation() + "\n" + difference.apart());
    if (shrink) {
      System.out.println("  shrunk:\n" + new Shrinker(pair, seed, source).shrink(difference));
    }
    return false;
  }
}
