"""Runs HBase's own tools (2.5.10), mainly PerformanceEvaluation with threads in one JVM, and parses
their output."""
import os
import re
import shutil
import subprocess

from javatools import SERVER_OPENS, client_class_path, conf_directory, hbase_class_path, java

# Words of a log that indicate a failure. After some failures PerformanceEvaluation still exits with
# 0.
TROUBLE = re.compile(r"Exception|\bERROR\b|\bFATAL\b|Caused by")


class Outcome:
    """One run: its exit code, the failures in its log, and the time of its clients."""

    def __init__(self, code, text, operations):
        self.code = code
        self.text = text
        # The lines of a stack do not count: methods may be named after exceptions.
        self.troubles = [line for line in text.splitlines() if TROUBLE.search(line) and not line.startswith("\tat ")]
        timing = re.search(r"duration \]\s+Min: \d+ms\s+Max: (\d+)ms\s+Avg: (\d+)ms", text)
        self.milliseconds = int(timing.group(2)) if timing else None
        self.operations = operations

    def good(self):
        return self.code == 0 and not self.troubles and self.milliseconds is not None

    def per_second(self):
        return self.operations * 1000 / self.milliseconds if self.milliseconds else float("nan")


def run(endpoint, command, clients, rows, operations=None, options=(), patience_s=3600, heap="2g", started=None):
    """Runs `command` with `rows` rows per client; `operations` is the count of operations, if not
    rows times clients."""
    code, text = program(endpoint, "org.apache.hadoop.hbase.PerformanceEvaluation", "--nomapred", f"--rows={rows}",
                         *options, command, str(clients), patience_s=patience_s, heap=heap,
                         started=started)
    return Outcome(code, text, operations or rows * clients)


def program(endpoint, main_class, *arguments, patience_s=3600, heap="2g", started=None):
    """Runs a tool of HBase; returns its exit code and all its output. `started` is called with the
    process."""
    conf = conf_directory(endpoint.settings("zk"), "info")
    command = [java(), *SERVER_OPENS, f"-Xmx{heap}", "-XX:-UsePerfData", "-cp", f"{conf}:{hbase_class_path()}",
               main_class]
    with subprocess.Popen([*command, *arguments], cwd=conf, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as process:
        try:
            if started:
                started(process)
            text, _ = process.communicate(timeout=patience_s)
        except BaseException:
            process.kill()
            raise
    shutil.rmtree(conf, ignore_errors=True)
    return process.returncode, text


def tool(endpoint, *arguments, patience_s=1800):
    """Runs compat.Tool and returns its output."""
    conf = conf_directory(endpoint.settings("zk"), "error")
    done = subprocess.run([java(), "-Xmx1g", "-cp", f"{conf}:{client_class_path('2.5.10')}", "compat.Tool", *arguments],
                          stdout=subprocess.PIPE, text=True, timeout=patience_s)
    shutil.rmtree(conf, ignore_errors=True)
    if done.returncode:
        raise RuntimeError(f"compat.Tool {' '.join(arguments)} failed")
    return done.stdout.strip()
