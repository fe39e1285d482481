"""The load generator, `grampus bench`: started, and what it measured read."""
import json
import os
import tempfile

import limits


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
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "run.json")
            limits.run([*self.command(server, *words), "--server-pid", str(server.server.pid), "--json", file])
            with open(file) as lines:
                return json.loads(lines.read().splitlines()[-1])

    def load(self, server, table):
        """Makes a table that is read: written once, flushed and compacted."""
        self.run(server, "sequentialRead", "--load", *table.options(), "--clients", 4, "--batch", 1000)

    def command(self, server, *words):
        """The command line of a run that nobody waits for here."""
        return [self._binary, "bench", *map(str, words), *address(server)]
