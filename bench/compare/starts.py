"""The part `starts`: how soon a server answers, from nothing and after `kill -9`; and what it takes when it has nothing to do.

The first answer is that to `list` in an empty cluster, and to a get after the kill, of a row half way in the table; its region must have
been opened, and so its log replayed. Nothing was flushed before: there is no store file, which is looked at. Demanded is that Grampus
has every row again.

HBase stores into a local directory. Of what its usual class for that, which keeps checksums, has been told to make
durable, some stays in the process; so it has here the class below it, with which every edit has left the process when it is
acknowledged. Without that it would have less to recover, and lose rows.
"""
import re
import time

import cores
import limits
import process
import storefiles
import subject
from generator import Generator, address
from probe import Probe
from record import Record
from steps import Table

RAW_FILES = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
# Of a memstore; more than there is.
UNFLUSHED = {"hbase.hregion.memstore.flush.size": 8 << 30}
NAMES = ("hbase", "grampus")
# Each figure of a run, and how it is told.
FIGURES = (("port_ms", "empty start to an open port, ms"), ("start_ms", "empty start to the first answer, ms"),
           ("start_probe_ms", "  of which asking takes, ms"), ("idle_mib", "resident when idle, MiB"),
           ("recovery_port_ms", "kill -9 to an open port, ms"), ("recovery_ms", "kill -9 to the answer of a get, ms"),
           ("recovery_probe_ms", "  of which asking takes, ms"), ("rows_again", "rows that are there again"))


class Starts:
    """Both servers in turns, each in a fresh directory."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "starts")
        self._table = Table("killed", arguments.unflushed_rows, 100)

    def run(self):
        """Measures; what was demanded and is not so."""
        complaints = []
        for run in range(1, self._arguments.runs + 1):
            for name in NAMES:
                figures, wrong = self._measure(name)
                complaints += wrong
                self._record.add(server=name, run=run, **figures)
                print(f"  {name:8} run {run}: " + ", ".join(f"{what} {figure:,.0f}" for what, figure in figures.items()), flush=True)
        self._record.write(self.lines())
        return complaints

    def _measure(self, name):
        with cores.of_servers():
            started = self._server(name).__enter__()
        try:
            figures = {**self._start(started), **self._idle(started)}
            self._fill(started)
            wrong = [f"{name}: {path} was flushed before the kill" for path in storefiles.of(started, self._table.name)]
            figures |= self._recover(started)
            if name == "grampus" and figures["rows_again"] != self._table.rows:
                wrong.append(f"{figures['rows_again']} rows are there again, of {self._table.rows}")
            return figures, wrong
        finally:
            started.__exit__(None, None, None)

    def _server(self, name):
        if name == "hbase":
            return subject.hbase(self._arguments.hbase_heap, {**UNFLUSHED, **RAW_FILES}, wait=False)
        settings = {"grampus.memory": self._arguments.memory, **UNFLUSHED}
        return subject.grampus(self._arguments.grampus, settings=settings, wait=False)

    def _start(self, server):
        probe = Probe(self._arguments.grampus, server, "list", "row(s)")
        open_at, answered_at = probe.first_answer()
        begun = server.server.begun
        return {"port_ms": (open_at - begun) * 1e3, "start_ms": (answered_at - begun) * 1e3,
                "start_probe_ms": probe.cost_s() * 1e3}

    def _idle(self, server):
        time.sleep(self._arguments.idle_seconds)
        return {"idle_mib": process.resident_mib(server.server.pid)}

    def _fill(self, server):
        self._generator.run(server, "sequentialWrite", *self._table.options(), "--clients", 4, "--batch", 1000)

    def _recover(self, server):
        row = f"{self._table.rows // 2:026}"
        probe = Probe(self._arguments.grampus, server, f"get '{self._table.name}', '{row}'", "value=")
        killed_at = time.monotonic()
        server.kill()
        with cores.of_servers():
            server.start_again()
        open_at, answered_at = probe.first_answer()
        return {"recovery_port_ms": (open_at - killed_at) * 1e3, "recovery_ms": (answered_at - killed_at) * 1e3,
                "recovery_probe_ms": probe.cost_s() * 1e3, "rows_again": self._count(server)}

    def _count(self, server):
        said = limits.run([self._arguments.grampus, "shell", *address(server), "-e",
                           f"count '{self._table.name}', INTERVAL => {self._table.rows + 1}, CACHE => 10000"])
        return int(re.search(r"(\d+) row\(s\)", said).group(1))

    def lines(self):
        """The table."""
        yield (f"starts on one core, medians of {self._arguments.runs}; HBase with {self._arguments.hbase_heap} of heap, Grampus with "
               f"{self._arguments.memory}; {self._table.rows:,} rows of {self._table.value_bytes} B in the log; exact to 5 ms or, if "
               "that is more, 5 %")
        yield f"{'':40} {'HBase':>11} {'Grampus':>11}"
        for figure, told in FIGURES:
            hbase, grampus = (self._record.median(lambda run: run[figure], server=name) for name in NAMES)
            yield f"{told:40} {hbase:11,.0f} {grampus:11,.0f}"
