"""Random tables with their expected content: written to the cluster by `Cells`, kept here, loaded
into DuckDB."""
import datetime
import itertools
import subprocess

import schema
from javatools import client_class_path, conf_directory, java

# Versions that families keep. No cell gets more before queries begin, because compactions determine
# which are kept.
VERSIONS = 3
FIRST_TIMESTAMP = 1_000_000
NULL_WORD = "\\N"


class Cells:
    """Controls the program compat.Cells: writes, flushes, compactions, splits."""

    def __init__(self, endpoint):
        conf = conf_directory(endpoint.settings("zk"), "error")
        self._process = subprocess.Popen(
            [java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{conf}:{client_class_path('2.5.10')}", "compat.Cells"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, lines):
        """Sends commands without a response."""
        self._process.stdin.write("".join(line + "\n" for line in lines))

    def ask(self, line):
        """Sends a command and returns its refusal, or None."""
        self.tell([line])
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"compat.Cells ended at: {line}")
        return None if answer == "done" else answer

    def regions(self, table):
        """The regions of a table in order: name, start row, end row (exclusive)."""
        self.tell([f"regions {table}"])
        self._process.stdin.flush()
        words = self._process.stdout.readline().split()
        if not words or words[-1] != "done":
            raise RuntimeError(f"regions of {table}: {' '.join(words)}")
        return [tuple(bytes.fromhex(part.strip("-")) for part in word.split(":")) for word in words[:-1]]

    def must(self, line):
        refused = self.ask(line)
        if refused:
            raise RuntimeError(f"{line}: {refused}")

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def hexadecimal(bytes_):
    return bytes_.hex() or "-"


class Table:
    """A table, its declaration, and its rows."""

    def __init__(self, random, name, rows, is_busy):
        self.name = name
        self.is_busy = is_busy
        self.rows_wanted = rows
        self.families = random.choice((["f"], ["f"], ["f", "g"]))
        self.key = random.choice(schema.KEYS)(random)
        count = random.choice((1, 3, 5, 8, 12))
        self.cell_columns = [schema.random_column(random, f"c{number}", self.families) for number in range(count)]
        # A marker that only rows have which queries exclude.
        self.mark = schema.Column(random, "w", "BOOLEAN", ("cell", random.choice(self.families), "w"), random.choice(
            ("bytes_boolean", "text_boolean")))
        self.columns = [*self.key.columns, *self.cell_columns, *([self.mark] if is_busy else [])]
        self._timestamps = itertools.count(FIRST_TIMESTAMP)
        # For each row the values of its key, and its versions by family and qualifier.
        self.keys = {}
        self.cells = {}
        # The last deletion of families and columns of rows.
        self._deleted = {}
        # The keys as a list, for random choices.
        self._known = []

    def declaration(self):
        columns = ", ".join(f"{column.name} {column.sql_type}" for column in self.columns)
        options = ", ".join(column.option() for column in self.columns)
        return f"CREATE EXTERNAL TABLE {self.name} ({columns}) STORED AS GRAMPUS LOCATION '{self.name}' OPTIONS ({options})"

    def create(self, random, cells):
        """Creates it and writes its rows: some in files, partly compacted, and some in memory."""
        options = (f"VERSIONS={VERSIONS},DATA_BLOCK_ENCODING={random.choice(('NONE', 'FAST_DIFF', 'DIFF', 'PREFIX', 'ROW_INDEX_V1'))}"
                   f",COMPRESSION={random.choice(('NONE', 'GZ', 'SNAPPY'))},BLOCKSIZE={random.choice((1024, 8192, 65536))}")
        splits = sorted({self.key.row(random)[0] for _ in range(random.choice((0, 0, 2, 5)))} - {b""})
        cells.must(" ".join(["create", self.name, *(f"{hexadecimal(family.encode())},{options}" for family in [*self.families, "u"]),
                             *(["/", *map(hexadecimal, splits)] if splits else [])]))
        chunks = random.choice((1, 2, 4))
        for _ in range(chunks):
            cells.tell(self._written(random, self.rows_wanted // chunks))
            cells.must("write")
            for step in random.choice((["flush"], ["flush"], ["flush", "compact"], ["flush", "settle"], [])):
                cells.must(f"{step} {self.name}")

    def live(self):
        """The existing rows in key order: key, and values of all columns."""
        declared = self._declared()
        for key in sorted(self.keys):
            columns = self.cells[key]
            if any(versions for (family, _), versions in columns.items() if family in declared):
                yield key, [*self.keys[key], *(self._newest(columns, column) for column in self.cell_columns),
                            *([None] if self.is_busy else [])]

    def _declared(self):
        """The families of declared columns, which determine which rows exist."""
        return {column.place[1] for column in self.columns if column.place[0] == "cell"}

    @staticmethod
    def _newest(columns, column):
        versions = columns.get(column.place[1:])
        return versions[max(versions)] if versions else None

    def _written(self, random, rows):
        """The commands that write about `rows` more rows, and change some existing ones."""
        for _ in range(rows):
            if self.keys and random.random() < 0.25:
                key = random.choice(self._known)
                yield from self._changed(random, key)
                continue
            key, parts = self.key.row(random)
            if key and key not in self.keys:
                self.keys[key], self.cells[key] = parts, {}
                self._known.append(key)
                yield from self._row(random, key)

    def _row(self, random, key):
        for column in self.cell_columns:
            value = column.value(random)
            # Null is a missing cell, or a cell with a null value.
            if value is not None or (column.bytes_of(None) is not None and random.random() < 0.3):
                yield from self._put(random, key, column, value)
        for family in random.choices(([], [self.families[0]], ["u"]), (8, 2, 1))[0]:
            # A column that is not declared.
            yield self._put_bytes(key, (family, "zz"), b"\xff\x00", None)

    def _put(self, random, key, column, value):
        where = column.place[1:]
        if len(self.cells[key].get(where, ())) < VERSIONS:
            yield self._put_bytes(key, where, column.bytes_of(value, random), value)

    def _put_bytes(self, key, where, bytes_, value, timestamp=None):
        timestamp = timestamp or next(self._timestamps)
        self.cells[key].setdefault(where, {})[timestamp] = value
        return self.put_line(key, where, timestamp, bytes_)

    def put_line(self, key, where, timestamp, bytes_):
        family, qualifier = (hexadecimal(word.encode()) for word in where)
        return f"put {self.name} {hexadecimal(key)} {family} {qualifier} {timestamp} {hexadecimal(bytes_)}"

    def _changed(self, random, key):
        """Changes a row: overwrites cells, writes older versions, or deletes cells, versions or
        families."""
        row, columns = hexadecimal(key), self.cells[key]
        column = random.choice(self.cell_columns)
        where = column.place[1:]
        versions = columns.get(where, {})
        family, qualifier = (hexadecimal(word.encode()) for word in where)
        what = random.choice(("again", "again", "again", "row", "before", "column", "version", "family", "all"))
        if what == "again":
            value = column.value(random)
            if column.bytes_of(value) is not None:
                yield from self._put(random, key, column, value)
        elif what == "row":
            yield from self._row(random, key)
        elif what == "before" and 0 < len(versions) < VERSIONS and min(versions) > FIRST_TIMESTAMP:
            # Not if there was a delete at or after that time, which would hide the cell.
            value, timestamp = column.value(random), min(versions) - 1
            if timestamp > max(self._deleted.get((key, where[0]), 0), self._deleted.get((key, *where), 0)):
                bytes_ = column.bytes_of(value, random)
                if bytes_ is not None:
                    yield self._put_bytes(key, where, bytes_, value, timestamp)
        elif what == "column":
            timestamp = next(self._timestamps)
            versions.clear()
            self._deleted[(key, *where)] = timestamp
            yield f"column {self.name} {row} {family} {qualifier} {timestamp}"
        elif what == "version" and versions:
            timestamp = max(versions)
            del versions[timestamp]
            # The same version must not be rewritten.
            self._deleted[(key, *where)] = max(timestamp, self._deleted.get((key, *where), 0))
            yield f"version {self.name} {row} {family} {qualifier} {timestamp}"
        elif what in ("family", "all"):
            timestamp = next(self._timestamps)
            for name in [where[0]] if what == "family" else [*self.families, "u"]:
                self._deleted[(key, name)] = timestamp
                for place, known in columns.items():
                    if place[0] == name:
                        known.clear()
                yield f"family {self.name} {row} {hexadecimal(name.encode())} {timestamp}"

    def written_again(self, random, rows):
        """The commands that rewrite some rows with unchanged values, while queries run."""
        for key in random.choices(self._known, k=rows) if self.keys else ():
            for column in self.cell_columns:
                value = self._newest(self.cells[key], column)
                if value is not None:
                    yield self.put_line(key, column.place[1:], next(self._timestamps), column.bytes_of(value, random))

    def noise(self, random, rows):
        """The commands that write or delete rows that queries exclude."""
        seen = set()
        for _ in range(rows):
            key, _ = self.key.row(random)
            if not key or key in self.keys or key in seen:
                continue
            seen.add(key)
            if random.random() < 0.3:
                timestamp = next(self._timestamps)
                yield from (f"family {self.name} {hexadecimal(key)} {hexadecimal(family.encode())} {timestamp}"
                            for family in self.families)
                continue
            for column in [*self.cell_columns, self.mark]:
                value = random.randrange(2) if column is self.mark else column.value(random)
                if value is not None:
                    yield self.put_line(key, column.place[1:], next(self._timestamps), column.bytes_of(value, random))

    def load(self, connection, path):
        """Creates the same table in DuckDB."""
        columns = ", ".join(f"{column.name} {column.duckdb_type()}" for column in self.columns)
        connection.execute(f"CREATE TABLE {self.name} ({columns})")
        with open(path, "w", newline="", encoding="utf-8") as file:
            rows = 0
            for _, row in self.live():
                rows += 1
                words = [loaded(column, value) for column, value in zip(self.columns, row)]
                quoted = (NULL_WORD if word is None else '"' + word.replace('"', '""') + '"' for word in words)
                file.write(",".join(quoted) + "\n")
        if rows:
            connection.execute(f"COPY {self.name} FROM '{path}' (FORMAT csv, HEADER false, DELIMITER ',', QUOTE '\"', ESCAPE '\"', "
                               f"NULLSTR '{NULL_WORD}', AUTO_DETECT false)")
        found = connection.execute(f"SELECT count(*) FROM {self.name}").fetchone()[0]
        if found != rows:
            raise RuntimeError(f"DuckDB loaded {found} rows of {rows}")
        return rows


def loaded(column, value):
    """A value in the form that DuckDB reads from a file; None for null."""
    if value is None:
        return None
    if column.kind == "boolean":
        return "true" if value else "false"
    if column.kind == "time":
        return time_text(value, schema.UNITS[column.unit])
    if column.kind == "decimal":
        return format(value, "f")
    return value if column.kind == "text" else repr(value)


def time_text(count, per_second):
    """Formats a count since the epoch as a time with nanoseconds."""
    seconds, part = divmod(count, per_second)
    days, second = divmod(seconds, 86_400)
    year, month, day = civil(days)
    return (f"{year:04}-{month:02}-{day:02} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            f".{part * (1_000_000_000 // per_second):09}")


def civil(days):
    """The date of a day number since 1970."""
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return date.year, date.month, date.day
