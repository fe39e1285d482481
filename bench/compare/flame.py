"""CPU profiles of a server: stacks sampled by perf, drawn as flame graphs by inferno."""
import collections
import os
import subprocess

import symbols
from javatools import die

# Samples per second; not 1,000, so that it does not run in step with events that occur each
# millisecond.
FREQUENCY_HZ = 997
# The release build has no frame pointers: perf records this many bytes of a stack, which are
# unwound later with the unwind tables. With half as many, a quarter of the stacks of gets is
# truncated; with four times as many, as many as now: a read from a socket uses 64 KiB of the stack,
# which is more than perf can record, so it appears without its callers.
STACK_BYTES = 16 << 10
INFERNO = "0.12.8"
# Frames narrower than this percentage are omitted, which keeps the files small.
FRAME_MIN_PERCENT = "0.3"


class Stacks:
    """The number of samples of each stack; a stack is the thread's name, then functions from the
    outermost to the innermost."""

    def __init__(self, counts):
        self._counts = counts

    def __len__(self):
        return sum(self._counts.values())

    def itself(self):
        """Shares of functions in the time, without their callees, highest first."""
        return self._shares(lambda stack: stack[-1])

    def owners(self):
        """Shares of crates, highest first."""
        return self._shares(lambda stack: symbols.owner(stack[-1]))

    def threads(self):
        return self._shares(lambda stack: stack[0])

    def lines(self):
        return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(self._counts.items()))

    def _shares(self, part):
        sums = collections.Counter()
        for stack, count in self._counts.items():
            sums[part(stack)] += count
        return [(name, count / len(self)) for name, count in sums.most_common()]


def record(pid, seconds, path):
    """Starts perf, which writes samples of a process to a file; returns its process."""
    return subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY_HZ), "--call-graph",
                             f"dwarf,{STACK_BYTES}", "-p", str(pid), "-o", path, "--", "sleep", str(seconds)],
                            stderr=subprocess.PIPE, text=True)


def stacks(path, tools):
    """The stacks in a file of samples."""
    # Without periods, which would be counted instead of samples. An inlined function counts for its
    # caller: resolving it would make perf run another program for each address.
    script = subprocess.run(["perf", "script", "--no-inline", "-F", "comm,pid,tid,time,event,ip,sym,dso", "-i", path],
                            capture_output=True, text=True)
    if script.returncode:
        die(f"perf script failed:\n{script.stderr.strip()}")
    folded = pipe([os.path.join(tools, "inferno-collapse-perf"), "--kernel", "--quiet"], script.stdout)
    counts = collections.Counter()
    for line in folded.splitlines():
        stack, count = line.rsplit(" ", 1)
        counts[_shortened(stack.split(";"))] += int(count)
    return Stacks(counts)


def _shortened(stack):
    """A stack without the frames that start every thread, and without `[unknown]` where it is
    truncated."""
    thread, *functions = stack
    functions = [symbols.short(function) for function in functions]
    while len(functions) > 1 and symbols.BEGINNINGS.match(functions[0]):
        functions.pop(0)
    # Threads of a pool differ only in their numbers.
    return (thread.rstrip("0123456789").rstrip("-"), *functions)


def draw(stacks, title, subtitle, path, tools):
    """Draws a flame graph; a function has the same colour in every picture."""
    svg = pipe([os.path.join(tools, "inferno-flamegraph"), "--title", title, "--subtitle", subtitle, "--minwidth",
                FRAME_MIN_PERCENT, "--deterministic", "--colors", "rust", "--bgcolors", "#ffffff", "--fonttype",
                "monospace", "--quiet"], stacks.lines())
    with open(path, "w", encoding="utf-8") as out:
        out.write(svg)


def installed(directory):
    """The directory of inferno's programs, which are built if they do not exist."""
    programs = os.path.join(directory, "bin")
    if not os.path.exists(os.path.join(programs, "inferno-flamegraph")):
        print(f"installing inferno {INFERNO} below {directory}", flush=True)
        install = ["cargo", "install", "--quiet", "--locked", "--root", directory, "inferno", "--version", INFERNO]
        if subprocess.run(install).returncode:
            die("cargo install inferno failed")
    return programs


def pipe(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        die(f"{os.path.basename(command[0])} failed:\n{done.stderr.strip()}")
    return done.stdout
