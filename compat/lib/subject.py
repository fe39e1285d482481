"""The server that a script is pointed at: started for the occasion, or already running."""
import os
import shutil
import signal
import sys
import tempfile

import servers
from javatools import COMPAT, TARGET, Endpoint, die

# First port offsets tried for servers started here: apart from each other, from a user's own, and, as far
# as they may be moved up when taken, from ephemeral ports.
HBASE_OFFSET = 9000
GRAMPUS_OFFSET = 12000


def add_options(parser):
    """Adds the options that choose a server."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--grampus", metavar="BINARY", help="start this binary; default: the newest below target/")
    choice.add_argument("--running", action="store_true", help="ask a server that already runs")
    choice.add_argument("--hbase", action="store_true", help="start real HBase and ask it")
    Endpoint.add_options(parser)
    return choice


def chosen(arguments, settings=None):
    """The server that the options choose, as a context manager with `name`, `endpoint` and `server`. One that runs
    already has the settings that it has."""
    if arguments.running:
        return Running(Endpoint.of(arguments))
    if arguments.hbase:
        return hbase(settings=settings)
    return grampus(arguments.grampus, arguments.port_offset, settings)


def hbase(heap="1g", settings=None, **how):
    """A fresh HBase; `how` is what servers.hbase takes."""
    return Started("hbase", lambda: servers.free_offset(HBASE_OFFSET), lambda directory, offset: servers.hbase(
        directory, offset, heap, settings=settings, **how))


def grampus(binary=None, port_offset=0, settings=None, **how):
    """A fresh Grampus, by default the binary built last, at ports that are free; `how` is what servers.grampus takes."""
    binary = binary or newest_grampus()
    return Started("grampus", lambda: port_offset or servers.free_offset(GRAMPUS_OFFSET),
                   lambda directory, offset: servers.grampus(binary, directory, offset, settings=settings, **how))


def newest_grampus():
    """The binary that was built last."""
    built = [os.path.join(COMPAT, "..", "target", profile, "grampus") for profile in ("debug", "release")]
    built = [os.path.normpath(path) for path in built if os.path.exists(path)]
    if not built:
        die("no grampus below target/; build it with: cargo build, or name one with --grampus")
    return max(built, key=os.path.getmtime)


def newest_sql():
    """The grampus-sql that was built last."""
    targets = [os.environ.get("CARGO_TARGET_DIR"), *(os.path.join(COMPAT, "..", *place) for place in (("sql", "target"), ("target", "sql")))]
    built = [os.path.join(target, profile, "grampus-sql") for target in targets if target for profile in ("debug", "release")]
    built = [os.path.normpath(path) for path in built if os.path.exists(path)]
    if not built:
        die("no grampus-sql below sql/target; build it with: cd sql && cargo build, or name one with --sql")
    return max(built, key=os.path.getmtime)


class Running:
    """A server that somebody else started and stops."""

    name = "running"
    server = None

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class Started:
    """A server in a fresh directory below target; the directory is kept only if something went wrong."""

    def __init__(self, name, offset, start):
        self.name = name
        self._offset = offset
        self._start = start
        self.server = None

    def __enter__(self):
        # A run that is told to end leaves through __exit__ as well, so that no server stays behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
        os.makedirs(TARGET, exist_ok=True)
        self.directory = tempfile.mkdtemp(prefix=f"{self.name}.", dir=TARGET)
        self._offset = self._offset()
        self.server = self._start(self.directory, self._offset)
        self.endpoint = self.server.endpoint
        return self

    def kill(self):
        """Ends the process as `kill -9` does, and returns when it is gone."""
        self.server.process.kill()
        self.server.process.wait()

    def start_again(self):
        """Starts the process anew over the same data, at the same ports."""
        self.server = self._start(self.directory, self._offset)

    def __exit__(self, kind, *_):
        ended_early = not self.server.running()
        self.server.stop()
        if ended_early:
            print(f"{self.server.name} ended during the run; its log: {self.server.log}", file=sys.stderr)
        elif kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)
