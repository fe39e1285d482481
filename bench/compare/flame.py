"""Where a server's processor time goes: stacks taken by perf, drawn as flame graphs by inferno."""
import collections
import os
import subprocess

import symbols
from javatools import die

# Samples a second; not 1,000, so that it does not go with what happens each millisecond.
FREQUENCY_HZ = 997
# The release build has no frame pointers: so many bytes of a stack are kept, and unwound later by the tables for panics. At half
# as many a quarter of the stacks of gets is cut, at four times as many no fewer than now: a read from a socket goes by way of
# 64 KiB of the stack, which is more than perf keeps, so it stands on its own.
STACK_BYTES = 16 << 10
INFERNO = "0.12.8"
# Frames narrower than this share of all, in percent, are left out, and so is what a picture would take to hold them.
FRAME_MIN_PERCENT = "0.3"


class Stacks:
    """How often each stack was met; a stack is its functions from the outermost to the innermost, the thread's name first."""

    def __init__(self, counts):
        self._counts = counts

    def __len__(self):
        return sum(self._counts.values())

    def itself(self):
        """Shares of functions in the time, without what they call, the greatest first."""
        return self._shares(lambda stack: stack[-1])

    def owners(self):
        """Shares of crates, likewise."""
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
    """Takes samples of a process into a file; the process that does so."""
    return subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY_HZ), "--call-graph",
                             f"dwarf,{STACK_BYTES}", "-p", str(pid), "-o", path, "--", "sleep", str(seconds)],
                            stderr=subprocess.PIPE, text=True)


def stacks(path, tools):
    """The stacks in a file of samples."""
    # Without periods, which would be counted instead of samples. What is inlined is counted for the function that it is in:
    # perf would ask another program what each address is.
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
    """A stack without what is below all of a thread's, and without `[unknown]` where it is cut."""
    thread, *functions = stack
    functions = [symbols.short(function) for function in functions]
    while len(functions) > 1 and symbols.BEGINNINGS.match(functions[0]):
        functions.pop(0)
    # Threads of a pool differ in their numbers only.
    return (thread.rstrip("0123456789").rstrip("-"), *functions)


def draw(stacks, title, subtitle, path, tools):
    """A flame graph, the same colour for a function in each picture."""
    svg = pipe([os.path.join(tools, "inferno-flamegraph"), "--title", title, "--subtitle", subtitle, "--minwidth",
                FRAME_MIN_PERCENT, "--deterministic", "--colors", "rust", "--bgcolors", "#ffffff", "--fonttype",
                "monospace", "--quiet"], stacks.lines())
    with open(path, "w", encoding="utf-8") as out:
        out.write(svg)


def installed(directory):
    """The directory of inferno's programs, which are built if they are not there."""
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
