"""The programs of compat/cluster: long-running clients that are controlled through pipes."""
import os
import queue
import shutil
import subprocess
import sys
import threading
import time

from javatools import COMPAT, SERVER_OPENS, TARGET, conf_directory, hbase_class_path, java, maven


def class_path():
    """HBase and its tools, the programs of compat/cluster, and HBase's integration tests."""
    output = os.path.join(TARGET, "cluster-clients")
    maven(os.path.join(COMPAT, "cluster"), output)
    return f"{output}/classes:{output}/lib/*:{hbase_class_path()}"


class Program:
    """A running program: its lines of output can be awaited, and lines can be sent to it."""

    def __init__(self, endpoint, main_class, *arguments, heap="512m", settings=None, log=None, level="error"):
        self.name = main_class.rpartition(".")[2]
        self._conf = conf_directory({**endpoint.settings("zk"), **(settings or {})}, level)
        self.log = log or os.path.join(self._conf, "log")
        command = [java(), *SERVER_OPENS, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp",
                   f"{self._conf}:{class_path()}", main_class, *map(str, arguments)]
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(command, cwd=self._conf, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, text=True, errors="replace", start_new_session=True)
        # All lines that were not awaited.
        self.lines = []
        self._unread = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self._conf, ignore_errors=True)

    def _read(self):
        for line in self.process.stdout:
            self._unread.put(line.rstrip("\n"))
        self._unread.put(None)

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def await_line(self, start, patience_s):
        """The words of the next line that begins with `start`, without it; None if the time passes."""
        for at, line in enumerate(self.lines):
            if line.startswith(start):
                return self.lines.pop(at)[len(start):].split()
        end = time.monotonic() + patience_s
        while True:
            try:
                line = self._unread.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            if line is None:
                raise RuntimeError(f"{self.name} ended; see {self.log}")
            if line.startswith(start):
                return line[len(start):].split()
            self.lines.append(line)

    def finish(self, patience_s=300):
        """Ends its input, waits for its end, and returns all its lines that were not awaited."""
        self.process.stdin.close()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            print(f"{self.name} did not end within {patience_s} s; see {self.log}", file=sys.stderr)
            self.process.kill()
        while (line := self._unread.get(timeout=60)) is not None:
            self.lines.append(line)
        return self.lines


def call(endpoint, main_class, *arguments, patience_s=1800, heap="1g", settings=None):
    """Runs a program to its end; returns its lines."""
    with Program(endpoint, main_class, *arguments, heap=heap, settings=settings) as program:
        lines = program.finish(patience_s)
        if program.process.returncode:
            with open(program.log, errors="replace") as log:
                end = "".join(log.readlines()[-20:])
            raise RuntimeError(f"{program.name} {' '.join(map(str, arguments))} failed: {lines[-5:]}\n{end}")
        return lines


def numbers(line):
    """`name=NUMBER` words as a dictionary."""
    return {name: int(value) for name, value in (word.split("=") for word in line.split())}
