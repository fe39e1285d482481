"""The part `gateways`: gets by REST and Thrift.

Grampus serves them in its own process. HBase's gateways are processes beside HBase, so their CPU time
is added to the server's. Ten connections send one get after the other. All requests, and so all
responses, have the same length. HBase and its gateways are warmed up first.

Then the p99 of one connection to Grampus is measured alone, and next to 2,000 connections that send a
request byte by byte, one each second. Their sender and the kernel need CPU time too. So the p99 is also
measured while the same connections go to a process that only reads: the limit of this machine.
All slow connections must still be open at the end of a run, because closed ones cost nothing.

Targets: gets by Grampus need at most a fifth of the CPU time; slow connections to Grampus do not change
the p99 more than those to the other process (by more than half, which is the noise of this measurement).
"""
import multiprocessing
import random
import resource
import selectors
import socket
import struct
import time
from contextlib import ExitStack
from dataclasses import dataclass

import cores
import gateways
import process
import subject
from generator import Generator
from record import Record, aligned
from steps import Table

CONNECTIONS = 10
WANTED = 5
SLOW_CONNECTIONS = 2_000
SLOW_GROUPS = 100
SLOWER_MAX = 1.5
FAMILY, QUALIFIER, KEY_LEN = b"info0", b"0", 26
KINDS = {"REST": gateways.REST, "Thrift": gateways.THRIFT, "Thrift 2": gateways.THRIFT2}
KEYS = {"REST": "hbase.rest.port", "Thrift": "hbase.regionserver.thrift.port", "Thrift 2": "grampus.thrift2.port"}
# Types of fields of Thrift's binary protocol.
STRUCT, MAP, LIST, STRING = 12, 13, 15, 11
CALL = 0x80010001
# A response that does not come within this time fails the part.
PATIENCE_S = 60


@dataclass
class Target:
    """The port of a gateway, and the processes that serve it."""

    server: str
    api: str
    port: int
    pids: tuple


