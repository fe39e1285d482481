"""The part `starts`: time to the first response, after an empty start and after `kill -9`; and
memory when idle.

In an empty cluster the first response is the master's list of tables. After the kill it is the
region server's response to a get of a row in the middle of the table, which requires that the
region was opened and its log replayed. Nothing was flushed before: the part checks that there is no
store file. Target: Grampus recovers every row.

HBase stores into a local directory and never syncs: what its process has written to the kernel
survives the process, but not a power loss. The number of rows that it recovers is reported.
"""
import re
import time
from contextlib import ExitStack

import cores
import limits
import probe
import process
import question
import storefiles
import subject
from generator import Generator, address
from javatools import die
from record import Record, aligned
from steps import Table

# A memstore limit that is never reached.
UNFLUSHED = {"hbase.hregion.memstore.flush.size": 8 << 30}
NAMES = ("hbase", "grampus")
# Each measurement of a run, its label, and its decimal places.
FIGURES = (("start_ms", "empty start to the first response, ms", 0),
           ("start_asking_ms", "time of one request then, ms", 2),
           ("idle_mib", "resident when idle, MiB", 0),
           ("recovery_ms", "kill -9 to the response to a get, ms", 0),
           ("recovery_asking_ms", "time of one request then, ms", 2),
           ("rows_again", "recovered rows", 0))


class Starts:
    """Alternates between both servers, each in a fresh directory."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "starts")
        self._table = Table("killed", arguments.unflushed_rows, 100)

    def run(self):
        """Measures and returns the missed targets."""
        complaints = []
        for run in range(1, self._arguments.runs + 1):
            for name in NAMES:
                figures, wrong = self._measure(name)
                complaints += wrong
                self._record.add(server=name, run=run, **figures)
                print(f"  {name:8} run {run}: first response after {figures['start_ms']:,.0f} ms, after kill -9 "
                      f"{figures['recovery_ms']:,.0f} ms; idle {figures['idle_mib']:.0f} MiB", flush=True)
        self._record.write(self.lines())
        return complaints

    def _measure(self, name):
        with ExitStack() as until_end:
            with cores.of_servers():
                started = until_end.enter_context(self._server(name))
            figures = {**self._start(started), **self._idle(started)}
            self._fill(started)
            wrong = [f"{name}: {path} was flushed before the kill" for path in storefiles.of(started, self._table.name)]
            figures |= self._recover(started)
            if name == "grampus" and figures["rows_again"] != self._table.rows:
                wrong.append(f"{figures['rows_again']} of {self._table.rows} rows were recovered")
            return figures, wrong

    def _server(self, name):
        if name == "hbase":
            return subject.hbase(self._arguments.hbase_heap, UNFLUSHED, wait=False)
        settings = {"grampus.memory": self._arguments.memory, **UNFLUSHED}
        return subject.grampus(self._arguments.grampus, settings=settings, wait=False)

    def _start(self, server):
        tables = question.tables(server.endpoint)
        answered_at = probe.first_answer(server, tables)
        return {"start_ms": (answered_at - server.server.begun) * 1e3, "start_asking_ms": probe.cost_s(tables) * 1e3}

    def _idle(self, server):
        time.sleep(self._arguments.idle_seconds)
        return {"idle_mib": process.resident_mib(server.server.pid)}

    def _fill(self, server):
        self._generator.run(server, "sequentialWrite", *self._table.options(), "--clients", 4, "--batch", 1000)

    def _recover(self, server):
        row = question.row(server.endpoint, self._region(server), f"{self._table.rows // 2:026}".encode())
        if not row.is_answered():
            die(f"{server.name} did not answer a get even before it was killed; its log: {server.server.log}")
        killed_at = time.monotonic()
        server.kill()
        with cores.of_servers():
            server.start_again()
        answered_at = probe.first_answer(server, row)
        return {"recovery_ms": (answered_at - killed_at) * 1e3, "recovery_asking_ms": probe.cost_s(row) * 1e3,
                "rows_again": self._count(server)}

    def _region(self, server):
        """The name of the table's only region."""
        return re.search(rf"{self._table.name},,\d+\.[0-9a-f]{{32}}\.", self._say(server, "scan 'hbase:meta'")).group()

    def _count(self, server):
        said = self._say(server, f"count '{self._table.name}', INTERVAL => {self._table.rows + 1}, CACHE => 10000")
        return int(re.search(r"(\d+) row\(s\)", said).group(1))

    def _say(self, server, command):
        return limits.run([self._arguments.grampus, "shell", *address(server), "-e", command])

    def lines(self):
        """The table."""
        arguments = self._arguments
        yield (f"starts on one core, medians of {arguments.runs}; HBase with {arguments.hbase_heap} of heap, Grampus with "
               f"{arguments.memory}; {self._table.rows:,} rows of {self._table.value_bytes} B in the log; accuracy 1 ms or "
               "1 %, whichever is more")
        yield from aligned([["", *NAMES], *(self._row(*figure) for figure in FIGURES)])

    def _row(self, figure, told, digits):
        medians = (self._record.median(lambda run: run[figure], server=name) for name in NAMES)
        return [told, *(f"{median:,.{digits}f}" for median in medians)]
