"""One run of a case: a fresh server on its tiers, and a load of inserts."""
import os
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from types import SimpleNamespace

import servers
import subject
from generator import Generator
from javatools import die
from volumes import Volumes

# More rows than a run writes, so that nearly every write is an insert.
ROWS = 1_000_000_000
VALUE_BYTES = 1_000
# The clients of the study were 200 threads that wrote single rows. Calls of several rows need less
# CPU time, which is what a small machine lacks. There are enough of them that the syncs of the log,
# which the study did not have, are shared by about a thousand rows.
CLIENTS, BATCH, REGIONS = 400, 20, 6
FLUSH_MIB = 16
# Sizes are those of the study divided by its flush size and multiplied by this one, and its thread
# counts. Files in the archive, and logs, are removed soon: the volumes are in memory.
SETTINGS = {
    "grampus.memory": "1g",
    "hbase.hregion.memstore.flush.size": f"{FLUSH_MIB}m",
    "hbase.regionserver.hlog.blocksize": "64m",
    "hbase.hstore.blockingStoreFiles": 15,
    "hbase.regionserver.thread.compaction.small": 3,
    "hbase.hstore.compaction.throughput.lower.bound": 0,
    "hbase.hstore.compaction.throughput.higher.bound": 0,
    "hbase.master.cleaner.interval": 1000,
    "hbase.master.logcleaner.ttl": 1000,
    "hbase.master.hfilecleaner.ttl": 1000,
}
MIB = 1 << 20


class Trial:
    """Runs cases, one at a time, in directories below `arguments.ram`."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)

    def run(self, case):
        """Measures a case once and returns its figures."""
        with tempfile.TemporaryDirectory(prefix="grampus-tiers.", dir=self._arguments.ram) as directory:
            self._require_space(directory)
            volumes = [os.path.join(directory, f"{at}-{tier.name}") for at, tier in enumerate(case.tiers)]
            with self._server(case, directory, volumes) as server, Volumes(volumes) as sampled:
                got = self._generator.run(
                    server, "randomWrite", "--table", "rows", "--rows", ROWS, "--value-size", VALUE_BYTES, "--clients",
                    CLIENTS, "--connections", 8, "--batch", BATCH, "--regions", REGIONS, "--warm-up",
                    self._arguments.warm, "--seconds", self._arguments.seconds)
            return {
                "rows_per_second": got["rows_per_second"],
                "mean_ms": got["latency_us"]["mean"] / 1e3,
                "p99_ms": got["latency_us"]["p99"] / 1e3,
                "longest_ms": got["latency_us"]["max"] / 1e3,
                "slowest_second_rows": min(self._whole_seconds(got["rows_by_second"])),
                "cpu_us_per_row": got["server_cpu_us_per_row"],
                "written_mib": [written / MIB for written in sampled.written()],
            }

    def _whole_seconds(self, rows):
        # The last second may be shorter than one, and seconds without a row may miss at the end.
        seconds = max(int(self._arguments.seconds), 1)
        return (rows + [0] * seconds)[:seconds]

    def _require_space(self, directory):
        # With memory as the only limit, a run writes about 100 MB of rows per second, three times.
        needed = (self._arguments.seconds + self._arguments.warm) * 300e6
        if shutil.disk_usage(directory).free < needed:
            die(f"{directory} needs {needed / 1e9:.0f} GB of free space; choose another --ram, or shorter --seconds")

    @contextmanager
    def _server(self, case, directory, volumes):
        parts = [tier.option(volume, self._arguments.slower, FLUSH_MIB) for tier, volume in zip(case.tiers, volumes)]
        settings = {**SETTINGS, "grampus.tiers": "; ".join(parts)}
        offset = servers.free_offset(subject.GRAMPUS_OFFSET)
        # SIGTERM must run `finally` too, so that no server is left running.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
        server = servers.grampus(self._arguments.grampus, directory, offset, settings=settings)
        try:
            yield SimpleNamespace(name="grampus", endpoint=server.endpoint, server=server)
        finally:
            server.stop()
            # The directory is about to be removed.
            shutil.copy(server.log, os.path.join(self._arguments.out, "server.log"))
