"""The part `records`: `SELECT sum(A) WHERE B = c GROUP BY D` over records of 91 attributes, each a
column.

Both servers have the same records in the same number of regions, all blocks in memory (HBase's in
an off-heap bucket cache), and all cores, which they share with the client. The servers are measured
one after the other, because the data of both would not fit in memory:

  scan      the client scans the columns that the query needs, 1,000 rows per call, all regions in parallel, and adds
            them up: both servers
  endpoint  HBase's AggregateService computes the sum of one attribute over all rows, without a condition: both servers
  columns   Grampus's ColumnService runs the query: first over attributes that were never queried, whose blocks are
            cached (first touch), then again (warm)

All results are compared with those of the records' generator. The output is rows per second and the
server's CPU time.
"""
import json
import subprocess

import cores
import pages
import subject
from generator import address
from javatools import die
from record import Record, aligned

TABLE = "records"
ATTRIBUTES = 91
REGIONS = 8
# The attributes cycle through 10, 100, 1,000, 10,000, 1,000,000 and 2^32 distinct values: the query
# selects every tenth record, has a hundred groups, and sums an attribute of a million values.
TURN = 6
SUM, ONLY, GROUP = 4, 6, 1
# Repetitions of the query once its vectors exist.
WARM_RUNS = 20
# Targets: rows per second, and ratios of rows per second.
WANTED = {"warm": 10_000_000, "first touch": 400_000, "warm / HBase scan": 50, "warm / HBase endpoint": 20}
# Bytes of a cell in a block: lengths, key, family, qualifier, timestamp, type, value, sequence
# number.
CELL_BYTES = 45


class Records:
    """One query, run in several ways."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._rows = arguments.records_rows
        self._record = Record(arguments.out, "records")

    def run(self):
        """Measures and returns the missed targets."""
        with cores.on_all():
            with self._hbase() as hbase:
                self._prepare(hbase)
                self._measure_old_ways(hbase)
            with self._grampus() as grampus:
                self._prepare(grampus)
                self._measure_columns(grampus)
                self._measure_old_ways(grampus)
        self._record.write(self.lines())
        return [f"records: {name} is {got:,.3g}, the target is {WANTED[name]:,}"
                for name, got in self._got().items() if got < WANTED[name]]

    def _cached_mib(self):
        return int(self._rows * ATTRIBUTES * CELL_BYTES * 1.15) // (1 << 20) + 512

    def _hbase(self):
        cached = self._cached_mib()
        settings = {"hbase.bucketcache.ioengine": "offheap", "hbase.bucketcache.size": cached}
        return subject.hbase(self._arguments.hbase_heap, settings, pages=True,
                             jvm=[f"-XX:MaxDirectMemorySize={cached + 1024}m"])

    def _grampus(self):
        # At least half of it is for blocks and vectors.
        return subject.grampus(self._arguments.grampus, settings={"grampus.memory": f"{self._cached_mib() * 3 // 2} MiB"})

    def _prepare(self, server):
        """Creates the table and loads its blocks into the cache."""
        print(f"{server.name}: writing {self._rows:,} records of {ATTRIBUTES} attributes", flush=True)
        self._ask(server, "load", "--regions", REGIONS, "--coprocessor")
        misses = None
        while misses is None or (server.name == "hbase" and _misses(server) > misses):
            # At least twice; and until HBase's cache, which drops blocks while it is busy, has all
            # blocks.
            misses = _misses(server)
            for line in self._ask(server, "scan", "endpoint", runs=2):
                print(f"  {server.name:8} warming up, {line['step']}: {line['rows_per_second']:12,.0f} rows/s", flush=True)

    def _measure_old_ways(self, server):
        for way in ("scan", "endpoint"):
            misses = _misses(server)
            lines = self._ask(server, way, runs=self._arguments.runs)
            for line in lines:
                self._keep(server, way, line, blocks_missed=_misses(server) - misses)

    def _measure_columns(self, server):
        for run in range(self._arguments.runs):
            # Attributes of the same kinds, and so the same work, that have no vectors yet.
            first, *warm = self._ask(server, "columns", runs=1 + WARM_RUNS, turn=run + 1)
            if first["vectors_built"] == 0 or any(line["vectors_built"] for line in warm):
                die(f"vectors were not built exactly at first touch: {first}")
            self._keep(server, "first touch", first)
            for line in warm:
                self._keep(server, "warm", line)

    def _ask(self, server, *steps, runs=1, turn=0):
        attributes = [at + turn * TURN for at in (SUM, ONLY, GROUP)]
        words = [self._arguments.records, *steps, "--rows", self._rows, "--attributes", ATTRIBUTES, "--table", TABLE,
                 "--sum", attributes[0], "--only", f"{attributes[1]}=3", "--group-by", attributes[2], "--runs", runs,
                 "--server-pid", server.server.pid, "--json", *address(server)]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode:
            die(f"{' '.join(map(str, words))} failed:\n{done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _keep(self, server, way, line, **more):
        self._record.add(server=server.name, way=way, **line, **more)
        print(f"  {server.name:8} {way:11} {line['rows_per_second']:14,.0f} rows/s, "
              f"{_cpu_us(line):8.3f} us CPU per row", flush=True)

    def lines(self):
        """The table."""
        yield (f"SELECT sum(A), count(*) WHERE B = c GROUP BY D over {self._rows:,} records of {ATTRIBUTES} attributes in "
               f"{REGIONS} regions, all in memory; medians. The endpoint computes only the sum of A")
        ways = [("hbase", "scan"), ("hbase", "endpoint"), ("grampus", "scan"), ("grampus", "endpoint"),
                ("grampus", "first touch"), ("grampus", "warm")]
        yield from aligned([["server, method", "rows/s", "server CPU us per row", "CPU: HBase scan / this",
                             "CPU: HBase endpoint / this"],
                            *(self._row(*way) for way in ways)])
        yield "rows per second, and ratios of rows per second:"
        for name, got in self._got().items():
            yield f"  {name}: {got:,.3g} (target: {WANTED[name]:,})"

    def _row(self, server, way):
        cpu_us = self._cpu_us(server, way)
        ratios = (f"{self._cpu_us('hbase', of) / cpu_us:,.1f}" if cpu_us else "" for of in ("scan", "endpoint"))
        return [f"{server}, {way}", f"{self._rate(server, way):,.0f}", f"{cpu_us:.3f}", *ratios]

    def _got(self):
        warm = self._rate("grampus", "warm")
        return {"warm": warm, "first touch": self._rate("grampus", "first touch"),
                "warm / HBase scan": warm / self._rate("hbase", "scan"),
                "warm / HBase endpoint": warm / self._rate("hbase", "endpoint")}

    def _rate(self, server, way):
        return self._record.median(lambda line: line["rows_per_second"], server=server, way=way)

    def _cpu_us(self, server, way):
        lines = [line for line in self._record.runs if (line["server"], line["way"]) == (server, way)]
        # The kernel counts in ticks of 10 ms, which are long compared with one warm run.
        return sum(map(_cpu_us, lines)) / len(lines)


def _cpu_us(line):
    return line["server_cpu_seconds"] / line["rows"] * 1e6


def _misses(server):
    return pages.figures(server)["blockCacheMissCount"]
