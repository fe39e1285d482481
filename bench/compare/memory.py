"""The part `memory`: does Grampus stay within grampus.memory, whatever it is asked for?

HBase's PerformanceEvaluation writes and reads with 75 clients, table after table, so that far more is stored than there is
memory; others scan; all is compacted again and again. Resident memory is sampled, and asked of the kernel in the end, which has seen what lies
between samples. Demanded: never more than a tenth above the number, and no client is told of an error, but for those by
which HBase too says that it is busy.
"""
import itertools
import math
import os
import re
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack

import cores
import pages
import pe
import process
import storefiles
import subject
from generator import Generator
from record import Record
from shell import Refused, Shell
from steps import Table

MIB = 1 << 20
MEMORY_MIB = 512
ALLOWED_MIB = MEMORY_MIB * 1.1
CLIENTS = 75
# PerformanceEvaluation goes from one to the next and begins anew; it ends when it has done all its rows, so they are few.
TABLES = 6
# Each of its clients has histograms of some 30 MB.
PE_HEAP = "4g"
TURNS = (("randomWrite", "writes"), ("randomRead", "reads"))
SAMPLE_S = 0.5
COMPACT_S = 15
SCAN_S = 10
VALUE_BYTES = 1_000
# What a client is told to come back later by.
BUSY = re.compile(r"RegionTooBusyException|CallQueueTooBigException|CallDroppedException|ServerTooBusyException|"
                  r"MemStoreLimitExceeded|OutOfScannersException|RpcThrottlingException")

# A try that is repeated, as a region is being split: the client tells of the sixth of sixteen and of those behind it.
AWAY = re.compile(r"INFO .* attempt=\d+/\d+.*NotServingRegionException")


