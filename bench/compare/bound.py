"""A control group with a memory limit, including page cache, for a server that is measured in it.

The script creates the group at the root of the hierarchy and removes it at the end of the block. A
process belongs to the group in which it was created, and memory to the group that first touched it;
so this script enters the group while it starts the server. Supports both versions of the kernel's
interface; the first one where it controls memory.
"""
import os
import subprocess
import sys
import time
from contextlib import contextmanager

from javatools import die

ROOT = "/sys/fs/cgroup"
# The kernel updates a group's statistics at most every two seconds.
STAT_S = 3


class V1:
    """Files of version 1."""

    root = os.path.join(ROOT, "memory")
    limit = "memory.limit_in_bytes"
    # No swapping: a server that waits for its own memory is not what is measured.
    unswapped = ("memory.swappiness", "0")
    anonymous, page_cache = ("total_active_anon", "total_inactive_anon"), "total_cache"

    def own_group(line):
        """The path of the group, if the line of /proc/self/cgroup has it."""
        _, controllers, path = line.strip().split(":", 2)
        return path if "memory" in controllers.split(",") else None


class V2:
    """Files of version 2."""

    root = ROOT
    limit = "memory.max"
    unswapped = ("memory.swap.max", "0")
    anonymous, page_cache = ("active_anon", "inactive_anon"), "file"

    def own_group(line):
        """Like V1.own_group."""
        return line.strip()[len("0::"):] if line.startswith("0::") else None


class Bound:
    """A group with a limit of `limit_bytes`, for the duration of the block."""

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
            die(f"cannot create a control group: {error}; run as root where {self._version.root} is writable (in a "
                "container: with --privileged), or exclude the parts cold and ssd with --parts")
        self._write_if_there(*self._version.unswapped)
        return self

    def __exit__(self, *_):
        if self._ballast is not None:
            self._ballast.communicate()
        self._remove()

    @contextmanager
    def inside(self):
        """Processes started in this block belong to the group."""
        home = self._own_group()
        self._write("cgroup.procs", os.getpid())
        try:
            yield
        finally:
            with open(os.path.join(home, "cgroup.procs"), "w") as out:
                out.write(str(os.getpid()))

    def anonymous_bytes(self):
        """Memory of the group's processes, except pages of files."""
        # Not the mapped size: a huge page that was partly returned is charged in full.
        return sum(map(self._stat, self._version.anonymous))

    def page_cache_bytes(self):
        """Pages of files that are charged to the group."""
        return self._stat(self._version.page_cache)

    def leave_for_pages(self, spare_bytes):
        """Starts a process that holds memory of the group, so that only `spare_bytes` are left for
        pages of files."""
        time.sleep(STAT_S)
        taken = self.limit_bytes - self.anonymous_bytes() - spare_bytes
        if taken <= 0:
            return
        # Private, because shared memory counts as pages of a file.
        hold = ("import mmap, sys; held = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                "for at in range(0, len(held), mmap.PAGESIZE): held[at] = 1\n"
                "print(flush=True); sys.stdin.read()")
        with self.inside():
            self._ballast = subprocess.Popen([sys.executable, "-c", hold, str(taken)], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True)
        if not self._ballast.stdout.readline():
            die(f"cannot allocate {taken >> 20} MiB of ballast in {self._path}")

    def _own_group(self):
        with open("/proc/self/cgroup") as lines:
            path = next(filter(None, map(self._version.own_group, lines)), "/")
        # In a container the path may be the host's, which is not visible here.
        home = os.path.normpath(self._version.root + path)
        return home if os.path.isdir(home) else self._version.root

    def _allow_memory(self):
        """In version 2 a group has the memory files only if its parent enables them."""
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
        # The kernel takes a moment to notice that the last process has ended.
        for _ in range(50):
            try:
                return os.rmdir(self._path)
            except FileNotFoundError:
                return None
            except OSError:
                time.sleep(0.1)
        return print(f"cannot remove {self._path}: it is still in use", file=sys.stderr)
