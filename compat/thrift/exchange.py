"""Sends calls and records exchanges: calls with their responses, as lines of JSON. Apache Thrift's
own protocols encode and decode them; there is no generated code."""
import json
import re
import socket

from thrift.protocol import TBinaryProtocol, TCompactProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport import THttpClient, TSocket, TTransport

TIMEOUT_MS = 120_000
# The id of the last opened scanner, in calls and recorded responses.
SCANNER = "SCANNER"
SCANNER_MARK = 0x5CA77E12

BINARY = TBinaryProtocol.TBinaryProtocol


def old_binary(transport):
    """The binary protocol without versions."""
    return TBinaryProtocol.TBinaryProtocol(transport, strictWrite=False)


def http(port):
    client = THttpClient.THttpClient(f"http://127.0.0.1:{port}/")
    client.setTimeout(TIMEOUT_MS)
    return client


def unframed(port):
    return TTransport.TBufferedTransport(_socket(port))


def framed(port):
    return TTransport.TFramedTransport(_socket(port))


def _socket(port):
    connection = TSocket.TSocket("127.0.0.1", port, socket_family=socket.AF_INET)
    connection.setTimeout(TIMEOUT_MS)
    return connection


# All pairs of a transport and a protocol; the first one is HBase's default.
CHANNELS = {
    "unframed binary": (unframed, BINARY),
    "unframed old binary": (unframed, old_binary),
    "unframed compact": (unframed, TCompactProtocol.TCompactProtocol),
    "framed binary": (framed, BINARY),
    "framed compact": (framed, TCompactProtocol.TCompactProtocol),
    "http binary": (http, BINARY),
}


class I16(int):
    """A 16-bit integer."""


class I32(int):
    """A 32-bit integer."""


class I64(int):
    """A 64-bit integer."""


class Byte(int):
    """A signed byte."""


class Map(dict):
    """A map; other dictionaries are structs, by field number."""


class Set(list):
    """A set."""


KINDS = ((bool, TType.BOOL), (Byte, TType.BYTE), (I16, TType.I16), (I32, TType.I32), (I64, TType.I64),
         (bytes, TType.STRING), (str, TType.STRING), (Map, TType.MAP), (dict, TType.STRUCT), (Set, TType.SET),
         (list, TType.LIST))


def kind_of(value):
    if value is SCANNER:
        return TType.I32
    return next(kind for python, kind in KINDS if isinstance(value, python))


def write(wire, value, scanner):
    """Writes a value; `scanner` is the id of the last scanner."""
    kind = kind_of(value)
    if kind == TType.BOOL:
        wire.writeBool(value)
    elif kind == TType.BYTE:
        wire.writeByte(value)
    elif kind == TType.I16:
        wire.writeI16(value)
    elif kind == TType.I32:
        wire.writeI32(scanner if value is SCANNER else value)
    elif kind == TType.I64:
        wire.writeI64(value)
    elif kind == TType.STRING:
        wire.writeBinary(value.encode() if isinstance(value, str) else value)
    elif kind == TType.STRUCT:
        wire.writeStructBegin("")
        for number, field in sorted(value.items()):
            wire.writeFieldBegin("", kind_of(field), number)
            write(wire, field, scanner)
            wire.writeFieldEnd()
        wire.writeFieldStop()
        wire.writeStructEnd()
    elif kind == TType.MAP:
        key, entry = next(iter(value.items()), ("", ""))
        wire.writeMapBegin(kind_of(key), kind_of(entry), len(value))
        for key, entry in value.items():
            write(wire, key, scanner)
            write(wire, entry, scanner)
        wire.writeMapEnd()
    else:
        element = kind_of(value[0]) if value else TType.STRING
        begin, end = (wire.writeSetBegin, wire.writeSetEnd) if kind == TType.SET else (wire.writeListBegin, wire.writeListEnd)
        begin(element, len(value))
        for element in value:
            write(wire, element, scanner)
        end()


def encoded(call):
    """A call in the binary protocol, in hexadecimal digits; SCANNER_MARK is the id of a scanner."""
    buffer = TTransport.TMemoryBuffer()
    wire = BINARY(buffer)
    wire.writeMessageBegin(call.method, TMessageType.CALL, 1)
    write(wire, call.arguments, SCANNER_MARK)
    wire.writeMessageEnd()
    return buffer.getvalue().hex()


