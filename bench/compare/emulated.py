"""Instructions per row of a server, in user mode and in the kernel, counted in a virtual machine
(machine.py).

For each binary and number of regions this boots a machine that loads a table, sends requests and
reports what the server spent (emulated_init.sh). The cost of the idle server is measured too, and
subtracted.
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
# The loop that checks the count: the long loop has this many more iterations, of two instructions,
# than the short one.
LOOP_TURNS = 100_000_000
# A deviation beyond clock granularity means that nanoseconds do not count instructions in this
# machine.
LOOP_DEVIATION_MAX = 0.003
# Virtual seconds: until the server counts as idle, and of idle time that are measured.
SETTLE_S, REST_S = 5, 10
# Seconds to start a run, and per client and further region to locate it: about half a million
# instructions per lookup, and calls for random rows until all but one in ten thousand regions were
# used.
START_S, LEARNING_S = 0.3, 0.0012
INSTRUCTIONS_PER_US = 1000


class Cost:
    """Instructions per row of one request type.

    The median over boots of the median over turns: the turns of one boot share its random state,
    which is seeds of hash tables and memory addresses. `boots_apart` and `turns_apart` are the
    differences between the highest and the lowest value, as shares of the median.
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
    """What a run cost the server, or the difference between a long and a short run.

    The difference cancels the start of a run, when its clients connect and locate regions, and its
    end, when responses arrive that it no longer counts.
    """

    def __init__(self, instructions, seconds, rows):
        self.instructions, self.seconds, self.rows = instructions, seconds, rows

    def __sub__(self, other):
        return Spending(self.instructions - other.instructions, self.seconds - other.seconds, self.rows - other.rows)


class Count:
    """The measurements of one binary, in one boot."""

    def __init__(self):
        self.deviation = None
        self.rest_per_s = None
        # By request type, the instructions per row of each turn.
        self.per_row = {}
        # The highest share of a turn that was idle cost and was subtracted.
        self.rest_share = 0.0
        self._short = None

    def take(self, kind, fields):
        """Processes one line of the machine's console."""
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
            die(f"a loop of {2 * LOOP_TURNS:,} instructions was counted as {counted:,}: virtual time does not count instructions here")


def spending(fields):
    """Parses the line of a run, or of an idle period, which has no rows."""
    _, spent_us, before_s, after_s, measured = fields
    rows = json.loads(measured)["rows"] if measured else 0
    return Spending(int(spent_us) * INSTRUCTIONS_PER_US, float(after_s) - float(before_s), rows)


def short_s(words, regions):
    """The length of a short run: until each client has located nearly all regions."""
    clients = int(words[words.index("--clients") + 1])
    return START_S + LEARNING_S * (regions - 1) * clients


def count(binary, generator, asked, kernel, settings):
    """Counts one binary in one boot.

    `asked` are names and arguments for `grampus bench`; `settings` have `rows`, `regions`, `turns`,
    and the `seconds` by which a long run exceeds a short one.
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
    die("the virtual machine ended early; its last output:\n" + "\n".join(said[-40:]))


def message(line):
    """Kind and fields of a line of emulated_init.sh. A line of the kernel has no kind."""
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
    """Prints a line of progress."""
    if kind in (None, "short"):
        return
    text = {"clock": lambda: f"booted, clock by {fields[0]}",
            "loop": lambda: f"instruction count of a loop deviates by {counted.deviation:+.4%}",
            "rest": lambda: f"idle: {counted.rest_per_s:,.0f} instructions per second",
            "long": lambda: f"{fields[0]}: {counted.per_row[fields[0]][-1]:,.1f}",
            "end": lambda: f"ended; at most {counted.rest_share:.3%} of a turn was subtracted as idle cost"}
    text = text.get(kind, lambda: " ".join([kind, *fields[:1]]))()
    print(f"  {passed_s:4.0f} s  {text}", file=sys.stderr, flush=True)
