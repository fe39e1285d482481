"""A real HDFS on loopback: one NameNode or two (HA), and DataNodes, each a JVM of its own.

It is a context manager. Its processes, `nn0`, `dn0` and so on, can be killed, started, paused and
resumed by name. Data and logs are in a fresh directory below compat/target/hdfs-runs, which is kept
if something fails. Only processes that were started here are ended.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from cluster import Member, Members
from javatools import COMPAT, SERVER_OPENS, TARGET, java, maven, write_site

# Free space without which runs with many killed writers fail.
FREE_BYTES_WANTED = 32 << 30
HOST = "127.0.0.1"
SERVICE = "ns"
START_PATIENCE_S = 90
HDFS = "org.apache.hadoop.hdfs."
NAMENODE = HDFS + "server.namenode.NameNode"
DATANODE = HDFS + "server.datanode.DataNode"
RAM_DISK = "RAM_DISK"
# The DataNode with such a directory: a source file, which `java` compiles. And the memory that it may use.
RAM_DATANODE = os.path.join(COMPAT, "hdfs", "UnlockedDataNode.java")
RAM_BYTES = 2 << 30
# Between two copies from memory to disks.
RAM_COPY_S = 1
SATISFIER = HDFS + "server.sps.ExternalStoragePolicySatisfier"
# A satisfier that moves replicas as soon as it can, and not after minutes.
SATISFIER_SETTINGS = {
    "dfs.storage.policy.satisfier.mode": "external",
    "dfs.storage.policy.satisfier.recheck.timeout.millis": 3000,
    "dfs.storage.policy.satisfier.self.retry.timeout.millis": 10_000,
    "dfs.storage.policy.satisfier.datanode.cache.refresh.interval.ms": 1000,
}
# The file that fills a disk.
FILLER = "filler"
# Maximum heap of each process.
HEAP = "256m"
LOGGING = """log4j.rootLogger=INFO,console
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %m%n
"""


def jars():
    """The class path of the daemons and tools."""
    output = os.path.join(TARGET, "hdfs")
    maven(os.path.join(COMPAT, "hdfs"), output)
    return f"{output}/lib/*"


def free_ports(count):
    """Ports of loopback that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Hdfs(Members):
    """The processes of an HDFS; `settings` are further settings of hdfs-site.xml.

    With `storage_types`, such as SSD and DISK, each DataNode has a directory of each type. With
    `satisfier`, the process `sps` moves replicas to where storage policies say. With a `network`, each
    NameNode and DataNode has its own address there, and can be slowed or partitioned. With `disk_mib`,
    each DataNode has a disk of this size in memory, which can be filled; the script needs a mount
    namespace of its own.
    """

    def __init__(self, datanodes=3, ha=False, settings=None, storage_types=(), satisfier=False, network=None,
                 disk_mib=None):
        self.namenodes = ["nn0", "nn1"] if ha else ["nn0"]
        self.active = "nn0"
        self.datanodes = [f"dn{index}" for index in range(datanodes)]
        self.members = {}
        self._settings = dict(settings or {})
        self._daemon_settings = SATISFIER_SETTINGS if satisfier else {}
        self._storage_types = storage_types
        self._satisfier = ["sps"] if satisfier else []
        self._network = network
        self._disk_mib = disk_mib
        self._keeps = False

    def __enter__(self):
        # SIGTERM must run __exit__ too, so that no process is left running.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
        self._class_path = jars()
        parent = os.path.join(TARGET, "hdfs-runs")
        os.makedirs(parent, exist_ok=True)
        if self._disk_mib is None and shutil.disk_usage(parent).free < FREE_BYTES_WANTED:
            print(f"less than {FREE_BYTES_WANTED >> 30} GiB are free in {parent}: the NameNode counts a whole block for every file that "
                  "is being written, and may refuse new files", flush=True)
        self.directory = tempfile.mkdtemp(prefix="run.", dir=parent)
        try:
            self._start_all()
        except BaseException:
            self._keeps = True
            self._stop_all()
            raise
        return self

    def __exit__(self, kind, *_):
        self._keeps = self._keeps or kind is not None
        self._stop_all()

    def client_settings(self):
        """The settings that a client needs."""
        settings = {"fs.defaultFS": self.url, **self._service}
        return {**settings, **self._settings}

    def start(self, name):
        """Starts a process, and waits until it serves."""
        member = self.members[name]
        log_start = os.path.getsize(member.log) if os.path.exists(member.log) else 0
        member.start()
        sign = "successfully registered with NN" if name in self.datanodes else "RPC up at: "
        if name in self._satisfier:
            sign = "Starting external StoragePolicySatisfier"
        end = time.monotonic() + START_PATIENCE_S
        while sign not in self._log_since(member, log_start):
            if not member.running() or time.monotonic() > end:
                raise RuntimeError(f"{name} did not start; see {member.log}:\n{member.end_of_log()}")
            time.sleep(0.1)

    def fail_over(self):
        """Kills the active NameNode and makes the other one active."""
        self.kill(self.active)
        self.make_standby_active()

    def make_standby_active(self):
        """Makes the standby NameNode active. Before the old one can write again, the caller kills it."""
        [standby] = [name for name in self.namenodes if name != self.active]
        # Without the force, it would wait for the old one.
        self._tool(HDFS + "tools.DFSHAAdmin", "-transitionToActive", "--forceactive", standby, text="Y\n")
        self.active = standby

    def slow(self, name):
        """Slows the connection of a DataNode to and from all others."""
        self._network.slow(name)

    def fast(self, name):
        """Ends the slowness."""
        self._network.fast(name)

    def fill(self, name):
        """Fills the disk of a DataNode."""
        part = bytes(16 << 20)
        with open(os.path.join(self._disk(name), FILLER), "wb", buffering=0) as filler:
            # The last part fits only partly, and then no byte does.
            with contextlib.suppress(OSError):
                while True:
                    filler.write(part)

    def empty(self, name):
        """Frees the disk of a DataNode that was filled, and waits until the NameNode knows it."""
        os.remove(os.path.join(self._disk(name), FILLER))
        end = time.monotonic() + START_PATIENCE_S
        half_bytes = self._disk_mib * (1 << 20) // 2
        while self._free_bytes(name) < half_bytes:
            if time.monotonic() > end:
                raise RuntimeError(f"the NameNode takes the disk of {name} for full")
            time.sleep(0.1)

    def fsck(self, path):
        """The report of `hdfs fsck`."""
        return self._tool(HDFS + "tools.DFSck", path, "-files", "-blocks", "-openforwrite")

    def replicas(self, path):
        """The types of storage of the replicas of each block below a path, as `hdfs fsck` shows
        them: for each file a list of blocks, each a sorted list of types."""
        report = self._tool(HDFS + "tools.DFSck", path, "-files", "-blocks", "-locations")
        found = {}
        for line in report.splitlines():
            if line.startswith("/") and " bytes, " in line:
                file = found.setdefault(line.split(" ", 1)[0], [])
            elif "DatanodeInfoWithStorage[" in line:
                file.append(sorted(re.findall(r"DatanodeInfoWithStorage\[[^\]]*,([A-Z_]+)\]", line)))
        return found

    def copied_from_memory(self):
        """The number of replicas on RAM_DISKs that DataNodes have copied to disks."""
        copies = os.path.join(glob.escape(self.directory), "*", "current", "*", "current", "lazypersist", "**", "blk_*[0-9]")
        return len(glob.glob(copies, recursive=True))

    def storage_policy(self, path):
        """The name of the storage policy of a path, as `hdfs storagepolicies` shows it."""
        report = self._tool(HDFS + "tools.StoragePolicyAdmin", "-getStoragePolicy", "-path", path)
        named = re.search(r"BlockStoragePolicy\{([A-Z_]+):", report)
        return named.group(1) if named else None

    def set_storage_policy(self, path, policy):
        self._tool(HDFS + "tools.StoragePolicyAdmin", "-setStoragePolicy", "-path", path, "-policy", policy)

    def admin(self, *command):
        """The output of a command of `hdfs dfsadmin`, such as -safemode."""
        return self._tool(HDFS + "tools.DFSAdmin", *command)

    def files(self, *command):
        """The output of a command of `hdfs dfs`, such as -cp."""
        return self._tool("org.apache.hadoop.fs.FsShell", *command)

    def namenode_calls(self):
        """The number of calls of each kind that the first NameNode has executed."""
        return {name.removesuffix("NumOps"): count for bean in self._beans("RpcDetailedActivityForPort*")
                for name, count in bean.items() if name.endswith("NumOps")}

    def _free_bytes(self, name):
        """The free space of a DataNode, as the NameNode knows it."""
        [info] = self._beans("NameNodeInfo")
        [free] = [node["remaining"] for host, node in json.loads(info["LiveNodes"]).items() if host.startswith(f"{name}:")]
        return free

    def _beans(self, name):
        """Beans of the first NameNode."""
        address = self._service["dfs.namenode.http-address" + (f".{SERVICE}.nn0" if len(self.namenodes) > 1 else "")]
        with urllib.request.urlopen(f"http://{address}/jmx?qry=Hadoop:service=NameNode,name={name}", timeout=10) as answer:
            return json.load(answer)["beans"]

    def keep(self):
        """Keeps the directory after the end."""
        self._keeps = True

    def _start_all(self):
        if self._disk_mib:
            for name in self.datanodes:
                os.makedirs(self._disk(name))
                options = f"size={self._disk_mib}m"
                subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self._disk(name)], check=True)
        self._configure()
        self._tool(NAMENODE, "-format", "-nonInteractive", conf="nn0")
        self.start("nn0")
        if len(self.namenodes) > 1:
            self._tool(NAMENODE, "-bootstrapStandby", "-nonInteractive", conf="nn1")
            self.start("nn1")
            self._tool(HDFS + "tools.DFSHAAdmin", "-transitionToActive", "nn0")
        for name in self.datanodes:
            self.start(name)
        self.admin("-safemode", "wait")
        for name in self._satisfier:
            self.start(name)

    def _configure(self):
        namenode_ports = {name: free_ports(2) for name in self.namenodes}
        rpc = {name: f"{self._address(name)}:{ports[0]}" for name, ports in namenode_ports.items()}
        http = {name: f"{self._address(name)}:{ports[1]}" for name, ports in namenode_ports.items()}
        if len(self.namenodes) > 1:
            self.url = f"hdfs://{SERVICE}"
            self._service = {"dfs.nameservices": SERVICE, f"dfs.ha.namenodes.{SERVICE}": ",".join(self.namenodes)}
            for name in self.namenodes:
                self._service[f"dfs.namenode.rpc-address.{SERVICE}.{name}"] = rpc[name]
                self._service[f"dfs.namenode.http-address.{SERVICE}.{name}"] = http[name]
            self._service[f"dfs.client.failover.proxy.provider.{SERVICE}"] = (
                HDFS + "server.namenode.ha.ConfiguredFailoverProxyProvider")
        else:
            self.url = f"hdfs://{rpc['nn0']}"
            self._service = {"dfs.namenode.rpc-address": rpc["nn0"], "dfs.namenode.http-address": http["nn0"]}
        for name in ["client", *self.namenodes, *self.datanodes, *self._satisfier]:
            self._configure_one(name)
        for name in self.namenodes:
            self._add(name, NAMENODE)
        for name in self.datanodes:
            self._add(name, RAM_DATANODE if RAM_DISK in self._storage_types else DATANODE)
        for name in self._satisfier:
            self._add(name, SATISFIER)

    def _configure_one(self, name):
        conf = self._conf(name)
        # The daemons insist on the directories of their web pages, which the jars lack.
        for pages in ("hdfs", "datanode"):
            os.makedirs(os.path.join(conf, "webapps", pages))
        with open(os.path.join(conf, "log4j.properties"), "w") as out:
            out.write(LOGGING)
        write_site(os.path.join(conf, "core-site.xml"),
                   {"fs.defaultFS": self.url, "hadoop.tmp.dir": os.path.join(self.directory, "tmp")})
        settings = {
            "dfs.replication": min(3, len(self.datanodes)),
            "dfs.permissions.enabled": "false",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": 0,
            "dfs.heartbeat.interval": 1,
            **self._service,
        }
        if name in self.namenodes:
            settings["dfs.namenode.name.dir"] = f"file://{self.directory}/{name}.names"
            if len(self.namenodes) > 1:
                settings["dfs.ha.namenode.id"] = name
        if len(self.namenodes) > 1:
            settings.update({
                "dfs.namenode.shared.edits.dir": f"file://{self.directory}/edits",
                "dfs.ha.fencing.methods": "shell(/bin/true)",
                "dfs.ha.tail-edits.period": 1,
            })
        if name in self.datanodes:
            data, web, ipc = free_ports(3)
            host = self._address(name)
            settings.update({
                "dfs.datanode.data.dir": self._data_directories(name),
                "dfs.datanode.address": f"{host}:{data}",
                "dfs.datanode.http.address": f"{host}:{web}",
                "dfs.datanode.ipc.address": f"{host}:{ipc}",
                "dfs.datanode.hostname": name if self._network else "localhost",
                "dfs.datanode.max.locked.memory": RAM_BYTES if RAM_DISK in self._storage_types else 0,
                "dfs.datanode.lazywriter.interval.sec": RAM_COPY_S,
            })
        settings.update({**self._daemon_settings, **self._settings})
        write_site(os.path.join(conf, "hdfs-site.xml"), settings)

    def _address(self, name):
        """The address of a NameNode or DataNode."""
        return self._network.address(self._network.add(name)) if self._network else HOST

    def _data_directories(self, name):
        blocks = f"file://{self._disk(name)}/{name}.blocks"
        return ",".join(f"[{kind}]{blocks}.{kind.lower()}" for kind in self._storage_types) or blocks

    def _disk(self, name):
        """Where the blocks of a DataNode are."""
        return os.path.join(self.directory, f"{name}.disk") if self._disk_mib else self.directory

    def _conf(self, name):
        return os.path.join(self.directory, "conf", name)

    def _java(self, conf, heap):
        return [java(), *SERVER_OPENS, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true",
                "-cp", f"{self._conf(conf)}:{self._class_path}"]

    def _add(self, name, main_class):
        apart = self._network and name not in self._satisfier
        prefix = self._network.prefix(name) if apart else ()
        host = name if apart else HOST
        self.members[name] = Member(name, self.directory, host, [*self._java(name, HEAP), main_class], prefix)

    def _tool(self, *command, conf="client", text=None):
        done = subprocess.run([*self._java(conf, "128m"), *command], capture_output=True, text=True, input=text)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def _log_since(self, member, start):
        try:
            with open(member.log, "rb") as log:
                log.seek(start)
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _stop_all(self):
        for member in reversed(self.members.values()):
            member.stop()
        for name in self.datanodes if self._disk_mib else []:
            subprocess.run(["umount", self._disk(name)], check=False)
        if self._keeps:
            print(f"logs and data are kept in {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


class Started:
    """An HDFS that the caller starts and ends, for several clusters at once or in turn."""

    def __init__(self, hdfs):
        self.url = hdfs.url
        self.client_settings = hdfs.client_settings

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass
