package compat;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Sets every attribute and setting of HBase to random values, by creating and altering tables.
 *
 * <pre>
 *   java compat.Attributes KEYS PAGE VALUES SEED
 * </pre>
 *
 * KEYS is a file of configuration keys; the attributes are the constants of the descriptor
 * builders. PAGE is docs/attributes.md. Each key is tried VALUES times for tables, for families,
 * and in the configuration of families. The server must refuse the value with an exception that
 * names the key, or return it, and then PAGE must list the key as honoured or as kept for
 * compatibility only; or PAGE must list the value as an accepted value of a refused key.
 */
public final class Attributes {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  /**
   * Values that many keys accept or nearly accept; the values in each key's own row on PAGE are
   * tried too.
   */
  private static final List<String> VALUES = List.of("true", "false", "TRUE", "maybe", "0", "1", "2", "-1", "5", "64", "3000",
      "1.5", "0.2", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "NaN", "x", "", " 1", "NONE", "NOPE",
      "AES", "ROW", "GZ", "LZO", "FOREVER", "no.such.Class");

  private enum Place { TABLE, FAMILY, CONFIGURATION }

  private final Admin admin;
  private final TableName name = TableName.valueOf("compat_attributes");
  private final Random random;
  /** The section and the accepted values of each key on PAGE. */
  private final Map<String, String[]> listed = new TreeMap<>();
  private final Map<String, Integer> outcomes = new TreeMap<>();
  private int complaints;