class Memory:
    """Grampus under load, and its memory watched."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "memory")
        self._rows_each = arguments.memory_rows // CLIENTS
        self._written = []
        self._scanned = Table("Scanned", arguments.memory_rows, VALUE_BYTES)
        self._over = threading.Event()
        self._running = set()
        self._done = dict.fromkeys(("writes", "reads", "scans", "compactions", "busy", "away"), 0)
        self._errors = []

    def run(self):
        """Watches; what was demanded and is not so."""
        with ExitStack() as until_end:
            with cores.of_servers():
                server = until_end.enter_context(
                    subject.grampus(self._arguments.grampus, settings={"grampus.memory": f"{MEMORY_MIB} MiB"}))
            self._under_load(server)
            self._most_mib = process.most_resident_mib(server.server.pid)
            self._stored_mib = sum(self._stored(server, table) for table in self._tables()) / MIB
            self._read_log(server.server.log)
            # Beside the samples, it tells what the server did when it had most.
            shutil.copy(server.server.log, os.path.join(self._arguments.out, "memory.log"))
        self._record.write(self.lines())
        above = [f"resident memory was {self._most_mib:.0f} MiB; {ALLOWED_MIB:.0f} are allowed"]
        return (above if self._most_mib > ALLOWED_MIB else []) + self._errors

    def _under_load(self, server):
        """Samples while threads do their work, until the time is over."""
        threads = [threading.Thread(target=self._guarded, args=(work, server))
                   for work in (self._use, self._scan, self._compact)]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        try:
            while time.monotonic() < begin + self._arguments.memory_seconds and server.server.running():
                resident = process.resident_mib(server.server.pid)
                self._record.add(seconds=time.monotonic() - begin, resident_mib=resident, counted=_counted(server))
                time.sleep(SAMPLE_S)
        finally:
            self._over.set()
            for program in list(self._running):
                program.kill()
            for thread in threads:
                thread.join()

    def _guarded(self, work, server):
        try:
            work(server)
        except (Refused, OSError) as error:
            self._hear([str(error)])

    def _use(self, server):
        """Writes and reads by PerformanceEvaluation, in turns."""
        turns = [(f"PeMemory{at}", *turn) for at in range(TABLES) for turn in TURNS]
        for name, command, what in itertools.cycle(turns):
            outcome = pe.run(server.endpoint, command, CLIENTS, self._rows_each, heap=PE_HEAP,
                             started=self._running.add, options=[f"--table={name}", f"--valueSize={VALUE_BYTES}"])
            if self._over.is_set():
                return
            if name not in self._written:
                self._written.append(name)
            self._hear(outcome.troubles)
            if not outcome.good() and not outcome.troubles:
                self._hear([f"PerformanceEvaluation {command} ended with {outcome.code}"])
            self._done[what] += outcome.operations

    def _scan(self, server):
        """Scans of a table whose rows are all there, whole and through a filter that lets none pass."""
        self._bench(server, "randomRead", "--load", *self._scanned.options(), "--seconds", 1)
        for workload in itertools.cycle(("scan", "filterScan")):
            self._bench(server, workload, *self._scanned.options(), "--clients", 4, "--seconds", SCAN_S, "--warm-up", 0)
            if self._over.is_set():
                return
            self._done["scans"] += 1

    def _bench(self, server, *words):
        command = self._generator.command(server, *words)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
            self._running.add(program)
            _, said = program.communicate()
        if program.returncode and not self._over.is_set():
            self._hear([f"grampus bench {words[0]}: {said.strip()}"])
            # What cannot be asked now is asked a little later.
            self._over.wait(1)

    def _compact(self, server):
        """Major compactions of all tables that there are."""
        with Shell(self._arguments.grampus, server) as shell:
            while not self._over.wait(COMPACT_S):
                for table in self._tables():
                    shell.do(f"major_compact '{table}'")
                    self._done["compactions"] += 1

    def _tables(self):
        """Names of the tables that are there; that which is scanned is soon after the beginning."""
        return [self._scanned.name, *self._written]

    def _stored(self, server, table):
        return sum(os.path.getsize(path) for path in storefiles.of(server, table) if os.path.exists(path))

    def _hear(self, troubles):
        """What clients were told: busy and away are counted, all else is an error."""
        for trouble in troubles:
            if BUSY.search(trouble):
                self._done["busy"] += 1
            elif AWAY.search(trouble):
                self._done["away"] += 1
            else:
                self._errors.append(trouble[:300])

    def _read_log(self, path):
        with open(path, errors="replace") as log:
            self._errors += [f"in its log: {line.strip()[:300]}" for line in log if " ERROR " in line]

    def lines(self):
        """The table."""
        samples = sorted(run["resident_mib"] for run in self._record.runs)
        highest = max(self._record.runs, key=lambda run: run["resident_mib"])
        p99 = samples[math.ceil(len(samples) * 0.99) - 1]
        yield (f"Grampus with {MEMORY_MIB} MiB under {CLIENTS} clients of PerformanceEvaluation, scans and major compactions "
               f"for {self._record.runs[-1]['seconds']:.0f} s; {len(samples)} samples")
        yield f"resident MiB: p99 {p99:.0f}, most {self._most_mib:.0f}, allowed {ALLOWED_MIB:.0f}"
        yield (f"at the highest sample, after {highest['seconds']:.0f} s, it counted: " +
               ", ".join(f"{what} {mib:.0f}" for what, mib in highest["counted"].items()))
        yield ("done: " + ", ".join(f"{number:,} {what}" for what, number in self._done.items() if what not in ("busy", "away")) +
               f"; stored in the end {self._stored_mib:,.0f} MiB")
        yield (f"clients were told {self._done['busy']} times that the server is busy, {self._done['away']} times that a region "
               f"is being split, and of {len(self._errors)} errors")


def _counted(server):
    """What the server itself says its memory is used for, in MiB."""
    figures = pages.figures(server, "Memory") | pages.figures(server, "Grampus")
    return {what: figures[what] / MIB for what in ("memStoreSize", "blockCacheSize", "requestSize", "responseSize")}
