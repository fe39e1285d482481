"""The part `cold`: gets when the block cache holds a third of the data.

The first rows of the table fit in the cache, and are read until they are cached. The other rows are
never cached (setCacheBlocks(false)). So the share of hot rows among the requested rows is the hit
ratio, and a run does not change the cache. Both caches have the same content: as many rows as fit
in 0.4 of HBase's heap, which is 0.4 of grampus.memory (whose cache may also use the memory that
memstores leave).

Both servers run in control groups with the same limit. Memory that a server does not use would
become its page cache, which would turn about a third of its misses into hits. So ballast takes
everything above PAGES_MIB, and the pages of the files are dropped before each run. The bytes read
from disk are counted as evidence.
"""
from contextlib import ExitStack

import cores
import pages
import process
import storefiles
import subject
from bound import Bound
from generator import Generator
from record import Record, aligned
from steps import Table

MIB = 1 << 20
CLIENTS = 10
RATIOS = (0, 65, 100)
# HBase needs about 300 MiB beyond its heap, for code, classes, threads and network buffers; the
# rest is page cache.
BEYOND_HEAP_MIB = 512
# Page cache of each server during the measurement: a tenth of the data.
PAGES_MIB = 128
CACHE_SHARE = 0.4
DATA_TO_CACHE = 3
# Share of the cache; the rest is for indexes, Bloom filters, and for blocks that a cache evicts
# before it is quite full.
HOT_SHARE = 0.6
VALUE_BYTES = 1_000
# A cell in its block: lengths, key, family, qualifier, timestamp, type, sequence number.
ROW_BYTES = VALUE_BYTES + 55


def limit_bytes(arguments):
    """The memory of a server's control group."""
    return (arguments.cold_memory + BEYOND_HEAP_MIB) * MIB


def hbase(arguments, settings=None):
    """A fresh HBase with a small cache and further settings."""
    # Heap that is first touched during the measurement would be taken from the page cache.
    return subject.hbase(f"{arguments.cold_memory}m", {"hfile.block.cache.size": CACHE_SHARE, **(settings or {})}, pages=True,
                         jvm=["-XX:+AlwaysPreTouch"])


def grampus(arguments, settings=None):
    """A fresh Grampus with a cache of the same size and further settings."""
    return subject.grampus(arguments.grampus, settings={
        "grampus.memory": f"{arguments.cold_memory} MiB", "hfile.block.cache.size": CACHE_SHARE, **(settings or {})})


class Cold:
    """Gets at three ratios of hits."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "cold")
        cache_bytes = int(arguments.cold_memory * MIB * CACHE_SHARE)
        self._table = Table("cold", cache_bytes * DATA_TO_CACHE // ROW_BYTES, VALUE_BYTES)
        self._hot_rows = int(cache_bytes * HOT_SHARE) // ROW_BYTES

    def run(self):
        """Measures; there are no targets."""
        limit = limit_bytes(self._arguments)
        with Bound("hbase", limit) as of_hbase, Bound("grampus", limit) as of_grampus, ExitStack() as started:
            servers = [(hbase(self._arguments), of_hbase), (grampus(self._arguments), of_grampus)]
            for server, bound in servers:
                with cores.of_servers(), bound.inside():
                    started.enter_context(server)
            for server, bound in servers:
                self._prepare(server, bound)
            for percent in RATIOS:
                for run in range(1, self._arguments.runs + 1):
                    for server, bound in servers:
                        self._measure(server, bound, percent, run)
        self._record.write(self.lines())
        return []

    def _prepare(self, server, bound):
        """Fills the table, then the cache, and takes what memory is left."""
        print(f"{server.name}: filling {self._table.rows:,} rows", flush=True)
        # What it reads then is not to be in the cache.
        self._generator.run(server, "randomRead", "--load", *self._table.options(), "--uncached", "--seconds", 1)
        # Twice, for HBase keeps longer what it met twice.
        hot = Table(self._table.name, self._hot_rows, VALUE_BYTES)
        for _ in range(2):
            self._generator.run(server, "sequentialRead", *hot.options(), "--batch", 100)
        warm = self._arguments.warm if server.name == "hbase" else 1
        print(f"{server.name}: warming up for {warm} s", flush=True)
        self._generator.run(server, *self._words(65), "--seconds", warm)
        bound.leave_for_pages(PAGES_MIB * MIB)

    def _words(self, percent):
        return ["randomRead", *self._table.options(), "--clients", CLIENTS, "--hot-rows", self._hot_rows, "--hot-percent",
                percent, *(["--uncached"] if percent < 100 else [])]

    def _measure(self, server, bound, percent, run):
        storefiles.drop_from_page_cache(server, self._table.name)
        pid = server.server.pid
        misses, resident, read = _misses(server), process.resident_mib(pid), process.bytes_from_disk(pid)
        # No warm-up, because every request must be counted.
        got = self._generator.run(server, *self._words(percent), "--seconds", self._arguments.seconds, "--warm-up", 0)
        growth, read = process.resident_mib(pid) - resident, process.bytes_from_disk(pid) - read
        # A get reads one data block; blocks of indexes and Bloom filters are cached. Calls in
        # flight at the end count as misses, but not as rows.
        hit_ratio = max(0, 1 - (_misses(server) - misses) / got["rows"])
        self._record.add(server=server.name, percent=percent, run=run, hit_ratio=hit_ratio, growth_mib=growth,
                         disk_kib_per_row=read / got["rows"] / 1024, page_cache_mib=bound.page_cache_bytes() / MIB, **got)
        print(f"  {server.name:8} {percent:3} % hits (by its count {hit_ratio:.1%}), run {run}: "
              f"{got['rows_per_second']:9,.0f} rows/s {got['server_cpu_us_per_row']:8.2f} us CPU per row", flush=True)

    def lines(self):
        """The table."""
        memory = self._arguments.cold_memory
        yield (f"gets of 1 KB, {CLIENTS} clients, {self._table.rows:,} rows, {DATA_TO_CACHE} times the block cache of "
               f"{memory * CACHE_SHARE:.0f} MiB; each server in {memory + BEYOND_HEAP_MIB} MiB, of which {PAGES_MIB} are for "
               "page cache; medians")
        yield from aligned([["hits", "server", "hits counted", "rows/s", "CPU us per row", "HBase / Grampus", "p50 us",
                             "p999 us", "p999 / p50", "KiB from disk per row", "growth MiB", "page cache MiB"],
                            *(self._row(percent, name) for percent in RATIOS for name in ("hbase", "grampus"))])

    def _row(self, percent, name):
        cpu = self._of(name, percent, "server_cpu_us_per_row")
        ratio = f"{self._of('hbase', percent, 'server_cpu_us_per_row') / cpu:.2f}" if name == "grampus" else ""
        p50, p999 = (self._record.median(lambda run: run["latency_us"][which], server=name, percent=percent)
                     for which in ("p50", "p999"))
        return [f"{percent} %", name, f"{self._of(name, percent, 'hit_ratio'):.1%}",
                f"{self._of(name, percent, 'rows_per_second'):,.0f}", f"{cpu:.2f}", ratio, f"{p50:,.0f}", f"{p999:,.0f}",
                f"{p999 / p50:.1f}", f"{self._of(name, percent, 'disk_kib_per_row'):.1f}",
                f"{self._of(name, percent, 'growth_mib'):.1f}", f"{self._of(name, percent, 'page_cache_mib'):.0f}"]

    def _of(self, server, percent, figure):
        return self._record.median(lambda run: run[figure], server=server, percent=percent)


def _misses(server):
    return pages.figures(server)["blockCacheMissCount"]
