"""Where the root directory of a round is, and the servers that use it in turn."""
import hashlib
import os
import shutil
import tempfile
import time

import cluster
import hdfs
import servers
from javatools import die

OFFSET = 5000


class Local:
    """A directory of the local disk, used by HBase in one process or by Grampus in one process. It
    is below `directory`, where logs are kept. With `is_raw`, HBase writes as a killed process must."""

    def __init__(self, binary, directory, is_raw):
        self.root = os.path.join(directory, "data")
        self._binary = binary
        self._directory = directory
        self._is_raw = is_raw
        self._offset = servers.free_offset(OFFSET)
        self._server = None

    @property
    def endpoint(self):
        return self._server.endpoint

    def client_settings(self):
        """The settings that commands need for the directory."""
        return {}

    def hbase_settings(self):
        """The settings that HBase and its tools need for the directory."""
        return {"hbase.rootdir": f"file://{self.root}", **(servers.RAW_FILES if self._is_raw else {})}

    def start_hbase(self, version):
        self._server = servers.hbase(self._directory, self._offset, settings=self.hbase_settings(), version=version)

    def start_grampus(self):
        self._server = servers.grampus(self._binary, self._directory, self._offset, patience_s=60)
        end = time.monotonic() + 60
        while b"is ready" not in open(self._server.log, "rb").read():
            if time.monotonic() > end or not self._server.running():
                die(f"Grampus is not ready; its log: {self._server.log}")
            time.sleep(0.2)

    def end(self, is_killed=False):
        """Ends the server, if one runs: like `kill -9`, or it stops."""
        if not self._server:
            return
        if is_killed:
            self._server.process.kill()
            self._server.process.wait()
        self._server.stop()
        shutil.copy(self._server.log, os.path.join(self._directory, f"log.{time.time():.0f}.{self._server.name}"))
        self._server = None

    def forget_zookeeper(self):
        """Makes the next HBase start with an empty ZooKeeper."""
        shutil.rmtree(os.path.join(self._directory, "zk"), ignore_errors=True)

    def names(self):
        """The names in the root directory."""
        return os.listdir(self.root)

    def tree_hash(self):
        return tree_hash(self.root)


class OnHdfs:
    """A directory of an HDFS, used by a cluster of HBase or of Grampus: a master, a region server, and
    a ZooKeeper that is always empty at first."""

    def __init__(self, binary, directory, storage):
        self._name = os.path.basename(directory)
        self.root = f"{storage.url}/{self._name}"
        self._binary = binary
        self._directory = directory
        self._storage = storage
        self._cluster = None

    @property
    def endpoint(self):
        return self._cluster.endpoint

    def client_settings(self):
        return self._storage.client_settings()

    def hbase_settings(self):
        return {"hbase.rootdir": self.root, **self.client_settings()}

    def start_hbase(self, version):
        self._start(cluster.HBase(version=version, **self._how()))

    def start_grampus(self):
        self._start(cluster.Grampus(self._binary, **self._how()))

    def _how(self):
        return {"hdfs": hdfs.Started(self._storage), "root_name": self._name, "masters": 1, "region_servers": 1}

    def _start(self, started):
        self._cluster = started.__enter__()

    def end(self, is_killed=False):
        if not self._cluster:
            return
        ended, self._cluster = self._cluster, None
        if is_killed:
            for name in [*ended.masters, *ended.region_servers]:
                ended.kill(name)
        for name in [*ended.masters, *ended.region_servers]:
            log = ended.members[name].log
            shutil.copy(log, os.path.join(self._directory, f"log.{time.time():.0f}.{ended.name}.{name}"))
        ended.__exit__(None, None, None)

    def forget_zookeeper(self):
        pass

    def names(self):
        listed = self._storage.files("-ls", "-C", f"/{self._name}").split()
        return [path.rpartition("/")[2] for path in listed]

    def tree_hash(self):
        with tempfile.TemporaryDirectory(dir=self._directory) as copied:
            self._storage.files("-get", f"/{self._name}", copied)
            return tree_hash(copied)


def tree_hash(root):
    """The names and contents of all files."""
    digest = hashlib.sha256()
    for directory, names, files in sorted(os.walk(root)):
        names.sort()
        for name in sorted(files):
            path = os.path.join(directory, name)
            digest.update(os.path.relpath(path, root).encode())
            with open(path, "rb") as content:
                digest.update(hashlib.sha256(content.read()).digest())
        digest.update(os.path.relpath(directory, root).encode())
    return digest.hexdigest()
