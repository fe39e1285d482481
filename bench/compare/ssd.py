"""The part `ssd`: gets from the second level of the block cache, which is in files, before and after
a restart.

The table is three times as large as the block cache in memory, and fits in the second level.
HBase's BucketCache stores all data blocks in its file; its memory is for indexes and Bloom filters.
Grampus also keeps data blocks in memory. All rows are requested equally often.

Both servers run in control groups with the same limit, as in the part `cold`. The pages of the
store files and of the cache's files are dropped before each run, so that blocks are read from the
disk. Then each server stops cleanly and starts again. The hit ratio is the share of requested rows
whose data block was in memory or in the second level.
"""
import os
import tempfile
from contextlib import ExitStack

import cold
import cores
import pages
import process
import storefiles
from bound import Bound
from generator import Generator
from javatools import TARGET
from record import Record, aligned
from steps import Table

MIB = 1 << 20
# Of the table. HBase's buckets are larger than the blocks in them.
CACHE_TO_DATA = 2
# HBase writes blocks in the background, and drops them if its queue is full; Grampus writes them
# when they are read again.
FILLS = 3
# After the restart, until the hit ratio is measured.
AGAIN_SECONDS = 60
# How much of the hit ratio a restart may cost.
LOSS_MAX = 0.05
NAMES = ("hbase", "grampus")
PHASES = BEFORE, AFTER = "before the restart", "after the restart"


