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
 * Limits how long a client may be silent.
 *
 * <p>The scanners of hbase-client 3.0.0-beta-1 can hang, with any server that responds fast: if the
 * first response of the next region's scanner arrives before the client listens for it, {@code
 * AsyncTableResultScanner} loses the callback that resumes it, and waits forever (renewing its
 * lease meanwhile). So a read that hangs is repeated. A server that does not respond is recognized
 * by the fifth hang of a run.
 */
final class Patience {
  private static final long READ_S = 30;
  private static final int REPEATS_MAX = 4;
  private static final long SILENCE_S = 240;

  private static final ScheduledExecutorService CLOCK = Executors.newScheduledThreadPool(1, task -> {
    Thread thread = new Thread(task, "patience");
    thread.setDaemon(true);
    return thread;
  });

  private static int repeats;

  private Patience() {
  }

  /** Returns the result of `read`, and repeats it if it hangs. */
  static <T> T read(Callable<T> read) throws Exception {
    while (true) {
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
          // The alarm may have come between the response and this point.
          Thread.interrupted();
        }
      }
      repeats++;
      System.err.println("a read hung in the client and is repeated");
    }
  }

  /**
   * Ends the program and prints where it hangs, if the transcript has no new line for a long time.
   */
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
