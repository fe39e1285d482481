"""The load generator, `grampus bench`: started, and what it measured read."""
import json
import os
import subprocess
import tempfile

from javatools import die


def address(server):
    """Options of the load generator, and of the shell, that lead to a server."""
    if server.name == "echo":
        return ["--echo", server.at]
    return ["--zookeeper", f"{server.endpoint.host}:{server.endpoint.zookeeper}"]


class Generator:
    """Runs of `grampus bench`, one at a time."""

    def __init__(self, arguments):
        self._binary = arguments.grampus

    def run(self, server, *words):
        """One run; what it measured."""
        return self.start(server, *words).wait()

    def start(self, server, *words):
        """A run that goes on while the caller does other things."""
        return Run(self.command(server, *words), server.server.pid)

    def load(self, server, table):
        """Makes a table that is read: written once, flushed and compacted."""
        self.run(server, "sequentialRead", "--load", *table.options(), "--clients", 4, "--batch", 1000)

    def command(self, server, *words):
        """The command line of a run that nobody waits for here."""
        return [self._binary, "bench", *map(str, words), *address(server)]


class Run:
    """One that was started, to be waited for or ended."""

    def __init__(self, command, server_pid):
        self._command = command
        self._directory = tempfile.TemporaryDirectory()
        self._file = os.path.join(self._directory.name, "run.json")
        self._process = subprocess.Popen([*command, "--server-pid", str(server_pid), "--json", self._file],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def ended(self):
        """Whether it is through."""
        return self._process.poll() is not None

    def end(self):
        """Ends it; what it measured is lost."""
        self._process.terminate()
        self._process.wait()

    def wait(self):
        """What it measured."""
        _, errors = self._process.communicate()
        if self._process.returncode:
            die(f"{' '.join(self._command)} failed:\n{errors.strip()}")
        with self._directory, open(self._file) as lines:
            return json.loads(lines.read().splitlines()[-1])
