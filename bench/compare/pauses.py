"""The part `pauses`: the p99.9 of gets at half of a server's capacity, while it flushes and
compacts.

Gets are sent at a fixed rate, and each is timed from the moment it was due. Grampus is measured at
two rates: half of HBase's capacity, which compares the two, and half of its own. The echo at both
rates shows the machine's share. Target: at HBase's rate, at most a tenth of HBase's latency. A
smaller gain is reported but is not a failure, because it depends on what else the machine does.
"""
from generator import Generator
from record import Record, aligned
from session import Session
from steps import Table
from upkeep import Upkeep

CLIENTS = 75
# The measured server, and the server whose capacity gives the rate (half of it).
LOADS = (("hbase", "hbase"), ("grampus", "hbase"), ("echo", "hbase"), ("grampus", "grampus"), ("echo", "grampus"))
WANTED = 10


class Pauses:
    """Gets at a rate, with concurrent upkeep."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "pauses")
        self._table = Table("paused", arguments.rows, 100)
        self._saturation = {}

    def run(self):
        """Measures and returns what went wrong."""
        complaints = []
        with Session(self._arguments) as session:
            for server in session.both:
                print(f"{server.name}: filling {self._table.rows:,} rows", flush=True)
                self._generator.load(server, self._table)
            print(f"hbase: warming up for {self._arguments.warm} s", flush=True)
            # With upkeep, so that its code is warm too.
            with Upkeep(self._arguments.grampus, session.hbase, self._table.name):
                self._generator.run(session.hbase, *self._gets(), "--seconds", self._arguments.warm)
            for server in session.both:
                got = self._generator.run(server, *self._gets(), "--seconds", self._arguments.pause_seconds)
                self._saturation[server.name] = got["rows_per_second"]
                print(f"  {server.name:8} saturated: {got['rows_per_second']:,.0f} gets/s", flush=True)
            for run in range(1, self._arguments.runs + 1):
                for name, of in LOADS:
                    echo = session.echo(self._table.got_bytes())
                    complaints += self._measure(echo if name == "echo" else getattr(session, name), of, run)
        self._record.write(self.lines())
        return complaints

    def _gets(self):
        return ["randomRead", *self._table.options(), "--clients", CLIENTS]

    def _measure(self, server, of, run):
        load = ["--rate", self._saturation[of] / 2, "--seconds", self._arguments.pause_seconds]
        if server.name == "echo":
            got = self._generator.run(server, "echo", "--clients", CLIENTS, *load)
            return self._keep(server, of, run, got)
        with Upkeep(self._arguments.grampus, server, self._table.name) as upkeep:
            got = self._generator.run(server, *self._gets(), *load)
        done = {what: getattr(upkeep, what) for what in ("written", "flushes", "compactions")}
        self._keep(server, of, run, got, **done)
        if not upkeep.complaints and not upkeep.compactions:
            return [f"{server.name}: no compaction ended in a run of pauses; --pause-seconds is too short"]
        return upkeep.complaints

    def _keep(self, server, of, run, got, **done):
        self._record.add(server=server.name, half_of=of, run=run, saturation=self._saturation[of], **done, **got)
        print(f"  {server.name:8} at half of {of}'s, run {run}: {got['rows_per_second']:9,.0f} gets/s, p50 "
              f"{got['latency_us']['p50']:8,.0f} us, p999 {got['latency_us']['p999']:9,.0f} us "
              + ", ".join(f"{number} {what}" for what, number in done.items()), flush=True)
        return []

    def lines(self):
        """The table."""
        yield (f"gets of 100 B at half of saturation, {CLIENTS} clients, {self._table.rows:,} rows, while the table is "
               f"written, flushed and compacted; medians of {self._arguments.runs} runs of "
               f"{self._arguments.pause_seconds:g} s")
        yield from aligned([["half of", "server", "gets/s due", "gets/s", "p50 us", "p99 us", "p999 us", "max us", "flushes",
                             "compactions"], *(self._row(name, of) for name, of in LOADS)])
        yield f"p999 of HBase at its half, divided by that of Grampus at the same rate: {self._gain():.1f} (target: {WANTED})"

    def _row(self, name, of):
        latencies = (self._latency(name, of, which) for which in ("p50", "p99", "p999", "max"))
        # An echo has no upkeep.
        upkeep = (self._of(name, of, lambda run: run.get(what, 0)) for what in ("flushes", "compactions"))
        figures = [self._saturation[of] / 2, self._of(name, of, lambda run: run["rows_per_second"]), *latencies, *upkeep]
        return [of, name, *(f"{figure:,.0f}" for figure in figures)]

    def _of(self, server, of, figure):
        return self._record.median(figure, server=server, half_of=of)

    def _latency(self, server, of, which):
        return self._of(server, of, lambda run: run["latency_us"][which])

    def _gain(self):
        return self._latency("hbase", "hbase", "p999") / self._latency("grampus", "hbase", "p999")
