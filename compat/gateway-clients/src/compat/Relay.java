package compat;

import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.function.IntSupplier;

/**
 * Accepts connections on a port of this host and forwards them to another port of this host. The target
 * may change between two requests of a connection.
 */
public final class Relay implements Closeable {
  private static final int BACKLOG = 50;
  private static final int BUFFER_BYTES = 1 << 16;

  private final ServerSocket listener;
  private final IntSupplier target;

  /** `port` 0 stands for any free port. */
  public Relay(int port, IntSupplier target) throws IOException {
    this.listener = new ServerSocket(port, BACKLOG, InetAddress.getLoopbackAddress());
    this.target = target;
  }

  public int port() {
    return listener.getLocalPort();
  }

  /** Forwards until the relay is closed. */
  public void run() {
    while (true) {
      try {
        Socket client = listener.accept();
        inBackground(() -> forward(client));
      } catch (IOException e) {
        return;
      }
    }
  }

  public static void inBackground(Runnable task) {
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }

  private void forward(Socket client) {
    byte[] buffer = new byte[BUFFER_BYTES];
    Socket server = null;
    try (client) {
      int length = client.getInputStream().read(buffer);
      while (length > 0) {
        int port = target.getAsInt();
        if (server == null || server.getPort() != port) {
          close(server);
          server = new Socket(InetAddress.getLoopbackAddress(), port);
          answer(server, client);
        }
        server.getOutputStream().write(buffer, 0, length);
        length = client.getInputStream().read(buffer);
      }
    } catch (IOException e) {
      // One side closed the connection, which closes the other side too.
    } finally {
      close(server);
    }
  }

  private static void answer(Socket server, Socket client) {
    inBackground(() -> {
      try {
        server.getInputStream().transferTo(client.getOutputStream());
        // The server ended the connection.
        client.close();
      } catch (IOException e) {
        // The client did, or another server continues the connection.
      }
    });
  }

  private static void close(Socket socket) {
    try {
      if (socket != null) {
        socket.close();
      }
    } catch (IOException e) {
      // Nothing remains to be sent.
    }
  }
}
