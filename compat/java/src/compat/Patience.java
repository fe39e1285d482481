package compat;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * How long a client may be silent.
 *
 * <p>The scanners of hbase-client 3.0.0-beta-1 can lose themselves, with any server that answers fast: where the first
 * answer of the next region's scanner is there before the client listens for it, {@code AsyncTableResultScanner} forgets
 * whom to tell that it has room again, and waits for ever (it renews its lease meanwhile). So a read that hangs is
 * repeated; a server that keeps its answers is told from that by the second time, or by the third read of a run.
 */
final class Patience {
  private static final long READ_S = 30;
  private static final int REPEATS_MAX = 2;
  private static final long SILENCE_S = 240;

  private static final ScheduledExecutorService CLOCK = Executors.newScheduledThreadPool(1, task -> {
    Thread thread = new Thread(task, "patience");
    thread.setDaemon(true);
    return thread;
  });

  private static int repeats;

  private Patience() {
  }

  /** What `read` returns, asked once more if it does not return. */
  static <T> T read(Callable<T> read) throws Exception {
    AtomicBoolean over = new AtomicBoolean();
    Thread reader = Thread.currentThread();
    ScheduledFuture<?> alarm = CLOCK.schedule(() -> {
      if (over.compareAndSet(false, true)) {
        reader.interrupt();
      }
    }, READ_S, TimeUnit.SECONDS);
    try {
      return read.call();
    } catch (InterruptedException | InterruptedIOException interrupted) {
      if (!over.get() || repeats == REPEATS_MAX) {
        throw new IOException("no answer to a read within " + READ_S + " s", interrupted);
      }
    } finally {
      alarm.cancel(false);
      if (!over.compareAndSet(false, true)) {
        // The alarm may have come between the answer and here.
        Thread.interrupted();
      }
    }
    repeats++;
    System.err.println("a read hung in the client and is repeated");
    return read.call();
  }

  /** Ends the program with where it hangs, should no line be added to the transcript for long. */
  static void watch(Transcript out) {
    Thread main = Thread.currentThread();
    CLOCK.scheduleWithFixedDelay(() -> {
      if (out.silentForS() > SILENCE_S) {
        out.line("BROKEN OFF: silent for " + SILENCE_S + " s");
        for (StackTraceElement at : main.getStackTrace()) {
          out.line("  at " + at);
        }
        Runtime.getRuntime().halt(3);
      }
    }, 10, 10, TimeUnit.SECONDS);
  }
}
