package compat;

import java.io.PrintStream;
import java.util.concurrent.Callable;

/** The output of a run: one line for each observation, indented lines for its details. */
final class Transcript {
  /** An action that is run for its effect; only its success or failure is recorded. */
  interface Action {
    void run() throws Exception;
  }

  private final PrintStream out;
  private volatile long lastLineNs = System.nanoTime();

  Transcript(PrintStream out) {
    this.out = out;
  }

  void suite(String name) {
    line("## " + name);
  }

  void topic(String name) {
    line("# " + name);
  }

  void line(String text) {
    lastLineNs = System.nanoTime();
    out.println(text);
    out.flush();
  }

  /** Seconds since the last line. */
  long silentForS() {
    return (System.nanoTime() - lastLineNs) / 1_000_000_000;
  }

  /** Records the result of `question`, or the class of its exception. */
  void see(String step, Callable<?> question) {
    see(step, question, false);
  }

  /** As {@link #see}, including the exception's message. */
  void seeMessage(String step, Callable<?> question) {
    see(step, question, true);
  }

  /** Records that `action` succeeds, or the class of its exception. */
  void does(String step, Action action) {
    see(step, () -> {
      action.run();
      return "ok";
    }, false);
  }

  /** As {@link #does}, including the exception's message. */
  void doesMessage(String step, Action action) {
    see(step, () -> {
      action.run();
      return "ok";
    }, true);
  }

  private void see(String step, Callable<?> question, boolean message) {
    String answer;
    long start = System.nanoTime();
    try {
      answer = Show.value(question.call());
    } catch (Throwable thrown) {
      answer = message ? Show.exceptionWithMessage(thrown) : Show.exception(thrown);
      if (System.getenv("COMPAT_TRACE") != null) {
        thrown.printStackTrace();
      }
    }
    long tookMs = (System.nanoTime() - start) / 1_000_000;
    if (tookMs > SLOW_MS) {
      System.err.println("slow: " + tookMs + " ms: " + step);
    }
    line(step + ": " + answer);
  }

  /**
   * Reports steps that take long on standard error, so that a client stuck in retries is noticed.
   */
  private static final long SLOW_MS = 3000;
}
