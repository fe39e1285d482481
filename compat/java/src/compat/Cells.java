package compat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/**
 * Writes cells for a script, which sends commands on standard input, one per line. Words are
 * separated by blanks; rows, qualifiers and values are in hexadecimal digits; `-` is empty.
 *
 * <pre>
 *   put TABLE ROW FAMILY QUALIFIER TIMESTAMP VALUE   buffered until `write`
 *   column TABLE ROW FAMILY QUALIFIER TIMESTAMP      deletes all versions up to the timestamp; buffered
 *   version TABLE ROW FAMILY QUALIFIER TIMESTAMP     deletes that version; buffered
 *   family TABLE ROW FAMILY TIMESTAMP                deletes a family of a row; buffered
 *   write                                            sends all buffered changes, atomically per row
 *   create TABLE FAMILY[,OPTION=VALUE..] .. [/ SPLIT..]
 *   flush TABLE, compact TABLE, settle TABLE         settle: a major compaction, waits for its end
 *   major TABLE, split TABLE ROW, merge TABLE NUMBER
 *   regions TABLE                                    prints NAME:START:END of each, before `done`
 * </pre>
 *
 * Each command from `write` on prints one line: `done`, or `refused` and the reason.
 */
public final class Cells {
  /** Rows per request. */
  private static final int BATCH = 1000;

  private final Session session;
  private final Map<String, Mutation> kept = new LinkedHashMap<>();

  private Cells(Session session) {
    this.session = session;
  }

  public static void main(String[] arguments) throws Exception {
    try (Session session = new Session(HBaseConfiguration.create(), "cells", new Transcript(System.err))) {
      Cells cells = new Cells(session);
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        cells.run(line.split(" "));
      }
    }
    System.exit(0);
  }

  private void run(String[] words) throws IOException {
    TableName table = words.length > 1 ? TableName.valueOf(words[1]) : null;
    switch (words[0]) {
      case "put" -> keep(words, new Put(bytes(words[2])), Put.class)
          .addColumn(bytes(words[3]), bytes(words[4]), Long.parseLong(words[5]), bytes(words[6]));
      case "column" -> keep(words, new Delete(bytes(words[2])), Delete.class)
          .addColumns(bytes(words[3]), bytes(words[4]), Long.parseLong(words[5]));
      case "version" -> keep(words, new Delete(bytes(words[2])), Delete.class)
          .addColumn(bytes(words[3]), bytes(words[4]), Long.parseLong(words[5]));
      case "family" -> keep(words, new Delete(bytes(words[2])), Delete.class)
          .addFamily(bytes(words[3]), Long.parseLong(words[4]));
      case "write" -> answer(this::write);
      case "create" -> answer(() -> create(table, words));
      case "flush" -> answer(() -> session.admin.flush(table));
      case "compact" -> answer(() -> session.admin.compact(table));
      case "major" -> answer(() -> session.admin.majorCompact(table));
      case "settle" -> answer(() -> session.majorCompact(table));
      case "split" -> answer(() -> session.admin.split(table, bytes(words[2])));
      case "regions" -> answer(() -> System.out.print(regions(table)));
      case "merge" -> answer(() -> merge(table, Integer.parseInt(words[2])));
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  /** Executes a line. */
  private interface Step {
    void run() throws Exception;
  }

  private static void answer(Step step) {
    String answer = "done";
    try {
      step.run();
    } catch (Exception e) {
      answer = ("refused " + e).replaceAll("\\s+", " ");
    }
    System.out.println(answer);
    System.out.flush();
  }

  private <M extends Mutation> M keep(String[] words, M fresh, Class<M> kind) {
    return kind.cast(kept.computeIfAbsent(String.join(" ", kind.getSimpleName(), words[1], words[2]), key -> fresh));
  }

  private void write() throws Exception {
    Map<String, List<Row>> byTable = new LinkedHashMap<>();
    kept.forEach((key, row) -> byTable.computeIfAbsent(key.split(" ")[1], name -> new ArrayList<>()).add(row));
    kept.clear();
    for (Map.Entry<String, List<Row>> rows : byTable.entrySet()) {
      try (Table table = session.connection.getTable(TableName.valueOf(rows.getKey()))) {
        for (int at = 0; at < rows.getValue().size(); at += BATCH) {
          List<Row> batch = rows.getValue().subList(at, Math.min(at + BATCH, rows.getValue().size()));
          table.batch(batch, new Object[batch.size()]);
        }
      }
    }
  }

  private void create(TableName name, String[] words) throws IOException {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    List<byte[]> splits = new ArrayList<>();
    boolean areSplits = false;
    for (String word : Arrays.copyOfRange(words, 2, words.length)) {
      if (word.equals("/")) {
        areSplits = true;
      } else if (areSplits) {
        splits.add(bytes(word));
      } else {
        String[] parts = word.split(",");
        ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(bytes(parts[0]));
        for (String option : Arrays.copyOfRange(parts, 1, parts.length)) {
          family.setValue(option.split("=")[0], option.split("=")[1]);
        }
        table.setColumnFamily(family.build());
      }
    }
    session.admin.createTable(table.build(), splits.isEmpty() ? null : splits.toArray(new byte[0][]));
  }

  /** Merges the region of that index (from 0, modulo the number of regions) with the next one. */
  private void merge(TableName table, int number) throws Exception {
    List<RegionInfo> regions = session.admin.getRegions(table);
    if (regions.size() > 1) {
      int first = number % (regions.size() - 1);
      session.admin.mergeRegionsAsync(new byte[][] {regions.get(first).getEncodedNameAsBytes(),
          regions.get(first + 1).getEncodedNameAsBytes()}, false).get();
    }
  }

  private String regions(TableName table) throws IOException {
    StringBuilder found = new StringBuilder();
    for (RegionInfo region : session.admin.getRegions(table)) {
      found.append(String.join(":", hexadecimal(region.getRegionName()), hexadecimal(region.getStartKey()),
          hexadecimal(region.getEndKey()))).append(' ');
    }
    return found.toString();
  }

  private static String hexadecimal(byte[] bytes) {
    return bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
  }

  private static byte[] bytes(String digits) {
    return digits.equals("-") ? new byte[0] : HexFormat.of().parseHex(digits);
  }
}
