"""A control group with a limit of memory, page cache included, for a server that is measured within it.

The group is the script's own, at the root of the hierarchy, and gone behind the block. A process belongs to the group
that it was born in, and memory to that which first touched it; so this script itself goes in for the moment in which it
starts the server. Both versions of the kernel's interface are known; the first where memory is under its rule.
"""
import os
import subprocess
import sys
import time
from contextlib import contextmanager

from javatools import die

ROOT = "/sys/fs/cgroup"
# The kernel brings a group's figures up to date no more often than each two seconds.
STAT_S = 3


class V1:
    """Files of version 1."""

    root = os.path.join(ROOT, "memory")
    limit = "memory.limit_in_bytes"
    # Nothing is swapped: a server that waits for its own memory is not what is measured.
    unswapped = ("memory.swappiness", "0")
    anonymous, page_cache = ("total_active_anon", "total_inactive_anon"), "total_cache"

    def own_group(line):
        """The path of the group, if the line of /proc/self/cgroup tells it."""
        _, controllers, path = line.strip().split(":", 2)
        return path if "memory" in controllers.split(",") else None


class V2:
    """Files of version 2."""

    root = ROOT
    limit = "memory.max"
    unswapped = ("memory.swap.max", "0")
    anonymous, page_cache = ("active_anon", "inactive_anon"), "file"

    def own_group(line):
        """The same."""
        return line.strip()[len("0::"):] if line.startswith("0::") else None


class Bound:
    """A group of so many bytes, as long as the block lasts."""

    def __init__(self, name, limit_bytes):
        self.limit_bytes = limit_bytes
        self._version = V1 if os.path.isdir(V1.root) else V2
        self._path = os.path.join(self._version.root, f"compare.{name}.{os.getpid()}")
        self._ballast = None

    def __enter__(self):
        try:
            self._allow_memory()
            os.mkdir(self._path)
            self._write(self._version.limit, self.limit_bytes)
        except OSError as error:
            self._remove()
            die(f"no control group can be made: {error}; run as root where {self._version.root} may be written (in a "
                "container: with --privileged), or leave the part cold out by --parts")
        self._write_if_there(*self._version.unswapped)
        return self

    def __exit__(self, *_):
        if self._ballast is not None:
            self._ballast.communicate()
        self._remove()

    @contextmanager
    def inside(self):
        """What is started in this block is in the group."""
        home = self._own_group()
        self._write("cgroup.procs", os.getpid())
        try:
            yield
        finally:
            with open(os.path.join(home, "cgroup.procs"), "w") as out:
                out.write(str(os.getpid()))

    def anonymous_bytes(self):
        """Memory of the group's processes that is no page of a file."""
        # Not what is mapped: a huge page of which a part was given back is charged whole.
        return sum(map(self._stat, self._version.anonymous))

    def page_cache_bytes(self):
        """Pages of files that are charged to the group."""
        return self._stat(self._version.page_cache)

    def leave_for_pages(self, spare_bytes):
        """Takes memory of the group until so much is left for pages of files, by a process that only holds it."""
        time.sleep(STAT_S)
        taken = self.limit_bytes - self.anonymous_bytes() - spare_bytes
        if taken <= 0:
            return
        # Private, for shared memory counts as pages of a file.
        hold = ("import mmap, sys; held = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                "for at in range(0, len(held), mmap.PAGESIZE): held[at] = 1\n"
                "print(flush=True); sys.stdin.read()")
        with self.inside():
            self._ballast = subprocess.Popen([sys.executable, "-c", hold, str(taken)], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True)
        if not self._ballast.stdout.readline():
            die(f"{taken >> 20} MiB of ballast cannot be had in {self._path}")

    def _own_group(self):
        with open("/proc/self/cgroup") as lines:
            path = next(filter(None, map(self._version.own_group, lines)), "/")
        # In a container the path may be the host's, which is not seen here.
        home = os.path.normpath(self._version.root + path)
        return home if os.path.isdir(home) else self._version.root

    def _allow_memory(self):
        """Version 2 has the files of memory only in groups whose parent allows it."""
        allowed = os.path.join(self._version.root, "cgroup.subtree_control")
        if self._version is V2:
            with open(allowed, "r+") as control:
                if "memory" not in control.read().split():
                    control.write("+memory")

    def _stat(self, name):
        with open(os.path.join(self._path, "memory.stat")) as lines:
            return next(int(line.split()[1]) for line in lines if line.split()[0] == name)

    def _write(self, file, value):
        with open(os.path.join(self._path, file), "w") as out:
            out.write(str(value))

    def _write_if_there(self, file, value):
        if os.path.exists(os.path.join(self._path, file)):
            self._write(file, value)

    def _remove(self):
        # The kernel takes a moment to see that the last process is gone.
        for _ in range(50):
            try:
                return os.rmdir(self._path)
            except FileNotFoundError:
                return None
            except OSError:
                time.sleep(0.1)
        return print(f"{self._path} is still in use and stays", file=sys.stderr)
