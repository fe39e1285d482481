package compat;

import java.io.ByteArrayOutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.hadoop.hbase.client.Table;

/**
 * An endpoint service of regions, called with the classes of this client version. Its protobuf was
 * moved into HBase's packages, so requests and responses are bytes here.
 */
final class Stub {
  private static final String[] PACKAGES = {"org.apache.hadoop.hbase.protobuf.generated.",
      "org.apache.hadoop.hbase.shaded.protobuf.generated."};
  private final String outer;
  private final String service;
  private final String request;

  Stub(String outer, String service, String request) {
    this.outer = outer;
    this.service = service;
    this.request = request;
  }

  /** Calls the region of `row`, and returns the bytes of the response. */
  byte[] call(Table table, byte[] row, String method, byte[] message) throws Exception {
    Class<?> messages = messages();
    Class<?> type = Class.forName(messages.getName() + "$" + request);
    Class<?> stubs = Class.forName(messages.getName() + "$" + service);
    Object channel = Table.class.getMethod("coprocessorService", byte[].class).invoke(table, (Object) row);
    Object stub = null;
    for (Method candidate : stubs.getMethods()) {
      if (candidate.getName().equals("newBlockingStub")) {
        stub = candidate.invoke(null, channel);
      }
    }
    for (Method candidate : Class.forName(stubs.getName() + "$BlockingInterface").getMethods()) {
      if (candidate.getName().equals(method)) {
        candidate.setAccessible(true);
        try {
          Object answer = candidate.invoke(stub, null, type.getMethod("parseFrom", byte[].class).invoke(null, message));
          return (byte[]) answer.getClass().getMethod("toByteArray").invoke(answer);
        } catch (InvocationTargetException failed) {
          Throwable cause = failed.getCause();
          throw cause.getCause() instanceof Exception inner ? inner : (Exception) cause;
        }
      }
    }
    throw new NoSuchMethodException(method);
  }

  private Class<?> messages() throws ClassNotFoundException {
    for (String prefix : PACKAGES) {
      try {
        return Class.forName(prefix + outer);
      } catch (ClassNotFoundException moved) {
        // It is in the other package.
      }
    }
    throw new ClassNotFoundException(outer);
  }

  /** A field of bytes, or of a message. */
  static byte[] field(int number, byte[] value) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    varint(out, number << 3 | 2);
    varint(out, value.length);
    out.writeBytes(value);
    return out.toByteArray();
  }

  private static void varint(ByteArrayOutputStream out, int number) {
    for (; number >= 0x80; number >>>= 7) {
      out.write(number | 0x80);
    }
    out.write(number);
  }
}
