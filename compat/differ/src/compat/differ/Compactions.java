package compat.differ;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;

/**
 * Compactions, one at a time, waiting for each. Servers must not compact automatically, because
 * clients can see what a compaction drops.
 */
final class Compactions {
  private static final long PATIENCE_MS = 60_000;
  private static final long DROPPED_MS = 3_000;
  private static final long POLL_MS = 10;
  /** A requested compaction has begun by then, if there is something to compact. */
  private static final long BEGUN_MS = 100;

  private Compactions() {
  }

  /** From now on only these methods compact. */
  static void forbid(Admin admin) throws Exception {
    admin.compactionSwitch(false, List.of());
  }

  private static void permit(Admin admin) throws Exception {
    admin.compactionSwitch(true, List.of());
  }

  /** Compacts the files that the server's policy selects. */
  static void minor(Admin admin, TableName name) throws Exception {
    permit(admin);
    try {
      admin.compact(name);
      Thread.sleep(BEGUN_MS);
      awaitNone(admin, name);
    } finally {
      forbid(admin);
    }
  }

  private static void awaitNone(Admin admin, TableName name) throws Exception {
    long asked = System.currentTimeMillis();
    while (admin.getCompactionState(name) != CompactionState.NONE) {
      Thread.sleep(POLL_MS);
      if (System.currentTimeMillis() - asked > PATIENCE_MS) {
        throw new IllegalStateException("a compaction never ended");
      }
    }
  }

  /** Compacts each store into one file. */
  static void major(Admin admin, TableName name) throws Exception {
    permit(admin);
    try {
      awaitMajor(admin, name);
    } finally {
      forbid(admin);
    }
  }

  private static void awaitMajor(Admin admin, TableName name) throws Exception {
    long asked = System.currentTimeMillis();
    admin.majorCompact(name);
    for (int polls = 0; !isCompactedSince(admin, name, asked); polls++) {
      Thread.sleep(POLL_MS);
      if (polls % 200 == 199) {
        // A request may be dropped while the server cleans up after another.
        admin.majorCompact(name);
      }
      if (System.currentTimeMillis() - asked > PATIENCE_MS) {
        throw new IllegalStateException("a major compaction never ended");
      }
    }
  }

  private static boolean isCompactedSince(Admin admin, TableName name, long time) throws Exception {
    List<RegionMetrics> regions = new ArrayList<>();
    for (ServerName server : admin.getRegionServers()) {
      regions.addAll(admin.getRegionMetrics(server, name));
    }
    // If all cells have expired, HBase removes them without counting it as a major compaction.
    boolean isLong = System.currentTimeMillis() - time > DROPPED_MS;
    return !regions.isEmpty() && admin.getCompactionState(name) == CompactionState.NONE
        && regions.stream().allMatch(region -> region.getStoreFileCount() == 0
            || region.getStoreFileCount() <= region.getStoreCount()
                && (isLong || region.getLastMajorCompactionTimestamp() >= time));
  }
}
