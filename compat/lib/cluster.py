"""A cluster of processes on this machine: ZooKeeper servers, masters and region servers.

A cluster is a context manager. Its processes, `zk0`, `master0`, `rs0` and so on, can be started,
killed, paused and resumed by name. All share one data directory, which is fresh and below
compat/target/cluster, as are their logs; the directory is kept if something fails. Only processes
that were started here are ended.

Without a network of its own, all processes listen on free ports of loopback. With one
(`network.Network`), each process has its own address, and can be partitioned from the others.
"""
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from beans import HBASE
from javatools import COMPAT, SERVER_OPENS, TARGET, Endpoint, conf_directory, die, hbase_class_path, java, maven
from servers import set_options

# ZooKeeper's unit of time. Sessions last 2 to 20 ticks, and end up to one tick late.
TICK_MS = 500
SESSION_MS = 10_000
START_PATIENCE_S = 60
HBASE_START_PATIENCE_S = 240
STOP_PATIENCE_S = 30
ZOOKEEPER = "zookeeper-3.8"
# The address of all processes in a cluster without its own network.
LOOPBACK = "127.0.0.1"


def zookeeper_jars():
    """The class path of a ZooKeeper server."""
    output = os.path.join(TARGET, "zookeeper", ZOOKEEPER)
    maven(os.path.join(COMPAT, "zookeeper"), output, f"-P{ZOOKEEPER}")
    return f"{output}/lib/*"


def thread_states(pid):
    """The states of the threads of a process, such as T for a stopped one."""
    for thread in glob.glob(f"/proc/{pid}/task/*/stat"):
        with contextlib.suppress(OSError), open(thread, encoding="utf-8", errors="replace") as stat:
            # The name of the thread, in parentheses, may have any characters.
            yield stat.read().rpartition(")")[2].split()[0]