class Gateways:
    """Gets by each API, alternating between the servers."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "gateways")
        self._table = Table("small", min(arguments.rows, 100_000), 100)

    def run(self):
        """Measures and returns the missed targets."""
        with ExitStack() as started:
            targets = self._start(started)
            for target in targets:
                if target.server == "hbase":
                    seconds = max(1, self._arguments.warm // len(KINDS))
                    print(f"hbase: warming up {target.api} for {seconds} s", flush=True)
                    self._measure(target, seconds)
            for run in range(1, self._arguments.runs + 1):
                for target in targets:
                    got = self._measure(target, self._arguments.seconds)
                    self._record.add(server=target.server, api=target.api, run=run, **got)
                    print(f"  {target.server:8} {target.api:8} {got['gets_per_second']:8,.0f} gets/s "
                          f"{got['server_cpu_us_per_get']:8.1f} us CPU per get", flush=True)
            with cores.of_servers():
                sink = started.enter_context(Sink())
            for run in range(1, self._arguments.runs + 1):
                for target in targets:
                    if target.server == "grampus":
                        self._measure_beside_slow(target, sink, run)
        self._record.write(self.lines())
        slowed = [f"gateways: slow connections make the p99 by {api} {self._slowdown(api):.1f} times as long"
                  for api in KINDS if self._slowdown(api) > SLOWER_MAX]
        closed = [f"gateways: {run['closed']:,} slow connections by {run['api']} were closed during a run"
                  for run in self._record.runs if run.get("closed")]
        expensive = [f"gateways: a get by {api} needs {self._ratio(api):.1f} times less CPU than HBase's (target: {WANTED})"
                     for api in KINDS if self._ratio(api) < WANTED]
        return closed + slowed + expensive

    def _start(self, started):
        with cores.of_servers():
            settings = {key: KINDS[api].port for api, key in KEYS.items()}
            # More than the slow connections; the default depends on the limit of open files.
            settings |= {"grampus.rest.connections.max": 4096, "grampus.thrift.connections.max": 4096}
            ours = started.enter_context(subject.grampus(
                self._arguments.grampus, settings={"grampus.memory": self._arguments.memory, **settings}))
            hbase = started.enter_context(subject.hbase(self._arguments.hbase_heap))
            theirs = {api: started.enter_context(gateways.started(kind, hbase)) for api, kind in KINDS.items()}
        for server in (ours, hbase):
            print(f"{server.name}: filling", flush=True)
            self._generator.load(server, self._table)
        offset = ours.endpoint.port_offset
        targets = []
        for api, kind in KINDS.items():
            targets.append(Target("grampus", api, kind.port + offset, (ours.server.pid,)))
            targets.append(Target("hbase", api, theirs[api].port, (hbase.server.pid, theirs[api].pid)))
        return targets

    def _measure(self, target, seconds):
        load = Load(target, self._table)
        before = sum(map(process.cpu_s, target.pids))
        gets, took = load.run(seconds)
        cpu_s = sum(map(process.cpu_s, target.pids)) - before
        return {"gets": gets, "gets_per_second": gets / took, "server_cpu_us_per_get": cpu_s / gets * 1e6}

    def _measure_beside_slow(self, target, sink, run):
        load = Load(target, self._table)
        p99, closed = {"alone": load.p99_us(self._arguments.seconds)}, 0
        for name, port in (("slow", target.port), ("sink", sink.port)):
            with Slow(port, target.api, self._table) as slow:
                p99[name] = load.p99_us(self._arguments.seconds)
            closed += slow.closed()
        self._record.add(server="grampus, one connection", api=target.api, run=run, closed=closed, **p99)
        print(f"  grampus  {target.api:8} p99 {p99['alone']:.0f} us alone, with {SLOW_CONNECTIONS:,} slow connections "
              f"{p99['slow']:.0f} us to Grampus, {p99['sink']:.0f} us to another process; {closed} were closed", flush=True)

    def _p99_us(self, api, when):
        return self._median("grampus, one connection", api, when)

    def _slowdown(self, api):
        return self._p99_us(api, "slow") / max(self._p99_us(api, "alone"), self._p99_us(api, "sink"))

    def _ratio(self, api):
        cpu = {server: self._median(server, api, "server_cpu_us_per_get") for server in ("grampus", "hbase")}
        return cpu["hbase"] / cpu["grampus"]

    def _median(self, server, api, figure):
        return self._record.median(lambda run: run[figure], server=server, api=api)

    def lines(self):
        """The table."""
        rows = [["get by", "Grampus gets/s", "HBase gets/s", "Grampus us CPU", "HBase us CPU", "ratio",
                 "p99 us alone", "with slow connections", "with those to another process"]]
        for api in KINDS:
            rows.append([api, *(f"{self._median(server, api, 'gets_per_second'):,.0f}" for server in ("grampus", "hbase")),
                         *(f"{self._median(server, api, 'server_cpu_us_per_get'):.1f}" for server in ("grampus", "hbase")),
                         f"{self._ratio(api):.1f}", *(f"{self._p99_us(api, when):.0f}" for when in ("alone", "slow", "sink"))])
        return list(aligned(rows))


class Load:
    """Connections that send gets of random rows."""

    def __init__(self, target, table):
        self._target = target
        self._rows = table.rows
        self._request = REQUESTS[target.api]
        self._table = table.name.encode()
        self._random = random.Random(1)
        self._len = self._response_len()

    def run(self, seconds):
        """Sends gets for `seconds`; returns their number, and the time in seconds."""
        begun = time.monotonic()
        end, gets = begun + seconds, 0
        with ExitStack() as opened, selectors.DefaultSelector() as waiting:
            for _ in range(CONNECTIONS):
                connection = opened.enter_context(self._connect())
                waiting.register(connection, selectors.EVENT_READ, [self._len])
                connection.sendall(self._get())
            while time.monotonic() < end:
                ready = waiting.select(PATIENCE_S)
                if not ready:
                    raise TimeoutError(f"no response from {self._target}")
                for key, _ in ready:
                    left = key.data
                    left[0] -= self._received(key.fileobj)
                    if left[0] == 0:
                        gets += 1
                        left[0] = self._len
                        key.fileobj.sendall(self._get())
        return gets, time.monotonic() - begun

    def p99_us(self, seconds):
        """The p99 in microseconds of gets over one connection."""
        times, end = [], time.monotonic() + seconds
        with self._connect() as connection:
            while time.monotonic() < end:
                begun, left = time.monotonic(), self._len
                connection.sendall(self._get())
                while left:
                    left -= self._received(connection)
                times.append(time.monotonic() - begun)
        return sorted(times)[len(times) * 99 // 100] * 1e6

    def _connect(self):
        connection = socket.create_connection(("127.0.0.1", self._target.port), PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _received(self, connection):
        received = len(connection.recv(1 << 16))
        if not received:
            raise ConnectionError(f"{self._target} closed a connection")
        return received

    def _get(self):
        row = b"%0*d" % (KEY_LEN, self._random.randrange(self._rows))
        return self._request(self._table, row)

    def _response_len(self):
        """Bytes of a response: what comes until the server is silent. Every response must have the
        value."""
        with self._connect() as connection:
            connection.sendall(self._get())
            response = connection.recv(1 << 16)
            connection.settimeout(0.5)
            try:
                while received := connection.recv(1 << 16):
                    response += received
            except TimeoutError:
                pass
        if len(response) < 100 or b"exception" in response.lower():
            raise ValueError(f"{self._target} does not return the value: {response[:300]!r}")
        return len(response)


class Slow:
    """Connections that send a request one byte each second, from a process of their own."""

    def __init__(self, port, api, table):
        request = REQUESTS[api](table.name.encode(), b"0" * KEY_LEN)
        self._connected, self._ended = multiprocessing.Event(), multiprocessing.Event()
        # A sender that fails does not count them, so none is open.
        self._closed = multiprocessing.Value("i", SLOW_CONNECTIONS)
        self._sender = multiprocessing.Process(
            target=_send_slowly, args=(port, request, self._connected, self._ended, self._closed), daemon=True)

    def __enter__(self):
        self._sender.start()
        if not self._connected.wait(PATIENCE_S):
            raise TimeoutError("the slow connections are not accepted")
        return self

    def __exit__(self, *exception):
        self._ended.set()
        self._sender.join(PATIENCE_S)
        self._sender.terminate()
        self._sender.join()

    def closed(self):
        """The number of connections that the server had closed at the end."""
        return self._closed.value


class Sink:
    """A process that accepts connections and reads what comes."""

    def __init__(self):
        _allow_connections()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=SLOW_CONNECTIONS)
        self.port = self._listening.getsockname()[1]
        self._reader = multiprocessing.Process(target=_read_all, args=(self._listening,), daemon=True)

    def __enter__(self):
        self._reader.start()
        return self

    def __exit__(self, *exception):
        self._reader.terminate()
        self._reader.join()
        self._listening.close()


def _read_all(listening):
    with selectors.DefaultSelector() as waiting:
        waiting.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fileobj is listening:
                    waiting.register(listening.accept()[0], selectors.EVENT_READ)
                elif not key.fileobj.recv(1 << 16):
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()


def _allow_connections():
    """Raises the limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _send_slowly(port, request, connected, ended, closed):
    _allow_connections()
    connections = [socket.create_connection(("127.0.0.1", port), PATIENCE_S) for _ in range(SLOW_CONNECTIONS)]
    connected.set()
    _send_bytes(connections, request, ended)
    ended.wait()
    closed.value = sum(map(_is_closed, connections))


