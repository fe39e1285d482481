"""The part `memory`: whether Grampus stays within grampus.memory under load.

HBase's PerformanceEvaluation writes and reads with 75 clients, table after table, so that far more
is stored than there is memory. Other clients scan, and everything is compacted in a loop. Resident
memory is sampled; at the end the kernel reports its maximum, which includes peaks between samples.
Targets: at most 10 % above the limit, and no client gets an error, except for those with which
HBase too reports that it is busy.
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
# PerformanceEvaluation uses one after the other in a loop. A run ends when it has processed all its
# rows, so rows are few.
TABLES = 6
# Each of its clients has histograms of about 30 MB.
PE_HEAP = "4g"
TURNS = (("randomWrite", "writes"), ("randomRead", "reads"))
SAMPLE_S = 0.5
COMPACT_S = 15
SCAN_S = 10
VALUE_BYTES = 1_000
# Exceptions that ask a client to retry later.
BUSY = re.compile(r"RegionTooBusyException|CallQueueTooBigException|CallDroppedException|ServerTooBusyException|"
                  r"MemStoreLimitExceeded|OutOfScannersException|RpcThrottlingException")

# A retry while a region is being split: the client logs the sixth of its sixteen attempts and later
# ones.
AWAY = re.compile(r"INFO .* attempt=\d+/\d+.*NotServingRegionException")


class Memory:
    """Loads Grampus and samples its memory."""

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
        """Measures and returns the missed targets."""
        with ExitStack() as until_end:
            with cores.of_servers():
                server = until_end.enter_context(
                    subject.grampus(self._arguments.grampus, settings={"grampus.memory": f"{MEMORY_MIB} MiB"}))
            self._under_load(server)
            self._most_mib = process.most_resident_mib(server.server.pid)
            self._stored_mib = sum(self._stored(server, table) for table in self._tables()) / MIB
            self._read_log(server.server.log)
            # Together with the samples, the log shows what the server did at its peak.
            shutil.copy(server.server.log, os.path.join(self._arguments.out, "memory.log"))
        self._record.write(self.lines())
        above = [f"resident memory was {self._most_mib:.0f} MiB; {ALLOWED_MIB:.0f} are allowed"]
        return (above if self._most_mib > ALLOWED_MIB else []) + self._errors

    def _under_load(self, server):
        """Samples memory while other threads generate load, until the time ends."""
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
        """Alternates writes and reads by PerformanceEvaluation."""
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
        """Scans a completely loaded table, without a filter and with one that no row passes."""
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
            # Retry a failed request a little later.
            self._over.wait(1)

    def _compact(self, server):
        """Runs major compactions of all existing tables."""
        with Shell(self._arguments.grampus, server) as shell:
            while not self._over.wait(COMPACT_S):
                for table in self._tables():
                    shell.do(f"major_compact '{table}'")
                    self._done["compactions"] += 1

    def _tables(self):
        """Names of the existing tables; the scanned one exists soon after the start."""
        return [self._scanned.name, *self._written]

    def _stored(self, server, table):
        return sum(os.path.getsize(path) for path in storefiles.of(server, table) if os.path.exists(path))

    def _hear(self, troubles):
        """Classifies messages of clients: busy and away are counted, everything else is an
        error."""
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
        yield f"resident MiB: p99 {p99:.0f}, maximum {self._most_mib:.0f}, allowed {ALLOWED_MIB:.0f}"
        yield (f"at the highest sample, after {highest['seconds']:.0f} s, it counted: " +
               ", ".join(f"{what} {mib:.0f}" for what, mib in highest["counted"].items()))
        yield ("done: " + ", ".join(f"{number:,} {what}" for what, number in self._done.items() if what not in ("busy", "away")) +
               f"; stored in the end {self._stored_mib:,.0f} MiB")
        yield (f"responses to clients: server busy {self._done['busy']} times, region being split {self._done['away']} times, "
               f"other errors {len(self._errors)}")


def _counted(server):
    """The server's own statistics of its memory use, in MiB."""
    figures = pages.figures(server, "Memory") | pages.figures(server, "Grampus")
    return {what: figures[what] / MIB for what in ("memStoreSize", "blockCacheSize", "requestSize", "responseSize")}