class Member:
    """A process of the cluster, which may be started several times."""

    def __init__(self, name, directory, host, command, prefix=()):
        self.name = name
        self.host = host
        self.log = os.path.join(directory, name + ".log")
        self.paused = False
        self.process = None
        self._directory = os.path.join(directory, name)
        self._command = [*prefix, *command]

    def start(self):
        assert not self.running(), f"{self.name} runs already"
        os.makedirs(self._directory, exist_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self._directory, start_new_session=True)
        self.paused = False

    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """Ends the process like `kill -9`, and returns when it has ended."""
        if self.running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def pause(self):
        """Stops all threads. On a busy machine, some run on for a while after the signal, and may
        still acknowledge writes, which is correct."""
        self.process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + STOP_PATIENCE_S
        while self.running() and any(state != "T" for state in thread_states(self.pid)):
            if time.monotonic() > end:
                die(f"{self.name} does not stop after SIGSTOP")
            time.sleep(0.001)
        self.paused = True

    def resume(self):
        if self.running():
            self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def stop(self, patience_s=STOP_PATIENCE_S):
        """Sends SIGTERM, and SIGKILL after `patience_s`; returns the exit code."""
        if self.running():
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                print(f"{self.name} did not end within {patience_s} s of SIGTERM; see {self.log}", file=sys.stderr)
        self.kill()
        return self.process.returncode if self.process is not None else None

    def end_of_log(self, lines=15):
        try:
            with open(self.log, errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except FileNotFoundError:
            return ""


class ClusterEndpoint(Endpoint):
    """The addresses of a cluster: all its ZooKeeper servers, masters and region servers."""

    def __init__(self, zookeepers, masters, region_servers, pages, master_pages):
        super().__init__(zookeepers[0][0])
        # Each port is chosen separately.
        self.port_offset = None
        self.zookeepers, self.masters, self.region_servers = zookeepers, masters, region_servers
        # The first of each kind, for clients that know one server.
        self.zookeeper = zookeepers[0][1]
        self.master, self.region_server = masters[0][1], region_servers[0][1]
        self.pages, self.master_pages = pages[0][1], master_pages[0][1]

    def quorum(self):
        return _joined(self.zookeepers)

    def settings(self, registry):
        package = "org.apache.hadoop.hbase.client."
        if registry == "zk":
            return {"hbase.zookeeper.quorum": self.quorum(), "hbase.zookeeper.property.clientPort": self.zookeeper}
        if registry == "rpc":
            return {"hbase.client.registry.impl": package + "RpcConnectionRegistry",
                    "hbase.client.bootstrap.servers": _joined(self.region_servers)}
        if registry == "master":
            return {"hbase.client.registry.impl": package + "MasterRegistry", "hbase.masters": _joined(self.masters)}
        raise ValueError(registry)


def _joined(addresses):
    return ",".join(f"{host}:{port}" for host, port in addresses)


class Members:
    """Processes that a subclass has in `members`, by name."""

    members = {}

    def start(self, name):
        self.members[name].start()

    def kill(self, name):
        self.members[name].kill()

    def pause(self, name):
        self.members[name].pause()

    def resume(self, name):
        self.members[name].resume()


class Cluster(Members):
    """The processes of a cluster; `start` in a subclass returns the command of a master or region
    server."""

    # Processes whose end is expected to take long.
    patience_s = START_PATIENCE_S

    def __init__(self, name, masters=2, region_servers=3, zookeepers=1, settings=None, session_ms=SESSION_MS,
                 network=None, wait=True):
        self.name = name
        self.session_ms = session_ms
        self.settings = dict(settings or {})
        self._network = network
        self._wait = wait
        self._ports = Ports(network)
        self.zookeepers = [f"zk{at}" for at in range(zookeepers)]
        self.masters = [f"master{at}" for at in range(masters)]
        self.region_servers = [f"rs{at}" for at in range(region_servers)]
        self.members = {}
        self.directory = None
        self._failed = False

    # The life of the cluster.

    def __enter__(self):
        # SIGTERM must run __exit__ too, so that no server is left running.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
        parent = os.path.join(TARGET, "cluster")
        os.makedirs(parent, exist_ok=True)
        self.directory = tempfile.mkdtemp(prefix=f"{self.name}.", dir=parent)
        self.prepare()
        try:
            self._start_all()
        except BaseException:
            self._stop_all()
            raise
        return self

    def _start_all(self):
        addresses = {name: (self.host(name), self._ports.take(name)) for name in
                     [*self.zookeepers, *self.masters, *self.region_servers]}
        self.pages = {name: (self.host(name), self._ports.take(name + " pages"))
                      for name in [*self.masters, *self.region_servers]}
        self.endpoint = ClusterEndpoint(*([addresses[name] for name in names] for names in (
            self.zookeepers, self.masters, self.region_servers)), *([self.pages[name] for name in names] for names in (
                self.region_servers, self.masters)))
        for name, command in self._zookeeper_commands(addresses):
            self._add(name, command)
        self._start_zookeeper()
        for name in [*self.masters, *self.region_servers]:
            self._add(name, self.command(name, *addresses[name], self.pages[name][1]))
            self.members[name].start()
        if self._wait:
            self._await("the cluster", self.patience_s, self.is_serving, may_end=False)

    def __exit__(self, kind, *_):
        ended = [name for name, member in self.members.items() if not member.running()]
        self._stop_all()
        if kind is not None or self._failed:
            print(f"the data and logs of the cluster: {self.directory}", file=sys.stderr)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
        if ended:
            print(f"{self.name}: ended during the run: {', '.join(ended)}", file=sys.stderr)

    def keep(self):
        """Keeps the directory: the caller found a failure."""
        self._failed = True

    def _stop_all(self):
        # Masters first: they need not recover region servers that are stopped.
        for names in (self.masters, self.region_servers, self.zookeepers):
            running = [self.members[name] for name in names if name in self.members and self.members[name].running()]
            for member in running:
                member.resume()
                member.process.terminate()
            for member in running:
                member.stop()
        if self._network:
            for name in self.members:
                self._network.heal(name)

    # What subject.Started has.

    @property
    def server(self):
        return self.members[self.region_servers[0]]

    # Processes by name.

    def _add(self, name, command):
        prefix = self._network.prefix(name) if self._network else ()
        self.members[name] = Member(name, self.directory, self.host(name), command, prefix)

    def host(self, name):
        return self._network.add(name) if self._network else LOOPBACK

    def restart(self, name):
        """Ends the process like `kill -9`, and starts it again."""
        self.kill(name)
        self.start(name)

    def running(self, names):
        return [name for name in names if self.members[name].running() and not self.members[name].paused]

    # ZooKeeper.

    def _zookeeper_commands(self, addresses):
        jars = zookeeper_jars()
        peers = {name: (self._ports.take(name + " quorum"), self._ports.take(name + " election"))
                 for name in self.zookeepers} if len(self.zookeepers) > 1 else {}
        for at, name in enumerate(self.zookeepers):
            host, port = addresses[name]
            directory = os.path.join(self.directory, name)
            os.makedirs(os.path.join(directory, "data"))
            with open(os.path.join(directory, "data", "myid"), "w") as out:
                out.write(str(at + 1))
            with open(os.path.join(directory, "zoo.cfg"), "w") as out:
                out.write(f"tickTime={TICK_MS}\ninitLimit=20\nsyncLimit=6\ndataDir={directory}/data\n"
                          f"clientPort={port}\nclientPortAddress={host}\nadmin.enableServer=false\n"
                          "maxClientCnxns=0\n4lw.commands.whitelist=*\n")
                for other, (peer, (quorum, election)) in enumerate(peers.items()):
                    out.write(f"server.{other + 1}={self.host(peer)}:{quorum}:{election}\n")
            main = "org.apache.zookeeper.server." + ("quorum.QuorumPeerMain" if peers else "ZooKeeperServerMain")
            yield name, [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
                         "-Djava.net.preferIPv4Stack=true", "-cp", jars, main, f"{directory}/zoo.cfg"]

    def _start_zookeeper(self):
        for name in self.zookeepers:
            self.members[name].start()
        self._await("ZooKeeper", START_PATIENCE_S, lambda: all(
            b"Mode: " in four_letters(*address, b"srvr") for address in self.endpoint.zookeepers), may_end=False)

    # The state of the cluster.

    def master_status(self):
        """The name and the beans of the active master; None if no master is active and answers."""
        for name in self.running(self.masters):
            beans = self.beans(name, "Master,sub=Server", "Master,sub=AssignmentManager")
            if beans and str(beans.get("Master,sub=Server", {}).get("tag.isActiveMaster")) == "true":
                return name, beans
        return None

    def active_master(self):
        """The name of the active master, or None."""
        status = self.master_status()
        return status and status[0]

    def beans(self, name, *chosen):
        """Chosen beans of a process, by the part of their name after the service; None if it does
        not answer. A master that waits for its election does not."""
        host, port = self.pages[name]
        found = {}
        try:
            for bean in chosen:
                with urllib.request.urlopen(f"http://{host}:{port}/jmx?qry={HBASE}{bean}", timeout=2) as answer:
                    found.update({bean: shown for shown in json.load(answer)["beans"]})
        except (OSError, ValueError):
            return None
        return found

    def region_count(self, name):
        """The number of open regions of a region server; None if it does not answer."""
        beans = self.beans(name, "RegionServer,sub=Server")
        return beans and beans.get("RegionServer,sub=Server", {}).get("regionCount")

    def is_serving(self):
        """Whether a master is active and initialized, knows all running region servers and no
        other, and has opened all regions."""
        status = self.master_status()
        if not status:
            return False
        beans = status[1]
        server, assignment = beans["Master,sub=Server"], beans.get("Master,sub=AssignmentManager", {})
        live = [name for name in server.get("tag.liveRegionServers", "").split(";") if name]
        return (server.get("masterFinishedInitializationTime", 0) > 0 and assignment.get("ritCount") == 0
                and len(live) == len(self.running(self.region_servers)))

    def wait_until_serving(self, patience_s=START_PATIENCE_S):
        return self._await("the cluster", patience_s, self.is_serving)

    def _await(self, what, patience_s, condition, may_end=True):
        """Waits for a condition, and returns the seconds that it took."""
        begin = time.monotonic()
        while not condition():
            ended = [name for name, member in self.members.items() if member.process and not member.running()]
            ended = [] if may_end else ended
            if ended or time.monotonic() - begin > patience_s:
                self.keep()
                name = (ended or [*self.masters, *self.zookeepers])[0]
                why = f"{', '.join(ended)} ended" if ended else f"{what} was not ready after {patience_s} s"
                print(f"the logs: {self.directory}", file=sys.stderr)
                die(f"{why}; the end of {name}.log:\n{self.members[name].end_of_log()}")
            time.sleep(0.1)
        return time.monotonic() - begin

    # For subclasses.

    @property
    def root(self):
        """The directory of tables and logs, which all processes share."""
        raise NotImplementedError

    def prepare(self):
        """Prepares the directory."""

    def command(self, name, host, port, pages):
        """The command that starts a master or region server."""
        raise NotImplementedError


class Grampus(Cluster):
    """A cluster of Grampus: on a directory of this machine, or on `hdfs`: an `hdfs.Hdfs` that is
    not started yet, or an `hdfs.Started`. There its root has the name `root_name`."""

    def __init__(self, binary, memory="1g", hdfs=None, root_name="hbase", **how):
        super().__init__("grampus", **how)
        self.hdfs = hdfs
        self._root_name = root_name
        if not os.access(binary, os.X_OK):
            die(f"{binary} is not an executable; build it with: cargo build --release")
        self._binary = os.path.abspath(binary)
        self._memory = memory

    def __enter__(self):
        if self.hdfs:
            self.hdfs.__enter__()
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if self.hdfs:
            self.hdfs.__exit__(*exception)

    @property
    def root(self):
        return f"{self.hdfs.url}/{self._root_name}" if self.hdfs else os.path.join(self.directory, "data")

    def command(self, name, host, port, pages):
        role = "master" if name in self.masters else "regionserver"
        settings = {
            **(self.hdfs.client_settings() if self.hdfs else {}),
            "hbase.rootdir": self.root,
            "hbase.zookeeper.quorum": self.endpoint.quorum(),
            "hbase.zookeeper.property.clientPort": self.endpoint.zookeeper,
            "zookeeper.session.timeout": self.session_ms,
            "grampus.memory": self._memory,
            f"hbase.{role}.port": port,
            f"hbase.{role}.info.port": pages,
            **self.settings,
        }
        command = [self._binary, role]
        if self._network:
            command += ["--bind", self._network.address(name), "--host", host]
        return command + set_options(settings)


class HBase(Cluster):
    """A cluster of HBase: on `hdfs`, an `hdfs.Started`, or on the local file system. There a killed
    process loses nothing that it flushed, because the kernel has it. `version` is one of
    javatools.SERVER_VERSIONS."""

    patience_s = HBASE_START_PATIENCE_S

    def __init__(self, heap="512m", hdfs=None, root_name="hbase", version="2.5", **how):
        super().__init__("hbase", **how)
        self._version = version
        self._heap = heap
        self._hdfs = hdfs
        self._root_name = root_name

    @property
    def root(self):
        return f"{self._hdfs.url}/{self._root_name}" if self._hdfs else f"file://{self.directory}/root"

    def _storage_settings(self):
        if self._hdfs:
            return self._hdfs.client_settings()
        # The local file system has no hflush.
        return {"hbase.unsafe.stream.capability.enforce": "false", "hbase.wal.provider": "filesystem"}

    def command(self, name, host, port, pages):
        role = "master" if name in self.masters else "regionserver"
        directory = os.path.join(self.directory, name)
        settings = {
            **self._storage_settings(),
            "hbase.rootdir": self.root,
            "hbase.tmp.dir": f"{directory}/tmp",
            "hbase.cluster.distributed": "true",
            "hbase.zookeeper.quorum": self.endpoint.quorum(),
            "hbase.zookeeper.property.clientPort": self.endpoint.zookeeper,
            "zookeeper.session.timeout": self.session_ms,
            "hbase.hfile.compaction.discharger.interval": 2000,
            f"hbase.{role}.port": port,
            f"hbase.{role}.info.port": pages,
            f"hbase.{role}.info.bindAddress": host,
            f"hbase.{role}.hostname": "localhost" if host == LOOPBACK else host,
            f"hbase.{role}.ipc.address": host,
            "hbase.master.info.port" if role == "regionserver" else "hbase.regionserver.info.port": -1,
            **self.settings,
        }
        conf = conf_directory(settings, "info", os.path.join(directory, "conf"),
                              core={"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"})
        main = "master.HMaster" if role == "master" else "regionserver.HRegionServer"
        return [java(), *SERVER_OPENS, "-XX:+UseG1GC", f"-Xms{self._heap}", f"-Xmx{self._heap}", "-XX:-UsePerfData",
                "-Djava.net.preferIPv4Stack=true", "-cp", f"{conf}:{hbase_class_path(tests=False, version=self._version)}",
                f"org.apache.hadoop.hbase.{main}", "start"]


class Ports:
    """Ports for the processes: free ones of loopback, or HBase's own in a network where each
    process has its own address."""

    def __init__(self, network):
        self._has_network = network is not None
        self._taken = set()

    def take(self, purpose):
        if self._has_network:
            return {"zk": 2181, "ma": 16000, "rs": 16020}[purpose[:2]] + {
                "pages": 10, "quorum": 700, "election": 1700}.get(purpose.partition(" ")[2], 0)
        while True:
            # The system does not give these ports to connections.
            port = random.randrange(20_000, 30_000)
            if port in self._taken:
                continue
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)):
                    self._taken.add(port)
                    return port


def four_letters(host, port, word):
    """ZooKeeper's response to one of its commands of four letters; empty if there is none."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(word)
            return b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return b""
