"""A network of its own for a cluster, in which processes can be partitioned.

A script calls `isolate` first. It then runs again in a fresh network and mount namespace, where
each process of a cluster gets its own network namespace and address, connected by a bridge. All of
it vanishes when the script and its processes end. Needs root and the tools `ip` and `tc`.
"""
import os
import shutil
import socket
import subprocess
import sys

MARK = "COMPAT_ISOLATED"
BRIDGE = "bridge"
SUBNET = "10.213.0"
ROUTER = 1
# The bandwidth of a slowed process, each way, and how many bytes pass at once.
SLOW, SLOW_BURST = "400kbit", "16kb"


def is_possible():
    """Whether this user may make network namespaces."""
    return all(map(shutil.which, ("ip", "tc", "nsenter"))) and subprocess.run(
        ["unshare", "--net", "--mount", "true"], stderr=subprocess.DEVNULL).returncode == 0


def isolate():
    """Runs the script again in its own namespaces, unless it already runs there."""
    if not is_isolated():
        os.execvpe("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv], {**os.environ, MARK: "1"})


def is_isolated():
    """Whether this is the script's run in its own namespaces."""
    return bool(os.environ.get(MARK))


class Network:
    """A bridge in the script's own namespaces, and a namespace per process."""

    def __init__(self):
        assert is_isolated(), "isolate() precedes a network"
        self._addresses = {}
        os.makedirs("/run/netns", exist_ok=True)
        for command in ("mount -t tmpfs none /run/netns", "ip link set lo up", f"ip link add {BRIDGE} type bridge",
                        f"ip address add {SUBNET}.{ROUTER}/24 dev {BRIDGE}", f"ip link set {BRIDGE} up"):
            _run(command)
        # Names of processes are host names, here only.
        self._hosts = "/run/netns/hosts"
        with open(self._hosts, "w") as out:
            out.write(f"127.0.0.1 localhost {socket.gethostname()}\n")
        _run(f"mount --bind {self._hosts} /etc/hosts")

    def add(self, name):
        """The host name of a process, whose namespace is made on first use."""
        if name in self._addresses:
            return name
        number = ROUTER + 1 + len(self._addresses)
        address = self._addresses[name] = f"{SUBNET}.{number}"
        outside, inside = f"{name}-out", f"{name}-in"
        for command in (f"ip netns add {name}", f"ip link add {outside} type veth peer name {inside} netns {name}",
                        f"ip link set {outside} master {BRIDGE}", f"ip link set {outside} up",
                        f"ip -n {name} address add {address}/24 dev {inside}", f"ip -n {name} link set {inside} up",
                        f"ip -n {name} link set lo up", f"ip -n {name} route add default via {SUBNET}.{ROUTER}"):
            _run(command)
        with open(self._hosts, "a") as out:
            out.write(f"{address} {name}\n")
        return name

    def address(self, name):
        return self._addresses[name]

    def prefix(self, name):
        """The words before a command that runs in the namespace of a process."""
        return ["nsenter", f"--net=/run/netns/{name}"]

    def isolate(self, name):
        """Drops all packets of a process, silently."""
        _run(f"ip link set {name}-out nomaster")

    def separate(self, name, others):
        """Drops all packets between a process and others, which it then cannot reach; neither side
        gets an answer."""
        for other in others:
            for here, there in ((name, other), (other, name)):
                _run(f"ip -n {here} route replace blackhole {self._addresses[there]}/32")

    def slow(self, name):
        """Limits the bandwidth of a process. Packets wait for up to two seconds, then they are lost."""
        limit = f"root tbf rate {SLOW} burst {SLOW_BURST} latency 2s"
        _run(f"tc qdisc add dev {name}-out {limit}")
        _run(f"tc -n {name} qdisc add dev {name}-in {limit}")

    def fast(self, name):
        """Ends the limit."""
        _run(f"tc qdisc del dev {name}-out root")
        _run(f"tc -n {name} qdisc del dev {name}-in root")

    def heal(self, name):
        """Ends the partitions of a process."""
        _run(f"ip link set {name}-out master {BRIDGE}")
        for here in self._addresses:
            for there in self._addresses:
                if name in (here, there):
                    subprocess.run(["ip", "-n", here, "route", "del", "blackhole", f"{self._addresses[there]}/32"],
                                   stderr=subprocess.DEVNULL)


def _run(command):
    subprocess.run(command.split(), check=True)
