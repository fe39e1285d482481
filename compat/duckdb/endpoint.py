"""Calls the regions' endpoint without SQL: grampus.pb.ColumnService, region by region, and merges
its states.

A second implementation of crates/proto/proto/Columns.proto, which distinguishes errors of SQL from
errors of the endpoint.
"""
import os
import re
import socket
import struct
import time
from decimal import Decimal

import messages
import schema
import tables
import values
from javatools import COMPAT
from messages import raw, real, signed, whole

PROTOCOL = os.path.join(COMPAT, "..", "crates", "proto", "proto", "Columns.proto")
FUNCTIONS = {"count": 0, "sum": 1, "min": 2, "max": 3, "avg": 4, "var_samp": 5, "var_pop": 5, "stddev_samp": 5, "stddev_pop": 5}
OPERATORS = {"=": 0, "<>": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
KEY_PLACE = re.compile(r"row(?:\[(\d+)\.\.(\d*)\])?(?: part (\d+) by (\S+))?")
# A region that is being split or merged is unavailable for a while.
AGAIN = re.compile("NotServingRegion|RegionOpening|RegionTooBusy")
PATIENCE_S = 60
REGION_NAME = 1


def encodings():
    with open(PROTOCOL) as lines:
        listed = re.search(r"enum Encoding \{(.*?)\n\}", lines.read(), re.S).group(1)
    return {name.lower(): int(number) for name, number in re.findall(r"^  ([A-Z0-9_]+) = (\d+);", listed, re.M)}


ENCODINGS = encodings()


class Refused(Exception):
    """The server's exception: its class and text."""


# Requests.
def column(one):
    place = b""
    if one.place[0] == "cell":
        place = raw(1, one.place[1].encode()) + raw(2, one.place[2].encode())
    else:
        start, stop, part, separator = KEY_PLACE.fullmatch(one.place[1]).groups()
        place = whole(3, int(start or 0))
        if stop:
            place += whole(4, int(stop) - int(start))
        if part:
            separator = re.sub(r"\\x(..)", lambda found: chr(int(found.group(1), 16)), separator)
            place += raw(5, separator.encode()) + whole(6, int(part) - 1)
    return place + whole(7, ENCODINGS[one.encoding]) + (whole(8, one.scale) if one.kind == "decimal" else b"")


def value(one, literal):
    """A value of a column."""
    if one.kind == "real":
        return real(2, literal)
    if one.kind == "decimal":
        unscaled = int(values.EXACT.scaleb(literal, one.scale))
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return raw(3, unscaled.to_bytes(size, "big", signed=True))
    return raw(4, literal.encode()) if one.kind == "text" else signed(1, literal)


def every(parts):
    return raw(1, b"".join(raw(1, part) for part in parts))


def some(parts):
    return raw(2, b"".join(raw(1, part) for part in parts))


def negated(part):
    return raw(3, part)


def compared(at, operator, message):
    return raw(4, whole(1, at) + whole(2, OPERATORS[operator]) + raw(3, message))


def columns_compared(at, operator, other):
    return raw(4, whole(1, at) + whole(2, OPERATORS[operator]) + whole(4, other))


def listed(at, found):
    return raw(5, whole(1, at) + b"".join(raw(2, message) for message in found))


def null(at):
    return whole(6, at)


def like(at, pattern):
    return raw(7, whole(1, at) + raw(2, pattern.encode()) + raw(3, b"\\"))


class Asked:
    """A request: columns, a condition, groups, and aggregates as pairs of function and column
    index."""

    def __init__(self, table):
        self.table = table
        self.columns = []
        self.predicate = None
        self.group_by = []
        self.aggregates = []

    def place(self, one):
        if one not in self.columns:
            self.columns.append(one)
        return self.columns.index(one)

    def message(self, start, stop):
        families = sorted({one.place[1] for one in self.table.columns if one.place[0] == "cell"})
        rows = raw(1, start) + raw(2, stop) + b"".join(raw(5, family.encode()) for family in families)
        rows += b"".join(raw(6, column(one)) for one in self.columns)
        rows += raw(7, self.predicate) if self.predicate is not None else b""
        aggregates = (whole(1, FUNCTIONS[function]) + (b"" if at is None else whole(2, at)) for function, at in self.aggregates)
        return raw(1, rows) + b"".join(whole(2, at) for at in self.group_by) + b"".join(raw(3, one) for one in aggregates)


# The server.
class Server:
    """Calls of the endpoint of a server that has all regions; `cells` lists them."""

    def __init__(self, endpoint, cells):
        self._cells = cells
        self._regions = {}
        self._calls = 0
        self._socket = socket.create_connection((endpoint.host, endpoint.region_server), timeout=600)
        self._file = self._socket.makefile("rb")
        header = raw(1, raw(1, b"compat")) + raw(2, b"ClientService")
        self._socket.sendall(b"HBas\x00\x50" + struct.pack(">I", len(header)) + header)
        # The sums of the fields of Work, by field number.
        self.work = {}

    def ask(self, asked):
        """The rows of a result: values of the keys, then of the aggregates."""
        merged, row, begun = {}, b"", time.monotonic()
        while row is not None:
            name, _, end = self._region(asked.table.name, row)
            try:
                answer = messages.parsed(self._call(name, row, asked.message(row, end)))
            except Refused as refused:
                if not AGAIN.search(str(refused)) or time.monotonic() > begun + PATIENCE_S:
                    raise
                self._regions.pop(asked.table.name)
                time.sleep(0.05)
                continue
            for group in answer.get(1, []):
                fields = messages.parsed(group)
                key = tuple(_as_answered(asked.columns[at], _plain(value))
                            for at, value in zip(asked.group_by, fields.get(1, [])))
                states = [State(message) for message in fields.get(2, [])]
                for known, state in zip(merged.setdefault(key, states), states):
                    if known is not state:
                        known.merge(state)
            for field, numbers in messages.parsed(answer.get(3, [b""])[0]).items():
                self.work[field] = self.work.get(field, 0) + numbers[0]
            row = answer[2][0] if 2 in answer else end or None
        ask = [(function, None if at is None else asked.columns[at]) for function, at in asked.aggregates]
        return [[*key, *(state.finish(*one) for one, state in zip(ask, states))] for key, states in merged.items()]

    def _region(self, table, row):
        for _ in range(2):
            for region in self._regions.setdefault(table, []):
                if region[1] <= row and (not region[2] or row < region[2]):
                    return region
            self._regions[table] = self._cells.regions(table)
        raise Refused(f"NotServingRegion: none for {row}")

    def _call(self, region, row, message):
        self._calls += 1
        call = raw(1, row) + raw(2, b"grampus.pb.ColumnService") + raw(3, b"Aggregate") + raw(4, message)
        parameter = raw(1, whole(1, REGION_NAME) + raw(2, region)) + raw(2, call)
        header = whole(1, self._calls) + raw(3, b"ExecService") + whole(4, 1)
        frame = messages.delimited(header) + messages.delimited(parameter)
        self._socket.sendall(struct.pack(">I", len(frame)) + frame)
        (length,) = struct.unpack(">I", self._file.read(4))
        header, rest = messages.split_delimited(self._file.read(length))
        exception = messages.parsed(header).get(2)
        if exception:
            fields = messages.parsed(exception[0])
            raise Refused(b" ".join(fields.get(1, []) + fields.get(2, [])).decode("utf-8", "replace"))
        body = messages.parsed(messages.split_delimited(rest)[0])
        return messages.parsed(body[2][0]).get(2, [b""])[0]


class State:
    """The state of one aggregate for a group."""

    def __init__(self, message):
        fields = messages.parsed(message)
        self.count = fields.get(1, [0])[0]
        # The sum, or the extreme value, of each response.
        self.values = [found for found in map(_plain, fields.get(2, [])) if found is not None]
        self.mean, self.squares = (fields.get(field, [0.0])[0] for field in (3, 4))

    def merge(self, other):
        self.values += other.values
        count = self.count + other.count
        if count:
            distance = other.mean - self.mean
            self.squares += other.squares + distance * distance * self.count * other.count / count
            self.mean += distance * other.count / count
        self.count = count

    def finish(self, function, one):
        if function == "count":
            return self.count
        if function in ("min", "max"):
            extreme = (min if function == "min" else max)(self.values, key=_order, default=None)
            return _as_answered(one, extreme)
        if function in ("sum", "avg"):
            if not self.count:
                return None
            total = _as_answered(one, sum(self.values))
            return total if function == "sum" else float(total) / self.count
        least = 1 if function.endswith("pop") else 2
        if self.count < least:
            return None
        variance = self.squares / (self.count + 1 - least)
        return variance ** 0.5 if function.startswith("stddev") else variance


def _plain(message):
    """Decodes a value: an int (for decimals the unscaled one), a float, or bytes; None for null."""
    fields = messages.parsed(message)
    if 1 in fields:
        return messages.unsigned_to_signed(fields[1][0])
    if 2 in fields:
        return fields[2][0]
    if 3 in fields:
        return int.from_bytes(fields[3][0], "big", signed=True)
    return fields[4][0] if 4 in fields else None


def _as_answered(one, found):
    """A value of a column in the form of `answers`."""
    if found is None or one.kind == "whole":
        return found
    if one.kind == "boolean":
        return found != 0
    if one.kind == "time":
        return tables.time_text(found, schema.UNITS[one.unit])
    if one.kind == "decimal":
        return Decimal(found).scaleb(-one.scale, context=values.EXACT)
    if one.kind == "text":
        return found.decode()
    return "NaN" if found != found else found + 0.0


def _order(found):
    # NaN is greater than all others.
    return (found != found, 0.0 if found != found else found) if isinstance(found, float) else found