class Connection:
    """A connection to a service, through one of CHANNELS."""

    def __init__(self, port, channel):
        self._open, self._protocol = CHANNELS[channel]
        self._port = port
        self._scanner = 0
        self._sequence = 0
        self._connect()

    def _connect(self):
        self._transport = self._open(self._port)
        self._wire = self._protocol(self._transport)
        self._transport.open()

    def close(self):
        self._transport.close()

    def call(self, method, arguments):
        """The response: {"reply": …} or {"exception": …}, by field numbers, or {"closed": True} if
        the server closes the connection, which is then opened again."""
        self._sequence += 1
        wire = self._wire
        wire.writeMessageBegin(method, TMessageType.CALL, self._sequence)
        write(wire, arguments, self._scanner)
        wire.writeMessageEnd()
        try:
            self._transport.flush()
            name, kind, sequence = wire.readMessageBegin()
            response = self._read(TType.STRUCT)
            wire.readMessageEnd()
        except (TTransport.TTransportException, ConnectionError):
            self.close()
            self._connect()
            return {"closed": True}
        assert (name, sequence) == (method, self._sequence), (name, sequence, method, self._sequence)
        if method.startswith(("scannerOpen", "openScanner")) and isinstance(response.get("0"), int):
            self._scanner = response["0"]
            response["0"] = SCANNER
        return {"exception" if kind == TMessageType.EXCEPTION else "reply": response}

    def _read(self, kind):
        wire = self._wire
        if kind == TType.STRUCT:
            fields = {}
            wire.readStructBegin()
            while True:
                _, field_kind, number = wire.readFieldBegin()
                if field_kind == TType.STOP:
                    break
                fields[str(number)] = self._read(field_kind)
                wire.readFieldEnd()
            wire.readStructEnd()
            return fields
        if kind == TType.MAP:
            key_kind, value_kind, size = wire.readMapBegin()
            entries = [[self._read(key_kind), self._read(value_kind)] for _ in range(size)]
            wire.readMapEnd()
            return {"map": entries}
        if kind in (TType.LIST, TType.SET):
            begin, end = (wire.readSetBegin, wire.readSetEnd) if kind == TType.SET else (wire.readListBegin, wire.readListEnd)
            element_kind, size = begin()
            elements = [self._read(element_kind) for _ in range(size)]
            end()
            return elements
        if kind == TType.STRING:
            return wire.readBinary().decode("latin-1")
        read = {TType.BOOL: wire.readBool, TType.BYTE: wire.readByte, TType.I16: wire.readI16,
                TType.I32: wire.readI32, TType.I64: wire.readI64, TType.DOUBLE: wire.readDouble}
        return read[kind]()


# What is replaced in text before it is compared.
REPLACEMENTS = (
    (re.compile(r"(?s)\n\s*at .*"), ""),
    (re.compile(r"(?s) in table '[\w:]+', \{.*"), ""),
    (re.compile(r"(?s): \d+ times?(?:, servers with issues: .*)?$"), ""),
    (re.compile(r"(?s)Failed after attempts=.*"), "Failed after attempts"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "TIME"),
    (re.compile(r"[0-9a-f]{32}"), "MD5"),
)
CLOCK_MIN = 1_600_000_000_000
CLOCK_MAX = 1_999_999_999_999


def normalized(value):
    """Replaces what differs from run to run."""
    if isinstance(value, dict):
        members = {key: normalized(member) for key, member in value.items()}
        # The entries of a map have no order.
        return {"map": sorted(members["map"], key=json.dumps)} if "map" in members else members
    if isinstance(value, list):
        return [normalized(element) for element in value]
    if isinstance(value, str):
        for pattern, text in REPLACEMENTS:
            value = pattern.sub(text, value)
        # An exception of a server has its class in its message, too, unless a procedure has failed.
        first, separator, rest = value.partition(": ")
        return rest if separator and rest.startswith(first + ": ") else value
    if isinstance(value, int) and not isinstance(value, bool) and CLOCK_MIN < value < CLOCK_MAX:
        return "TIME"
    return value


def shape(value):
    """Only the structure of a response, for values of a server."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape(element) for element in value]
    return type(value).__name__


def exchanges(ports, calls, channel="unframed binary"):
    """Sends the calls in order. Yields each with its response."""
    connections = {service: Connection(port, channel) for service, port in ports.items()}
    for call in calls:
        response = normalized(connections[call.service].call(call.method, call.arguments))
        if call.compares_shape:
            response = shape(response)
        yield {"name": call.name, "service": call.service, "method": call.method, "call": encoded(call),
               "shape": call.compares_shape, "response": response}
    for connection in connections.values():
        connection.close()


def lines(records):
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
