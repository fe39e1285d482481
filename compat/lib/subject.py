"""The server that a script tests: started by the script, or already running."""
import os
import shutil
import signal
import sys
import tempfile

import cluster
import hdfs
import servers
from javatools import COMPAT, TARGET, Endpoint, die

# First port offsets to try for servers started here: distinct from each other and from a user's
# own. Even if taken ports move them up, they stay below ephemeral ports.
HBASE_OFFSET = 9000
GRAMPUS_OFFSET = 12000


def add_options(parser):
    """Adds the options that choose a server."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--grampus", metavar="BINARY", help="start this binary; default: the newest below target/")
    choice.add_argument("--running", action="store_true", help="test a server that already runs")
    choice.add_argument("--hbase", action="store_true", help="start HBase and test it")
    parser.add_argument("--cluster", action="store_true",
                        help="start a cluster of 2 masters and 3 region servers, not one process")
    parser.add_argument("--hdfs", action="store_true",
                        help="with a cluster of Grampus: on an HDFS of 2 NameNodes (HA) and 3 DataNodes")
    Endpoint.add_options(parser)
    return choice


def chosen(arguments, settings=None):
    """The chosen server, as a context manager with `name`, `endpoint` and `server`. `settings` do
    not apply to a server that already runs."""
    if arguments.running:
        return Running(Endpoint.of(arguments))
    if arguments.cluster:
        return clustered(arguments, settings=settings)
    if arguments.hbase:
        return hbase(settings=settings)
    return grampus(arguments.grampus, arguments.port_offset, settings)


def clustered(arguments, **how):
    """The chosen cluster; `how` is passed to it."""
    if arguments.hbase:
        return cluster.HBase(**how)
    storage = hdfs.Hdfs(datanodes=3, ha=True, network=how.get("network")) if arguments.hdfs else None
    return cluster.Grampus(arguments.grampus or newest_grampus(), hdfs=storage, **how)


def hbase(heap="1g", settings=None, **how):
    """A fresh HBase; `how` is passed to servers.hbase."""
    return Started("hbase", lambda: servers.free_offset(HBASE_OFFSET), lambda directory, offset: servers.hbase(
        directory, offset, heap, settings=settings, **how))


def grampus(binary=None, port_offset=0, settings=None, **how):
    """A fresh Grampus, by default the newest binary, on free ports; `how` is passed to
    servers.grampus."""
    binary = binary or newest_grampus()
    return Started("grampus", lambda: port_offset or servers.free_offset(GRAMPUS_OFFSET),
                   lambda directory, offset: servers.grampus(binary, directory, offset, settings=settings, **how))


def newest_grampus():
    """The most recently built binary."""
    built = [os.path.join(COMPAT, "..", "target", profile, "grampus") for profile in ("debug", "release")]
    built = [os.path.normpath(path) for path in built if os.path.exists(path)]
    if not built:
        die("no grampus below target/; build it with: cargo build, or name one with --grampus")
    return max(built, key=os.path.getmtime)


def newest_sql():
    """The most recently built grampus-sql."""
    targets = [os.environ.get("CARGO_TARGET_DIR"), *(os.path.join(COMPAT, "..", *place) for place in (("sql", "target"), ("target", "sql")))]
    built = [os.path.join(target, profile, "grampus-sql") for target in targets if target for profile in ("debug", "release")]
    built = [os.path.normpath(path) for path in built if os.path.exists(path)]
    if not built:
        die("no grampus-sql below sql/target; build it with: cd sql && cargo build, or name one with --sql")
    return max(built, key=os.path.getmtime)


class Running:
    """A server that was not started by the script, which does not stop it."""

    name = "running"
    server = None

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class Started:
    """A server in a fresh directory below target; the directory is kept only if something fails."""

    def __init__(self, name, offset, start):
        self.name = name
        self._offset = offset
        self._start = start
        self.server = None

    def __enter__(self):
        # SIGTERM must run __exit__ too, so that no server is left running.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
        os.makedirs(TARGET, exist_ok=True)
        self.directory = tempfile.mkdtemp(prefix=f"{self.name}.", dir=TARGET)
        self._offset = self._offset()
        self.server = self._start(self.directory, self._offset)
        self.endpoint = self.server.endpoint
        return self

    def kill(self):
        """Kills the process like `kill -9`, and returns when it has ended."""
        self.server.process.kill()
        self.server.process.wait()

    def start_again(self):
        """Restarts the process with the same data and ports."""
        self.server = self._start(self.directory, self._offset)

    def __exit__(self, kind, *_):
        ended_early = not self.server.running()
        self.server.stop()
        if ended_early:
            print(f"{self.server.name} ended during the run; its log: {self.server.log}", file=sys.stderr)
        elif kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)
