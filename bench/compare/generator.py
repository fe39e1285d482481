"""The load generator, `grampus bench`: starts it and reads its measurements."""
import json
import os
import subprocess
import tempfile

from javatools import die


def address(server):
    """Options of the load generator, and of the shell, that select a server."""
    if server.name == "echo":
        return ["--echo", server.at]
    return ["--zookeeper", f"{server.endpoint.host}:{server.endpoint.zookeeper}"]


class Generator:
    """Runs of `grampus bench`, one at a time."""

    def __init__(self, arguments):
        self._binary = arguments.grampus

    def run(self, server, *words):
        """Runs it once and returns the measurements."""
        return self.start(server, *words).wait()

    def start(self, server, *words):
        """Starts a run and returns while it is in progress."""
        return Run(self.command(server, *words), server.server.pid)

    def load(self, server, table):
        """Creates a table for reads: written once, flushed and compacted."""
        self.run(server, "sequentialRead", "--load", *table.options(), "--clients", 4, "--batch", 1000)

    def command(self, server, *words):
        """The command line of a run, for callers that start it themselves."""
        return [self._binary, "bench", *map(str, words), *address(server)]


class Run:
    """A run in progress."""

    def __init__(self, command, server_pid):
        self._command = command
        self._directory = tempfile.TemporaryDirectory()
        self._file = os.path.join(self._directory.name, "run.json")
        self._process = subprocess.Popen([*command, "--server-pid", str(server_pid), "--json", self._file],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def ended(self):
        """Whether it has ended."""
        return self._process.poll() is not None

    def end(self):
        """Ends it and discards its measurements."""
        self._process.terminate()
        self._process.wait()

    def wait(self):
        """Waits for it and returns the measurements."""
        _, errors = self._process.communicate()
        if self._process.returncode:
            die(f"{' '.join(self._command)} failed:\n{errors.strip()}")
        with self._directory, open(self._file) as lines:
            return json.loads(lines.read().splitlines()[-1])