class Ssd:
    """Gets from the second level, by both servers in turn."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "ssd")
        data_bytes = int(arguments.cold_memory * MIB * cold.CACHE_SHARE) * cold.DATA_TO_CACHE
        self._cache_mib = data_bytes * CACHE_TO_DATA // MIB
        self._table = Table("ssd", data_bytes // cold.ROW_BYTES, cold.VALUE_BYTES)

    def run(self):
        """Measures and returns the missed targets."""
        limit = cold.limit_bytes(self._arguments)
        os.makedirs(TARGET, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="ssd.", dir=TARGET) as caches, ExitStack() as started:
            trials = [Trial(name, os.path.join(caches, name), started.enter_context(Bound(name, limit)))
                      for name in NAMES]
            for trial in trials:
                trial.start(started, self._server(trial))
                self._fill(trial)
            self._measure_all(trials, BEFORE)
            self._restart(trials)
            self._measure_all(trials, AFTER)
        self._record.write(self.lines())
        return list(self._complaints())

    def _server(self, trial):
        settings = {"hbase.bucketcache.ioengine": f"file:{trial.cache}", "hbase.bucketcache.size": self._cache_mib,
                    "hbase.bucketcache.persistent.path": f"{trial.cache}.index"}
        server = cold.hbase if trial.name == "hbase" else cold.grampus
        return server(self._arguments, settings)

    def _fill(self, trial):
        print(f"{trial.name}: filling {self._table.rows:,} rows", flush=True)
        self._generator.run(trial.server, "randomRead", "--load", *self._table.options(), "--uncached", "--seconds", 1)
        for _ in range(FILLS):
            self._generator.run(trial.server, "sequentialRead", *self._table.options(), "--batch", 100)
        print(f"{trial.name}: warming up for {self._arguments.warm} s", flush=True)
        self._generator.run(trial.server, *self._words(), "--seconds", self._arguments.warm)
        trial.bound.leave_for_pages(cold.PAGES_MIB * MIB)

    def _restart(self, trials):
        for trial in trials:
            trial.restart()
        for trial in trials:
            self._generator.run(trial.server, *self._words(), "--seconds", AGAIN_SECONDS)

    def _measure_all(self, trials, phase):
        for run in range(1, self._arguments.runs + 1):
            for trial in trials:
                self._measure(trial, phase, run)

    def _words(self):
        return ["randomRead", *self._table.options(), "--clients", cold.CLIENTS]

    def _measure(self, trial, phase, run):
        trial.drop_pages(self._table.name)
        server, pid = trial.server, trial.server.server.pid
        misses, read = _misses(server), process.bytes_from_disk(pid)
        # No warm-up, because every request must be counted.
        got = self._generator.run(server, *self._words(), "--seconds", self._arguments.seconds, "--warm-up", 0)
        hit_ratio = max(0, 1 - (_misses(server) - misses) / got["rows"])
        read = process.bytes_from_disk(pid) - read
        self._record.add(server=trial.name, phase=phase, run=run, hit_ratio=hit_ratio,
                         disk_kib_per_row=read / got["rows"] / 1024, page_cache_mib=trial.bound.page_cache_bytes() / MIB, **got)
        print(f"  {trial.name:8} {phase}, run {run}: {hit_ratio:.1%} hits, {got['rows_per_second']:9,.0f} rows/s "
              f"{got['server_cpu_us_per_row']:8.2f} us CPU per row", flush=True)

    def lines(self):
        """The table."""
        memory = self._arguments.cold_memory
        yield (f"gets of 1 KB, {cold.CLIENTS} clients, {self._table.rows:,} rows, {cold.DATA_TO_CACHE} times the block cache of "
               f"{memory * cold.CACHE_SHARE:.0f} MiB; second level of {self._cache_mib:,} MiB in files; each server in "
               f"{memory + cold.BEYOND_HEAP_MIB} MiB, of which {cold.PAGES_MIB} are for page cache; medians")
        yield from aligned([["", "server", "hits", "rows/s", "CPU us per row", "HBase / Grampus", "p50 us", "p999 us",
                             "KiB from disk per row", "page cache MiB"],
                            *(self._row(phase, name) for phase in PHASES for name in NAMES)])

    def _row(self, phase, name):
        cpu = self._of(name, phase, "server_cpu_us_per_row")
        ratio = f"{self._of('hbase', phase, 'server_cpu_us_per_row') / cpu:.2f}" if name == "grampus" else ""
        p50, p999 = (self._record.median(lambda run: run["latency_us"][which], server=name, phase=phase)
                     for which in ("p50", "p999"))
        return [phase, name, f"{self._of(name, phase, 'hit_ratio'):.1%}", f"{self._of(name, phase, 'rows_per_second'):,.0f}",
                f"{cpu:.2f}", ratio, f"{p50:,.0f}", f"{p999:,.0f}", f"{self._of(name, phase, 'disk_kib_per_row'):.1f}",
                f"{self._of(name, phase, 'page_cache_mib'):.0f}"]

    def _complaints(self):
        before, after = (self._of("grampus", phase, "hit_ratio") for phase in PHASES)
        if after < before * (1 - LOSS_MAX):
            yield f"ssd: the hit ratio was {before:.1%} before the restart, and {after:.1%} after it"

    def _of(self, name, phase, figure):
        return self._record.median(lambda run: run[figure], server=name, phase=phase)


class Trial:
    """A server, its second level in `cache`, and its control group."""

    def __init__(self, name, cache, bound):
        self.name = name
        self.cache = cache
        self.bound = bound
        self.server = None

    def start(self, until_end, server):
        """Starts the server; it ends with `until_end`."""
        with cores.of_servers(), self.bound.inside():
            self.server = until_end.enter_context(server)

    def restart(self):
        """Stops the server cleanly and starts it again."""
        self.server.server.stop()
        with cores.of_servers(), self.bound.inside():
            self.server.start_again()

    def drop_pages(self, table):
        """Drops the pages of the table's store files and of the second level."""
        storefiles.drop_from_page_cache(self.server, table)
        storefiles.drop(self._cache_files())

    def _cache_files(self):
        if os.path.isfile(self.cache):
            return [self.cache]
        return [os.path.join(place, name) for place, _, names in os.walk(self.cache) for name in names]


def _misses(server):
    return pages.figures(server)["l2CacheMissCount"]
