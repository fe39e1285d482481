"""Normalizes the results of both sides and compares them."""
import math
import re
from decimal import Decimal

import schema

RELATIVE = 1e-9
WRAP = 1 << 64
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?")


def read(outputs, rows):
    """Rows of one side, as values that are equal if the results are."""
    return [[one(output, value) for output, value in zip(outputs, row)] for row in rows]


def one(output, value):
    if value is None:
        return None
    if output.kind == "boolean":
        return value in (True, "t", "true")
    if output.kind == "time":
        date, time, part = TIME.fullmatch(value).groups()
        return f"{date} {time}.{(part or '').ljust(9, '0')}"
    if output.kind == "text":
        return value
    if output.kind in ("real", "single") or output.tolerance is not None:
        number = schema.single(float(value)) if output.kind == "single" else float(value)
        # Zeros are equal, and so are NaNs.
        return "NaN" if math.isnan(number) else number + 0.0
    if output.kind == "decimal":
        return Decimal(value)
    number = int(value)
    return (number + WRAP // 2) % WRAP - WRAP // 2 if output.wraps else number


def difference(query, ours, theirs):
    """A description of the difference; None if there is none."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    exact = [at for at, output in enumerate(query.outputs) if output.tolerance is None]
    if not query.is_ordered:
        order = lambda row: [(row[at] is not None, str(type(row[at])), row[at] if row[at] is not None else 0) for at in exact]
        ours, theirs = sorted(ours, key=order), sorted(theirs, key=order)
    for number, (own, other) in enumerate(zip(ours, theirs)):
        for at, output in enumerate(query.outputs):
            if not alike(output, own[at], other[at]):
                return f"row {number}, column {at}: {own[at]!r}, not {other[at]!r}"
    return None


def alike(output, own, other):
    if output.tolerance is None or own is None or other is None or "NaN" in (own, other):
        return own == other
    if output.square:
        own, other = own * own, other * other
    # Numbers beyond the range of a double are equal infinities.
    return own == other or abs(own - other) <= max(RELATIVE * max(abs(own), abs(other)), output.tolerance)
