"""Random tables: columns of all types over all encodings, keys of several parts, and values for
them.

A column has a name, a type, the location of its values and their encoding, and makes values.
`values` defines their representation; text is kept as str.
"""
import struct
from decimal import Decimal

import values

# Slightly less than the range of nanoseconds in 64 bits.
TIME_FIRST_S, TIME_LAST_S = -8_000_000_000, 8_000_000_000
UNITS = {"seconds": 1, "millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}

WORDS = ("", "a", "b", "ab", "abc", "A", "ba", "b%", "a_c", "zürich", "Ünal", "日本", "日本語", "😀", "x y", "o'brien", "2", "10",
         "-3", "null", "z" * 40)
LETTERS = "abcxyzABC _%01é日😀"

# SQL's integer types by their number of bytes.
WHOLE_BYTES = {"TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8}


class Column:
    """A column of a random table."""

    def __init__(self, random, name, sql_type, place, encoding, unit=None, temper=None):
        self.name = name
        self.sql_type = sql_type
        # ("cell", FAMILY, QUALIFIER), or ("key", TEXT) with the option's text for a part of the row
        # key.
        self.place = place
        self.encoding = encoding
        self.unit = unit
        # `few`: few distinct values; `plain`: numbers with small sums; `wild`: all values.
        self.temper = temper or random.choice(("few", "few", "plain", "plain", "wild"))
        # Percentage of rows without a value.
        self.null_percent = random.choice((0, 5, 30, 90)) if place[0] == "cell" else 0
        self.pool = [self._fresh(random) for _ in range(random.choice((1, 3, 8, 20)))]

    @property
    def scale(self):
        return int(self.sql_type.split(",")[1][:-1]) if self.sql_type.startswith("DECIMAL") else 0

    @property
    def digits(self):
        return int(self.sql_type.split("(")[1].split(",")[0])

    @property
    def kind(self):
        """The kind of values for comparison: whole, real, decimal, text, boolean, time."""
        if self.sql_type in WHOLE_BYTES:
            return "whole"
        word = self.sql_type.split("(")[0]
        return {"REAL": "real", "DOUBLE": "real", "DECIMAL": "decimal", "VARCHAR": "text", "BOOLEAN": "boolean",
                "TIMESTAMP": "time"}[word]

    def duckdb_type(self):
        # Values of any unit, also compared with literals in nanoseconds.
        return "TIMESTAMP_NS" if self.kind == "time" else self.sql_type

    def option(self):
        """Its option in CREATE EXTERNAL TABLE."""
        where = f"{self.place[1]}:{self.place[2]}" if self.place[0] == "cell" else self.place[1]
        unit = f" {self.unit}" if self.unit else ""
        return f"'column.{self.name}' '{where} {self.encoding}{unit}'"

    def value(self, random):
        """A value, or None."""
        if random.randrange(100) < self.null_percent:
            return None
        if self.temper == "few" or random.random() < 0.3:
            return random.choice(self.pool)
        return self._fresh(random)

    def bytes_of(self, value, random=None):
        """The encoded value. With `random`, possibly in an equivalent encoding."""
        if value is None:
            return values.null(self.encoding)
        found = values.encode(self.encoding, value.encode() if self.kind == "text" else value)
        if random and random.random() < 0.2:
            if self.encoding.startswith("ordered_"):
                return values.descending(self.encoding, found)
            if self.encoding == "phoenix_char":
                return found + b"  "
        return found

    def _fresh(self, random):
        return getattr(self, "_" + self.kind)(random)

    def _boolean(self, random):
        return random.randrange(2)

    def _whole(self, random):
        width = min(WHOLE_BYTES[self.sql_type], values.WHOLE[self.encoding])
        least, greatest = -(1 << (8 * width - 1)), (1 << (8 * width - 1)) - 1
        if self.temper == "wild":
            return random.choice((least, greatest, 0, -1, 1, least + 1, greatest - 1, random.randint(least, greatest)))
        # Sums over all rows must stay within BIGINT.
        size = min(greatest, random.choice((3, 100, 10_000, 1 << 40)))
        return random.randint(-size, size)

    def _real(self, random):
        is_single = self.sql_type == "REAL" or values.REAL[self.encoding]
        if self.temper == "wild":
            value = random.choice((0.0, -0.0, 1e-30, -1e30, float("nan"), float("inf"), float("-inf"), 0.1,
                                   random.uniform(-1, 1), random.gauss(0, 1e10), 5e-324, 1.7976931348623157e308))
        else:
            value = random.choice((0.0, 1.0, -2.5, random.gauss(0, 1000), random.uniform(-1, 1), float(random.randint(-9, 9))))
        return single(value) if is_single else value

    def _decimal(self, random):
        # Sums and means have four more digits, and PostgreSQL's protocol carries 28.
        digits = min(self.digits, 24)
        size = random.choice((digits, digits, min(digits, 3)))
        unscaled = random.choice((0, 1, -1, 10 ** size - 1, 1 - 10 ** size, random.randint(1 - 10 ** size, 10 ** size - 1)))
        return Decimal(unscaled).scaleb(-self.scale, context=values.EXACT)

    def _time(self, random):
        count = UNITS[self.unit or "millis"]
        if random.random() < 0.3:
            # Whole seconds, days and years.
            return random.choice((0, -1, 86_400, 946_684_800, random.randint(-30_000, 30_000) * 86_400)) * count
        if self.temper == "wild":
            return random.randint(TIME_FIRST_S * count, TIME_LAST_S * count)
        return random.randint(1_700_000_000 * count, 1_700_100_000 * count)

    def _text(self, random):
        if random.random() < 0.5:
            text = random.choice(WORDS)
        else:
            text = "".join(random.choice(LETTERS) for _ in range(random.choice((1, 2, 5, 12))))
        if self.encoding == "phoenix_char":
            # An empty value is null in this encoding, and trailing spaces are not part of a value.
            text = text.rstrip(" ") or "c"
        return text


def single(value):
    """The nearest number of single precision."""
    try:
        return struct.unpack(">f", struct.pack(">f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def random_column(random, name, families):
    """A column in a cell."""
    encodings = {
        "BOOLEAN": values.BOOLEAN, "REAL": tuple(values.REAL), "DOUBLE": tuple(values.REAL), "VARCHAR": values.RAW,
    }
    sql_type = random.choice(("TINYINT", "SMALLINT", "INT", "INT", "BIGINT", "BIGINT", "BIGINT", "REAL", "DOUBLE", "DOUBLE",
                              "DECIMAL", "DECIMAL", "VARCHAR", "VARCHAR", "VARCHAR", "BOOLEAN", "TIMESTAMP"))
    unit = None
    if sql_type == "DECIMAL":
        digits = random.choice((1, 5, 9, 18, 19, 28, 38))
        sql_type = f"DECIMAL({digits},{random.choice((0, min(2, digits), min(8, digits), digits // 2))})"
        encoding = random.choice(values.DECIMAL)
    elif sql_type == "TIMESTAMP":
        encoding = random.choice(("bytes_long", "text_long", "ordered_int64", "phoenix_date", "phoenix_bigint",
                                  "phoenix_timestamp"))
        unit = random.choice(tuple(UNITS))
        if encoding == "phoenix_timestamp":
            unit = "nanos"
    elif sql_type in WHOLE_BYTES:
        encoding = random.choice(tuple(values.WHOLE))
    else:
        encoding = random.choice(encodings[sql_type])
    return Column(random, name, sql_type, ("cell", random.choice(families), name), encoding, unit)


class TextKey:
    """The whole row key is text."""

    def __init__(self, random):
        self.columns = [Column(random, "k0", "VARCHAR", ("key", "row"), "raw", temper="plain")]

    def row(self, random):
        text = random.choice(("", "user", "日", "~")) + "".join(random.choice("abc019") for _ in range(random.randint(1, 12)))
        return text.encode(), [text]


class FixedKey:
    """Parts of fixed width, followed by text or a number; some keys end before it."""

    WIDE = (("SMALLINT", "phoenix_smallint"), ("SMALLINT", "bytes_short"), ("INT", "phoenix_integer"), ("INT", "ordered_int32"),
            ("BIGINT", "phoenix_bigint"), ("BIGINT", "bytes_long"), ("TIMESTAMP", "phoenix_date"), ("DOUBLE", "phoenix_double"),
            ("BOOLEAN", "phoenix_boolean"), ("SMALLINT", "ordered_int16"), ("BIGINT", "ordered_int64"), ("REAL", "ordered_float32"),
            ("DOUBLE", "ordered_float64"), ("DOUBLE", "bytes_double"), ("REAL", "bytes_float"), ("BOOLEAN", "bytes_boolean"))
    TAILS = (("VARCHAR", "raw"), ("VARCHAR", "raw"), ("VARCHAR", "ordered_string"), ("VARCHAR", "ordered_blob"),
             ("DECIMAL(18,4)", "ordered_decimal"), ("DECIMAL(18,4)", "phoenix_decimal"), ("DOUBLE", "ordered_double"))

    def __init__(self, random):
        self.columns, at = [], 0
        for number in range(random.randint(1, 3)):
            sql_type, encoding = random.choice(self.WIDE)
            unit = "millis" if sql_type == "TIMESTAMP" else None
            temper = random.choice(("few", "plain", "wild"))
            column = Column(random, f"k{number}", sql_type, ("key", ""), encoding, unit, temper)
            width = len(column.bytes_of(column.pool[0]))
            column.place = ("key", f"row[{at}..{at + width}]")
            at += width
            self.columns.append(column)
        sql_type, encoding = random.choice(self.TAILS)
        self.columns.append(Column(random, "kt", sql_type, ("key", f"row[{at}..]"), encoding, temper="plain"))

    def row(self, random):
        parts = [column.value(random) for column in self.columns]
        # Makes keys distinct.
        if self.columns[-1].kind == "text":
            parts[-1] += str(random.randrange(100_000))
        # A value of OrderedBytes may be descending.
        key = b"".join(column.bytes_of(part, random) for column, part in zip(self.columns, parts))
        if self.columns[-1].encoding == "raw" and random.random() < 0.02:
            # Without its text, a key has the empty text; if the previous part lacks a byte too,
            # both are null.
            key = key[:len(key) - len(parts[-1].encode())]
            parts[-1] = ""
            if len(parts) > 2 and random.random() < 0.5:
                key = key[:-1]
                parts[-2:] = [None, None]
        return key, parts


class SeparatedKey:
    """Text parts between separators, of which the last may be missing, optionally after a prefix of
    fixed width."""

    TYPES = (("VARCHAR", "raw"), ("VARCHAR", "raw"), ("BIGINT", "text_long"), ("INT", "text_long"), ("DOUBLE", "text_double"),
             ("DECIMAL(12,2)", "text_decimal"), ("BOOLEAN", "text_boolean"))

    def __init__(self, random):
        self.separator, named = random.choice(((b"|", "|"), (b"\x00", "\\x00"), (b"||", "||"), (b"/", "/")))
        self.columns = []
        self.has_prefix = random.random() < 0.3
        start = "row[2..]" if self.has_prefix else "row"
        if self.has_prefix:
            self.columns.append(Column(random, "kp", "SMALLINT", ("key", "row[0..2]"), "phoenix_smallint", temper="few"))
        for number in range(random.randint(2, 4)):
            sql_type, encoding = random.choice(self.TYPES)
            place = ("key", f"{start} part {number + 1} by {named}")
            temper = random.choice(("few", "plain"))
            self.columns.append(Column(random, f"k{number}", sql_type, place, encoding, temper=temper))

    def row(self, random):
        parts = [column.value(random) for column in self.columns]
        for at in range(int(self.has_prefix), len(parts)):
            if self.columns[at].kind != "text" and random.random() < 0.05:
                # Empty text is not a number.
                parts[at] = None
            elif self.columns[at].kind == "text" and at == len(parts) - 1:
                parts[at] += str(random.randrange(100_000))
        written = [column.bytes_of(part) for column, part in zip(self.columns, parts)]
        if random.random() < 0.05 and len(parts) > int(self.has_prefix) + 1:
            parts[-1] = None
            written.pop()
        prefix = written.pop(0) if self.has_prefix else b""
        return prefix + self.separator.join(written), parts


KEYS = (TextKey, FixedKey, SeparatedKey, SeparatedKey)
