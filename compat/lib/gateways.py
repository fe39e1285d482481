"""HBase's gateways: the REST server and the two Thrift servers, each a process beside an HBase."""
import os
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass

import javatools
import servers

PATIENCE_S = 120


@dataclass(frozen=True)
class Kind:
    """A gateway of HBase."""

    name: str
    # The directory in compat with its pom.xml, and the directory below target of its class path.
    project: str
    output: str
    main_class: str
    # Its port with offset 0, and settings.
    port: int
    port_key: str
    settings: tuple
    # Options of its command line that settings cannot replace.
    options: tuple = ()


REST = Kind("rest", "rest", "rest", "org.apache.hadoop.hbase.rest.RESTServer", 8080, "hbase.rest.port",
            (("hbase.rest.host", "127.0.0.1"), ("hbase.rest.info.port", -1)))
_OF_THRIFT = (("hbase.regionserver.thrift.ipaddress", "127.0.0.1"), ("hbase.thrift.info.port", -1))
THRIFT = Kind("thrift", "thrift", "hbase-thrift", "org.apache.hadoop.hbase.thrift.ThriftServer", 9090,
              "hbase.regionserver.thrift.port", _OF_THRIFT)
THRIFT2 = Kind("thrift2", "thrift", "hbase-thrift", "org.apache.hadoop.hbase.thrift2.ThriftServer", 9091,
               "hbase.regionserver.thrift.port", _OF_THRIFT)


@dataclass
class Gateway:
    """A gateway that serves."""

    port: int
    pid: int


@contextmanager
def started(kind, hbase, heap="512m"):
    """A gateway to `hbase`, a server of the module subject."""
    output = os.path.join(javatools.TARGET, kind.output)
    javatools.maven(os.path.join(javatools.COMPAT, kind.project), output)
    port = kind.port + hbase.endpoint.port_offset
    settings = {"hbase.zookeeper.quorum": "127.0.0.1", "hbase.client.retries.number": 3, kind.port_key: port,
                "hbase.zookeeper.property.clientPort": hbase.endpoint.zookeeper, **dict(kind.settings)}
    directory = os.path.join(hbase.directory, kind.name)
    conf = javatools.conf_directory(settings, "info", directory)
    command = [javatools.java(), *javatools.SERVER_OPENS, f"-Xmx{heap}", "-Djava.net.preferIPv4Stack=true", "-cp",
               f"{conf}:{output}/lib/*", kind.main_class, *kind.options, "start"]
    with open(os.path.join(directory, "log"), "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory)
    try:
        _wait(kind, process, port)
        yield Gateway(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def _wait(kind, process, port):
    end = time.monotonic() + PATIENCE_S
    while not servers.answers(port):
        if process.poll() is not None or time.monotonic() > end:
            javatools.die(f"HBase's {kind.name} server does not start; see its log below compat/target")
        time.sleep(0.2)
