"""A minimal client of PostgreSQL's protocol for `grampus sql --listen`: text queries and text
rows."""
import socket
import struct
import time


class QueryError(Exception):
    """The server's error of a query."""


class Connection:
    def __init__(self, host, port, patience_s=60):
        end = time.monotonic() + patience_s
        while True:
            try:
                self._socket = socket.create_connection((host, port), timeout=600)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self._file = self._socket.makefile("rb")
        parameters = b"user\0compat\0database\0grampus\0\0"
        # The length counts itself; the version is 3.0.
        self._socket.sendall(struct.pack(">II", 8 + len(parameters), 3 << 16) + parameters)
        self._answer()

    def query(self, sql):
        """The rows of a statement: lists of str, or None for null."""
        text = sql.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack(">I", 4 + len(text)) + text)
        return self._answer()

    def close(self):
        self._socket.close()

    def _answer(self):
        rows, error = [], None
        while True:
            kind, length = struct.unpack(">cI", self._read(5))
            body = self._read(length - 4)
            if kind == b"D":
                rows.append(self._row(body))
            elif kind == b"E":
                # Fields, each prefixed with a letter; M is the message.
                fields = {field[:1]: field[1:] for field in body.split(b"\0")}
                error = fields.get(b"M", body).decode("utf-8", "replace")
            elif kind == b"Z":
                if error is not None:
                    raise QueryError(error)
                return rows

    def _row(self, body):
        (count,), at, row = struct.unpack_from(">H", body), 2, []
        for _ in range(count):
            (length,) = struct.unpack_from(">i", body, at)
            at += 4
            row.append(None if length < 0 else body[at:at + length].decode())
            at += max(length, 0)
        return row

    def _read(self, count):
        found = self._file.read(count)
        if len(found) != count:
            raise ConnectionError("the SQL server ended the connection")
        return found