def _send_bytes(connections, request, ended):
    """Sends one byte of the request to each connection every second, until the end."""
    for at in range(len(request)):
        # In small groups, so that they do not delay the process that measures.
        for group in range(SLOW_GROUPS):
            for connection in connections[group::SLOW_GROUPS]:
                try:
                    connection.sendall(request[at:at + 1])
                except OSError:
                    # The server has closed it, which is counted at the end.
                    pass
            if ended.wait(1 / SLOW_GROUPS):
                return


def _is_closed(connection):
    connection.setblocking(False)
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True


def rest(table, row):
    """A get by REST."""
    return (b"GET /%s/%s/%s:%s HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\n\r\n"
            % (table, row, FAMILY, QUALIFIER))


def thrift(table, row):
    """A get of Thrift 1: get(tableName, row, column, attributes)."""
    return (_call(b"get") + _text(1, table) + _text(2, row) + _text(3, FAMILY + b":" + QUALIFIER)
            + struct.pack(">bhbbi", MAP, 4, STRING, STRING, 0) + b"\0")


def thrift2(table, row):
    """A get of Thrift 2: get(table, TGet{row, columns})."""
    column = _text(1, FAMILY) + _text(2, QUALIFIER) + b"\0"
    get = _text(1, row) + struct.pack(">bhbi", LIST, 2, STRUCT, 1) + column + b"\0"
    return _call(b"get") + _text(1, table) + struct.pack(">bh", STRUCT, 2) + get + b"\0"


REQUESTS = {"REST": rest, "Thrift": thrift, "Thrift 2": thrift2}


def _call(name):
    return struct.pack(">Ii", CALL, len(name)) + name + struct.pack(">i", 1)


def _text(field, text):
    return struct.pack(">bhi", STRING, field, len(text)) + text
