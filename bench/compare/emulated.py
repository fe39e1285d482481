"""Instructions a row that a server takes in user mode and in the kernel, as counted in a virtual machine (machine.py).

For each binary and number of regions a machine is booted, which loads a table, asks for rows and tells what the server spent
(emulated_init.sh). What the server does with nobody asking is measured too, and taken off.
"""
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time

import machine
from javatools import die

HERE = os.path.dirname(os.path.abspath(__file__))
# The loop that checks the count: as many turns, of two instructions each, are between a short and a long one.
LOOP_TURNS = 100_000_000
# More than ticks of the clock explain: then nanoseconds are no instructions in this machine.
LOOP_DEVIATION_MAX = 0.003
# Virtual seconds: before the server is held to be at rest, and of rest that are measured.
SETTLE_S, REST_S = 5, 10
# What a run takes to start, and for each client to learn of one region more: some half a million instructions to ask where it is,
# and calls for random rows until every region had its turn, but for one of ten thousand.
START_S, LEARNING_S = 0.3, 0.0012
INSTRUCTIONS_PER_US = 1000


class Cost:
    """Instructions a row of one thing asked.

    The median over boots of the median over turns: the turns of one boot share its chances, which are seeds of hash tables and places
    in memory. `boots_apart` and `turns_apart` are the distances of the greatest from the least, as parts of the median.
    """

    def __init__(self, counts, name):
        turns = [count.per_row[name] for count in counts]
        boots = list(map(statistics.median, turns))
        self.median = statistics.median(boots)
        self.boots_apart = self._apart(boots)
        self.turns_apart = max(map(self._apart, turns))

    def _apart(self, values):
        return (max(values) - min(values)) / self.median


class Spending:
    """What a run took of the server; as a difference, what a long run took more than a short one.

    A run's start, when its clients connect and learn where regions are, and its end, when answers come that it counts no more, are in
    both and fall out.
    """

    def __init__(self, instructions, seconds, rows):
        self.instructions, self.seconds, self.rows = instructions, seconds, rows

    def __sub__(self, other):
        return Spending(self.instructions - other.instructions, self.seconds - other.seconds, self.rows - other.rows)


class Count:
    """What one binary took, in one boot."""

    def __init__(self):
        self.deviation = None
        self.rest_per_s = None
        # By name of what was asked, a list of what its turns took a row.
        self.per_row = {}
        # The greatest part of a turn that was the server's own doing and was taken off.
        self.rest_share = 0.0
        self._short = None

    def take(self, kind, fields):
        """One line of the machine's."""
        if kind == "loop":
            short_us, long_us = map(int, fields)
            self._check_loop((long_us - short_us) * INSTRUCTIONS_PER_US)
        elif kind == "rest":
            spent = spending(fields)
            self.rest_per_s = spent.instructions / spent.seconds
        elif kind == "short":
            self._short = spending(fields)
        elif kind == "long":
            self._take_turn(fields[0], spending(fields) - self._short)

    def _take_turn(self, name, spent):
        rest = self.rest_per_s * spent.seconds
        self.rest_share = max(self.rest_share, rest / spent.instructions)
        self.per_row.setdefault(name, []).append((spent.instructions - rest) / spent.rows)

    def _check_loop(self, counted):
        self.deviation = counted / (2 * LOOP_TURNS) - 1
        if abs(self.deviation) > LOOP_DEVIATION_MAX:
            die(f"a loop of {2 * LOOP_TURNS:,} instructions was counted as {counted:,}: time is no count here")


def spending(fields):
    """Of a line that tells of a run, or of rest, which has no rows."""
    _, spent_us, before_s, after_s, measured = fields
    rows = json.loads(measured)["rows"] if measured else 0
    return Spending(int(spent_us) * INSTRUCTIONS_PER_US, float(after_s) - float(before_s), rows)


def short_s(words, regions):
    """How long a short run is: until nearly all is learnt by each client that is learnt at a run's start."""
    clients = int(words[words.index("--clients") + 1])
    return START_S + LEARNING_S * (regions - 1) * clients


def count(binary, generator, asked, kernel, settings):
    """Counts one binary in one boot.

    `asked` are names and words for `grampus bench`; `settings` have `rows`, `regions`, `turns`, and the `seconds` that a long run is
    longer than a short one.
    """
    with tempfile.TemporaryDirectory() as directory:
        first_files = os.path.join(directory, "first-files")
        pack(binary, generator, asked, settings, directory).write(first_files)
        counted, begun = Count(), time.monotonic()
        said = []
        with contextlib.closing(machine.boot(kernel, first_files)) as console:
            for line in console:
                said.append(line)
                kind, fields = message(line)
                counted.take(kind, fields)
                tell(time.monotonic() - begun, kind, fields, counted)
                if kind == "end":
                    return counted
    die("the virtual machine ended early; its last words:\n" + "\n".join(said[-40:]))


def message(line):
    """A line of emulated_init.sh's: its kind and fields. Others are the kernel's, of no kind."""
    _, marked, message = line.partition("guest:")
    kind, *fields = message.split("|", 5)
    return (kind, fields) if marked else (None, fields)


def pack(binary, generator, asked, settings, directory):
    """The files of the machine."""
    files = machine.FirstFiles()
    files.add_console()
    for empty in ("proc", "sys", "tmp", "cgroup"):
        files.add_directory(empty)
    files.add_file("bin/busybox", machine.busybox())
    files.add_file("init", os.path.join(HERE, "emulated_init.sh"))
    files.add_bytes("etc/hosts", b"127.0.0.1 localhost\n")
    files.add_bytes("etc/nsswitch.conf", b"hosts: files\n")
    for name, turns in (("short", LOOP_TURNS), ("long", 2 * LOOP_TURNS)):
        files.add_bytes(name, machine.counting_loop(turns))
    settings = {**settings, "settle_s": SETTLE_S, "rest_s": REST_S}
    files.add_bytes("settings", "".join(f"{name}={value}\n" for name, value in settings.items()).encode())
    files.add_bytes("asked", "".join(asked_line(name, words, settings) for name, words in asked).encode())
    for name, path in (("server", binary), ("generator", generator)):
        files.add_file(name, machine.stripped(path, os.path.join(directory, name)))
    for library in sorted({*machine.libraries(binary), *machine.libraries(generator)}):
        files.add_file(library, library)
    return files


def asked_line(name, words, settings):
    short = short_s(words, settings["regions"])
    return f"{name}|{short:.2f}|{short + settings['seconds']:.2f}|{' '.join(words)}\n"


def tell(passed_s, kind, fields, counted):
    """A line of progress."""
    if kind in (None, "short"):
        return
    text = {"clock": lambda: f"booted, clock by {fields[0]}",
            "loop": lambda: f"a loop's instructions counted, {counted.deviation:+.4%}",
            "rest": lambda: f"at rest {counted.rest_per_s:,.0f} instructions a second",
            "long": lambda: f"{fields[0]}: {counted.per_row[fields[0]][-1]:,.1f}",
            "end": lambda: f"ended; at most {counted.rest_share:.3%} of a turn was taken off as rest"}
    text = text.get(kind, lambda: " ".join([kind, *fields[:1]]))()
    print(f"  {passed_s:4.0f} s  {text}", file=sys.stderr, flush=True)
