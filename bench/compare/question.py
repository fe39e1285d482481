"""A minimal client of HBase's protocol that is cheap enough to send a thousand requests per second.

HBase's client backs off between retries, and a client process takes as long to start as Grampus;
neither can measure when a server begins to respond. This module implements just enough of the
protocol: a connection without a codec, one call, and whether its response is an exception.
"""
import socket
import struct

# The start of a connection: magic, version 0, simple authentication.
PREAMBLE = b"HBas\0\x50"
PATIENCE_S = 5
# RegionSpecifierType.REGION_NAME. HBase accepts the other type, the encoded name, only in admin
# calls.
REGION_NAME = 1


class Question:
    """A call to a service at a port, and bytes that its response must contain."""

    def __init__(self, port, service, method, param, wanted=b""):
        self._port = port
        self._wanted = wanted
        user = _field(1, _field(1, b"compare"))
        header = _varint_field(1, 1) + _field(3, method.encode()) + _varint_field(4, 1)
        call = _delimited(header) + _delimited(param)
        self._bytes = PREAMBLE + _framed(user + _field(2, service.encode())) + _framed(call)

    def is_answered(self):
        """Whether the server answers now."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), PATIENCE_S) as connection:
                connection.sendall(self._bytes)
                answer = _read(connection, *struct.unpack(">I", _read(connection, 4)))
        except OSError:
            return False
        return not _is_exception(answer) and self._wanted in answer


def tables(endpoint):
    """Lists the tables. The master responds once it is initialized."""
    return Question(endpoint.master, "MasterService", "GetTableNames", b"")


def row(endpoint, region_name, key):
    """Gets a row. The region server responds once the region is open."""
    region = _varint_field(1, REGION_NAME) + _field(2, region_name.encode())
    return Question(endpoint.region_server, "ClientService", "Get", _field(1, region) + _field(2, _field(1, key)), key)


def _read(connection, length):
    read = b""
    while len(read) < length:
        more = connection.recv(length - len(read))
        if not more:
            raise ConnectionError("connection closed before the end of the response")
        read += more
    return read


def _is_exception(answer):
    """Whether a response is an exception. ResponseHeader begins with call_id and, if there is one,
    exception."""
    header = answer[1:1 + answer[0]] if answer[0] < 0x80 else answer[2:]
    # Field 1 is a number below 128, so the next field's tag is the third byte.
    return header[2:3] == _tag(2, 2)


def _framed(message):
    return struct.pack(">I", len(message)) + message


def _delimited(message):
    return _varint(len(message)) + message


def _field(number, value):
    return _tag(number, 2) + _delimited(value)


def _varint_field(number, value):
    return _tag(number, 0) + _varint(value)


def _tag(number, wire_type):
    return _varint(number << 3 | wire_type)


def _varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])
