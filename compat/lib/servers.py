"""Starts and stops the two servers that are compared: Grampus, and HBase in standalone mode.

A server is one process in its own session, on loopback, with data, log and pid below its directory.
A start fails if a port is taken. A stop ends only the process whose pid the start wrote, and only
if that process has the directory on its command line.
"""
import os
import signal
import socket
import subprocess
import time

from javatools import SERVER_OPENS, Endpoint, conf_directory, die, hbase_class_path, java

# Settings with which a killed HBase has all writes that it acknowledged. By default it keeps the last
# bytes of local files in memory of its process: a kill loses them, even if they were replicated.
RAW_FILES = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "hbase.wal.provider": "filesystem"}


class Server:
    """A running server process: its pid, endpoint and log."""

    def __init__(self, name, directory, endpoint, process=None, pid=None):
        self.name = name
        self.directory = directory
        self.endpoint = endpoint
        self.process = process
        self.pid = pid or process.pid
        # Start time by the monotonic clock, if it was started here.
        self.begun = None
        self.log = os.path.join(directory, "log")

    def running(self):
        if self.process is not None:
            return self.process.poll() is None
        return os.path.exists(f"/proc/{self.pid}")

    def _is_ours(self):
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as line:
                return self.directory.encode() in line.read()
        except FileNotFoundError:
            return False

    def stop(self, patience_s=60):
        """Sends SIGTERM, and SIGKILL after `patience_s`; returns the exit code if it is known."""
        if self.running() and self._is_ours():
            os.kill(self.pid, signal.SIGTERM)
            end = time.monotonic() + patience_s
            while self.running() and time.monotonic() < end:
                time.sleep(0.1)
            if self.running():
                os.kill(self.pid, signal.SIGKILL)
        code = self.process.wait() if self.process is not None else None
        pid_file = os.path.join(self.directory, "pid")
        if os.path.exists(pid_file):
            os.remove(pid_file)
        return code


def hbase(directory, port_offset=0, heap="1g", patience_s=300, settings=None, pages=False, jvm=(), wait=True,
          version="2.5"):
    """Starts HBase standalone (master, region server and ZooKeeper in one JVM) and waits until it
    serves. `version` is one of javatools.SERVER_VERSIONS.

    With `pages` master and region server have status pages, which make the start slower. `jvm` are
    further JVM options.
    """
    directory = _prepared(directory)
    endpoint = Endpoint(port_offset=port_offset)
    _refuse_taken(endpoint.ports())
    settings = {**_hbase_settings(directory, endpoint, pages), **(settings or {})}
    conf = conf_directory(settings, "info", os.path.join(directory, "conf"))
    command = [java(), *SERVER_OPENS, "-XX:+UseG1GC", f"-Xms{heap}", f"-Xmx{heap}", "-XX:-UsePerfData", *jvm,
               "-Djava.net.preferIPv4Stack=true", "-cp", f"{conf}:{hbase_class_path(tests=False, version=version)}",
               "org.apache.hadoop.hbase.master.HMaster", "start"]
    server = _spawn("HBase", directory, endpoint, command)
    if wait:
        _wait(server, patience_s, lambda: _log_has(server, b"Master has completed initialization"))
    return server


def _hbase_settings(directory, endpoint, pages):
    return {
        "hbase.rootdir": f"file://{directory}/root",
        "hbase.tmp.dir": f"{directory}/tmp",
        "hbase.cluster.distributed": "false",
        # The local file system has no hflush; HBase's own quick start sets this too.
        "hbase.unsafe.stream.capability.enforce": "false",
        # Releases compacted files soon, not after two minutes: parents of splits wait for that.
        "hbase.hfile.compaction.discharger.interval": 2000,
        "hbase.zookeeper.quorum": endpoint.host,
        "hbase.zookeeper.property.clientPort": endpoint.zookeeper,
        "hbase.zookeeper.property.dataDir": f"{directory}/zk",
        "hbase.localcluster.assign.random.ports": "false",
        "hbase.master.port": endpoint.master,
        "hbase.master.hostname": "localhost",
        "hbase.master.ipc.address": endpoint.host,
        "hbase.master.info.port": endpoint.master_pages if pages else -1,
        "hbase.master.info.bindAddress": endpoint.host,
        "hbase.regionserver.port": endpoint.region_server,
        "hbase.regionserver.hostname": "localhost",
        "hbase.regionserver.ipc.address": endpoint.host,
        "hbase.regionserver.info.port": endpoint.pages if pages else -1,
        "hbase.regionserver.info.bindAddress": endpoint.host,
    }


def grampus(binary, directory, port_offset=0, patience_s=30, settings=None, wait=True):
    """Starts the Grampus binary with its data below `directory` and waits until its ports
    answer."""
    directory = _prepared(directory)
    endpoint = Endpoint(port_offset=port_offset)
    _refuse_taken(endpoint.ports())
    if not os.access(binary, os.X_OK):
        die(f"{binary} is not an executable; build it with: cargo build --release")
    command = [os.path.abspath(binary), "--data", os.path.join(directory, "data"), "--port-offset", str(port_offset)]
    command += set_options(settings or {})
    server = _spawn("Grampus", directory, endpoint, command)
    if wait:
        _wait(server, patience_s, lambda: all(answers(port) for port in endpoint.ports()))
    return server


def set_options(settings):
    """Settings as options of a command of Grampus."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def attach(directory, port_offset=0):
    """The server that an earlier start left running in `directory`, or None."""
    directory = os.path.abspath(directory)
    try:
        with open(os.path.join(directory, "pid")) as pid_file:
            server = Server("server", directory, Endpoint(port_offset=port_offset), pid=int(pid_file.read()))
    except FileNotFoundError:
        return None
    return server if server.running() and server._is_ours() else None


def _prepared(directory):
    directory = os.path.abspath(directory)
    os.makedirs(directory, exist_ok=True)
    if attach(directory):
        die(f"a server already runs in {directory}")
    return directory


def _spawn(name, directory, endpoint, command):
    with open(os.path.join(directory, "log"), "wb") as log:
        begun = time.monotonic()
        # Its own working directory, so that files that a server writes to it stay there.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   cwd=directory, start_new_session=True)
    with open(os.path.join(directory, "pid"), "w") as pid_file:
        pid_file.write(str(process.pid))
    server = Server(name, directory, endpoint, process)
    server.begun = begun
    return server


def _wait(server, patience_s, ready):
    try:
        _wait_until(server, patience_s, ready)
    except BaseException:
        # Also if a signal ends the script: its caller does not have the server yet.
        server.stop()
        raise


def _wait_until(server, patience_s, ready):
    end = time.monotonic() + patience_s
    while not ready():
        if not server.running() or time.monotonic() > end:
            why = "ended" if not server.running() else f"was not ready after {patience_s} s"
            with open(server.log, errors="replace") as log:
                tail = "".join(log.readlines()[-15:])
            die(f"{server.name} {why}; the end of {server.log}:\n{tail}")
        time.sleep(0.1)


def _log_has(server, phrase):
    with open(server.log, "rb") as log:
        return phrase in log.read()


def answers(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_offset(first):
    """The first port offset of `first`, `first` + 100, ... whose ports are all free."""
    for offset in range(first, first + 2000, 100):
        if not any(answers(port) for port in Endpoint(port_offset=offset).ports()):
            return offset
    return die(f"no free ports at offsets {first} to {first + 2000}")


def _refuse_taken(ports):
    taken = [port for port in ports if answers(port)]
    if taken:
        die(f"port {taken[0]} is taken by another server; choose another --port-offset")
