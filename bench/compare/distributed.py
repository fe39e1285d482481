"""The part `hdfs`: both servers on the same HDFS of one NameNode and three DataNodes.

Each is a cluster of one master and one region server, with a root directory of its own. CPU time is
that of the region server; latencies are those of the load generator. Writes are measured twice: with
each server's default (hflush), and with `hbase.wal.hsync` (hsync). After the tables were filled, the
region servers are restarted, so that their block caches are empty; cold gets and scans do not fill
them (setCacheBlocks(false)). The DataNodes have the blocks in the page cache. The limits are the same
reads on a local disk, and for a put the commit of one row to a log without a region server.
"""
from contextlib import ExitStack

import cluster
import cores
import hdfs
import limits
import subject
from generator import Generator
from record import Record, aligned
from steps import Table

VALUE_BYTES = 1_000
STEPS = [
    ("put, 1 client", ["randomWrite", "--clients", 1], "written"),
    ("put, 10 clients", ["randomWrite", "--clients", 10], "written"),
    ("buffered write", ["randomWrite", "--clients", 1, "--batch", 1000], "written"),
    ("cold get", ["randomRead", "--clients", 10, "--uncached"], "cold"),
    ("cached get", ["randomRead", "--clients", 10], "cached"),
    ("cold scan", ["scan", "--clients", 1, "--uncached"], "cold"),
]
SYNC = {False: "hflush", True: "hsync"}
WRITES = [step for step in STEPS if step[2] == "written"]


class Distributed:
    """Reads and writes on HDFS, alternating between both servers."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "hdfs")
        # The latencies of commits, of hflush and hsync.
        self._commits = {}

    def run(self):
        """Measures; there are no targets."""
        with ExitStack() as started:
            with cores.on_all():
                storage = started.enter_context(hdfs.Hdfs(datanodes=3))
            for hsync in (False, True):
                with cores.of_servers():
                    self._commits[SYNC[hsync]] = limits.pipeline_us(self._arguments.limits, storage, VALUE_BYTES, hsync)
                print(f"commit without a region server, {SYNC[hsync]}: {self._commits[SYNC[hsync]]}", flush=True)
                with ExitStack() as servers:
                    self._measure_all(self._start(servers, storage, hsync), hsync)
        self._record.write(self.lines())
        return []

    def _start(self, servers, storage, hsync):
        on, size = hdfs.Started(storage), {"masters": 1, "region_servers": 1}
        settings = {"hbase.wal.hsync": str(hsync).lower()}
        with cores.of_servers():
            started = [
                cluster.HBase(hdfs=on, heap=self._arguments.hbase_heap, settings=settings, **size),
                cluster.Grampus(self._arguments.grampus, hdfs=on, memory=self._arguments.memory, settings=settings,
                                root_name="grampus", **size),
            ]
            # Without HDFS: the limit of cached reads.
            if not hsync:
                started.append(subject.grampus(self._arguments.grampus, settings={"grampus.memory": self._arguments.memory}))
                started[-1].name = "local"
            return [servers.enter_context(server) for server in started]

    def _measure_all(self, servers, hsync):
        steps = WRITES if hsync else STEPS
        for server in servers:
            for name in sorted({step[2] for step in steps}):
                print(f"{server.name}: filling {name}", flush=True)
                # After a restart the tables exist.
                self._generator.load(server, self._table(name))
        for server in servers:
            _empty_cache(server)
        for server in servers:
            if server.name == "hbase":
                self._warm(server, steps)
        for name, words, table in steps:
            for run in range(1, self._arguments.runs + 1):
                for server in servers:
                    got = self._generator.run(server, *words, *self._table(table).options(), "--seconds", self._arguments.seconds)
                    sync = f", {SYNC[hsync]}" if table == "written" else ""
                    self._record.add(server=server.name, step=name + sync, run=run, **got)
                    print(f"  {server.name:8} {name + sync}: {got['rows_per_second']:9,.0f} rows/s "
                          f"{got['server_cpu_us_per_row']:8.2f} us CPU per row", flush=True)

    def _warm(self, server, steps):
        seconds = max(1, self._arguments.warm // len(steps))
        print(f"{server.name}: warming up for {seconds * len(steps)} s", flush=True)
        for _, words, table in steps:
            self._generator.run(server, *words, *self._table(table).options(), "--seconds", seconds)

    def _table(self, name):
        return Table(name, self._arguments.rows // 10 if name != "cold" else self._arguments.rows, VALUE_BYTES)

    def lines(self):
        """The table."""
        yield "both servers on one HDFS with 3 DataNodes, rows of 1 KB; medians; `local` is Grampus on a local disk"
        rows = [["step", "server", "rows/s", "CPU us per row", "HBase / this", "p50 us", "p99 us"]]
        for step in dict.fromkeys(run["step"] for run in self._record.runs):
            for server in ("hbase", "grampus", "local"):
                if any(run["step"] == step and run["server"] == server for run in self._record.runs):
                    rows.append(self._row(step, server))
        yield from aligned(rows)
        for sync, us in self._commits.items():
            yield f"commit of one row without a region server, {sync}: p50 {us['p50']:,.0f} us, p99 {us['p99']:,.0f} us"

    def _row(self, step, server):
        of = lambda figure, server=server: self._record.median(lambda run: run[figure], step=step, server=server)
        cpu = of("server_cpu_us_per_row")
        p50, p99 = (self._record.median(lambda run: run["latency_us"][which], step=step, server=server) for which in ("p50", "p99"))
        ratio = f"{of('server_cpu_us_per_row', 'hbase') / cpu:.2f}"
        return [step, server, f"{of('rows_per_second'):,.0f}", f"{cpu:.2f}", ratio, f"{p50:,.0f}", f"{p99:,.0f}"]


def _empty_cache(server):
    """Restarts the server that has the tables."""
    with cores.of_servers():
        if hasattr(server, "start_again"):
            server.kill()
            server.start_again()
        else:
            server.restart(server.region_servers[0])
            server.wait_until_serving(server.patience_s)
