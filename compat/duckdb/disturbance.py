"""Operations concurrent with the queries: flushes, compactions, splits, merges, and writes that
change no result."""
import collections
import random
import threading
import time

import tables

STEPS = ("again", "again", "noise", "noise", "noise", "flush", "flush", "compact", "major", "split", "merge")
# Approximate maximum number of regions of a table.
SPLITS_MAX = 8
PAUSE_S = 0.05


class Disturbance:
    """Runs operations until the block ends; `counts` and `refused` have the numbers of each
    kind."""

    def __init__(self, endpoint, tables_, seed):
        self._cells = tables.Cells(endpoint)
        self._tables = tables_
        self._random = random.Random(f"{seed}/disturbance")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._regions = collections.Counter()
        self.counts = collections.Counter()
        self.refused = collections.Counter()
        self.failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._cells.close()

    def _run(self):
        try:
            while not self._over.is_set():
                self._step(self._random.choice(self._tables), self._random.choice(STEPS))
                time.sleep(PAUSE_S)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def _step(self, table, step):
        random_ = self._random
        if step == "noise" and not table.is_busy:
            step = "again"
        if step in ("again", "noise"):
            rows = random_.choice((1, 20, 200))
            write = table.written_again if step == "again" else table.noise
            self._cells.tell(write(random_, rows))
            # A refused write would make the expected result unknown.
            self._cells.must("write")
            self.counts[step] += 1
            return
        line = f"{step} {table.name}"
        if step == "split":
            key = table.key.row(random_)[0]
            if not key or self._regions[table.name] >= SPLITS_MAX:
                return
            line += " " + tables.hexadecimal(key)
        if step == "merge":
            line += f" {random_.randrange(100)}"
        refused = self._cells.ask(line)
        # A region that still has files of its parents cannot be split, nor can one that no longer
        # exists.
        (self.refused if refused else self.counts)[step] += 1
        if not refused:
            self._regions[table.name] += {"split": 1, "merge": -1}.get(step, 0)
