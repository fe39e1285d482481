"""The background load of the part `pauses`: rows are written, flushed and compacted in a loop."""
import threading
import time

import storefiles
from shell import Refused, Shell

# 1 MB per second, in few rows, because each write also costs time on the measuring core. A second
# load generator would be simpler, but one that keeps a rate does not sleep, and two on one core
# alternate in slices of milliseconds: the median of an echo rose from 0.2 to 2 ms.
ROWS_A_SECOND = 100
VALUE_BYTES = 10_000
# These rows are overwritten cyclically, so that the table does not grow.
ROWS = 5_000
# Interval at which to check for the compacted file.
LOOK_S = 0.05
COMPACTED_WITHIN_S = 120


class Upkeep:
    """Two threads that work on a table for the duration of the block, on rows that the benchmark
    does not read."""

    def __init__(self, binary, server, table):
        self._binary, self._server, self._table = binary, server, table
        self._over = threading.Event()
        self.written = self.flushes = self.compactions = 0
        self.complaints = []

    def __enter__(self):
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._write, self._reorder)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, work):
        try:
            with Shell(self._binary, self._server) as shell:
                work(shell)
        except (Refused, OSError) as error:
            self.complaints.append(f"{self._server.name}: {error}")

    def _write(self, shell):
        value = "w" * VALUE_BYTES
        begin = time.monotonic()
        while not self._over.wait(max(0, begin + self.written / ROWS_A_SECOND - time.monotonic())):
            shell.do(f"put '{self._table}', 'upkeep{self.written % ROWS:06}', 'info0:0', '{value}'")
            self.written += 1

    def _reorder(self, shell):
        while not self._over.is_set():
            shell.do(f"flush '{self._table}'")
            self.flushes += 1
            before = storefiles.of(self._server, self._table)
            shell.do(f"major_compact '{self._table}'")
            self._await_file_beside(before)

    def _await_file_beside(self, before):
        """Waits for a requested compaction: it is done when the table has a file that no flush
        created."""
        end = time.monotonic() + COMPACTED_WITHIN_S
        while not storefiles.of(self._server, self._table) - before:
            if time.monotonic() > end:
                raise Refused(f"no compaction ended within {COMPACTED_WITHIN_S} s")
            if self._over.wait(LOOK_S):
                return
        self.compactions += 1