  private Attributes(Admin admin, Path page, long seed) throws IOException {
    this.admin = admin;
    this.random = new Random(seed);
    String section = "";
    for (String line : Files.readAllLines(page)) {
      if (line.startsWith("## ")) {
        section = line.substring(3);
      } else if (line.startsWith("| `")) {
        String[] columns = line.split(" \\| ");
        listed.put(columns[0].substring(3, columns[0].length() - 1), new String[] {section, columns[2]});
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    try (Session session = new Session(HBaseConfiguration.create(), "attributes", new Transcript(System.err))) {
      Attributes all = new Attributes(session.admin, Path.of(arguments[1]), Long.parseLong(arguments[3]));
      Set<String> keys = constants();
      int attributes = keys.size();
      Files.readAllLines(Path.of(arguments[0])).stream().filter(line -> !line.startsWith("#")).forEach(keys::add);
      all.drop();
      for (String key : keys) {
        for (Place place : Place.values()) {
          all.tryKey(key, place, Integer.parseInt(arguments[2]));
        }
      }
      all.drop();
      System.out.println(attributes + " attributes and " + (keys.size() - attributes) + " settings: " + all.outcomes);
      System.exit(all.complaints == 0 ? 0 : 1);
    }
  }

  /** The names of all attributes that the client's builders have. */
  private static Set<String> constants() throws IllegalAccessException {
    Set<String> names = new LinkedHashSet<>();
    for (Class<?> builder : List.of(TableDescriptorBuilder.class, ColumnFamilyDescriptorBuilder.class)) {
      for (Field field : builder.getDeclaredFields()) {
        boolean isName = Modifier.isPublic(field.getModifiers()) && Modifier.isStatic(field.getModifiers())
            && field.getType() == String.class && !field.getName().startsWith("DEFAULT_")
            && !field.getName().startsWith("NAMESPACE_");
        if (isName) {
          names.add((String) field.get(null));
        }
      }
    }
    return names;
  }

  private void tryKey(String key, Place place, int count) throws IOException {
    Set<String> values = new TreeSet<>();
    List<String> own = ownValues(key);
    while (values.size() < Math.min(count, VALUES.size())) {
      boolean isOwn = !own.isEmpty() && random.nextBoolean();
      values.add(isOwn ? own.get(random.nextInt(own.size())) : VALUES.get(random.nextInt(VALUES.size())));
      if (!own.isEmpty() && values.containsAll(own) && values.size() >= count) {
        break;
      }
    }
    for (String value : values) {
      tryValue(key, place, value);
    }
  }

  /** The words in the column of accepted values, and the numbers around its limits. */
  private List<String> ownValues(String key) {
    List<String> own = new ArrayList<>();
    if (listed.containsKey(key)) {
      for (String word : listed.get(key)[1].split(" or |, | to | from | of at least ")) {
        own.add(word.trim());
        if (word.trim().matches("-?[0-9]+")) {
          own.add(new java.math.BigInteger(word.trim()).subtract(java.math.BigInteger.ONE).toString());
          own.add(new java.math.BigInteger(word.trim()).add(java.math.BigInteger.ONE).toString());
        }
      }
    }
    return own;
  }

  private void tryValue(String key, Place place, String value) throws IOException {
    String attempt = place + " " + key + " => '" + value + "'";
    TableDescriptor sent;
    try {
      sent = descriptor(key, place, value);
    } catch (RuntimeException refused) {
      count("refused by the client");
      return;
    }
    if (!value.equals(valueIn(sent, key, place))) {
      // The builder removes a key with an empty value, and sets IS_META itself.
      count("not sent by the client");
      return;
    }
    try {
      if (admin.tableExists(name)) {
        admin.modifyTable(sent);
      } else {
        admin.createTable(sent);
        admin.disableTable(name);
      }
    } catch (DoNotRetryIOException refused) {
      // HBase's text for a policy that conflicts with other attributes.
      boolean isFifo = key.endsWith("compactionpolicy.class") && refused.getMessage().contains("FIFO compaction");
      if (isFifo || refused.getMessage().contains(key)) {
        count("refused");
      } else {
        complain(attempt + " is refused without its name: " + refused.getMessage().split("\n")[0]);
      }
      return;
    } catch (IOException | RuntimeException other) {
      complain(attempt + ": " + other);
      return;
    }
    accepted(key, place, value, attempt);
  }

  private void accepted(String key, Place place, String value, String attempt) throws IOException {
    String returned = valueIn(admin.getDescriptor(name), key, place);
    boolean isKept = value.equals(returned);
    if (!isKept) {
      complain(attempt + " is accepted, and returned as " + returned);
    } else if (listed.containsKey(key)) {
      count("accepted: " + listed.get(key)[0].toLowerCase());
      if (listed.get(key)[0].equals("Refused") && !ownValues(key).stream().anyMatch(value::equalsIgnoreCase)
          && !(value.isEmpty() && listed.get(key)[1].equals("the empty text"))) {
        complain(attempt + " is accepted, but the page lists it as refused");
      }
    } else {
      complain(attempt + " is accepted, and the page does not list the key");
    }
    if (random.nextInt(20) == 0) {
      // Occasionally the next value is set on a new table.
      drop();
    }
  }

  private static String valueIn(TableDescriptor table, String key, Place place) {
    ColumnFamilyDescriptor family = table.getColumnFamily(FAMILY);
    return switch (place) {
      case TABLE -> table.getValue(key);
      case FAMILY -> Bytes.toString(family.getValue(Bytes.toBytes(key)));
      case CONFIGURATION -> family.getConfigurationValue(key);
    };
  }

  private TableDescriptor descriptor(String key, Place place, String value) {
    ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(FAMILY);
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    switch (place) {
      case TABLE -> table.setValue(key, value);
      case FAMILY -> family.setValue(Bytes.toBytes(key), Bytes.toBytes(value));
      case CONFIGURATION -> family.setConfiguration(key, value);
    }
    return table.setColumnFamily(family.build()).build();
  }

  private void drop() throws IOException {
    if (admin.tableExists(name)) {
      if (admin.isTableEnabled(name)) {
        admin.disableTable(name);
      }
      admin.deleteTable(name);
    }
  }

  private void count(String outcome) {
    outcomes.merge(outcome, 1, Integer::sum);
  }

  private void complain(String text) {
    complaints++;
    System.out.println("ERROR " + text);
  }
}
