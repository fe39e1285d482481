"""Random queries over a table, in the words of both dialects.

They differ in two things: DuckDB has times of nanoseconds by another name, and gives them out as text.
"""
import re
from decimal import Decimal

import schema
import tables
import values

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# Errors of sums of reals: a share of the largest value, for each that is added.
SHARE = 1e-12


class Output:
    """A column of an answer: how it is read, and by how much two may differ."""

    def __init__(self, grampus, kind, tolerance=None, wraps=False, square=False):
        self.grampus = grampus
        self.duckdb = f"CAST({grampus} AS VARCHAR)" if kind == "time" else grampus
        self.kind = kind
        # Nothing of what is exact; of others the difference that is none, beside one of 1e-9 of the values.
        self.tolerance = tolerance
        # A sum of BIGINT goes round at the end of it.
        self.wraps = wraps
        # A root: what is under it is compared.
        self.square = square


class Query:
    def __init__(self, grampus, duckdb, outputs, is_ordered, is_aggregate):
        self.grampus = grampus
        self.duckdb = re.sub(r"\bTIMESTAMP '", "TIMESTAMP_NS '", duckdb)
        self.outputs = outputs
        self.is_ordered = is_ordered
        self.is_aggregate = is_aggregate


class Maker:
    """Makes queries over one table, of whose rows it knows some."""

    def __init__(self, table, rows):
        self.table = table
        self.rows = rows
        # The columns that queries are about: not the mark of rows which are left out.
        self.columns = [column for column in table.columns if column is not table.mark]
        self.largest = [self._largest(at) for at in range(len(self.columns))]

    def query(self, random):
        make = random.choices((self._grouped, self._distinct, self._mixed, self._nested, self._plain), (83, 4, 4, 4, 5))[0]
        return make(random)

    # Aggregates of groups, which the servers are to find.
    def _grouped(self, random):
        group = random.sample(self.columns, min(len(self.columns), random.choices((0, 1, 2, 3), (3, 4, 2, 1))[0]))
        keys = [as_it_is(column) for column in group]
        aggregates = [self._aggregate(random) for _ in range(random.choice((1, 1, 2, 3, 5)))]
        tail = self._where(random)
        if group:
            tail += " GROUP BY " + ", ".join(column.name for column in group)
        if random.random() < 0.25:
            tail += " HAVING " + self._having(random)
        outputs = keys + aggregates
        is_ordered = bool(group) and random.random() < 0.4
        if is_ordered:
            tail += self._order(random, len(keys), outputs)
        return self._of(outputs, tail, is_ordered, True)

    def _order(self, random, keys, outputs):
        """All of the keys, so that there is one order only, and maybe an exact aggregate before them."""
        by = list(range(keys))
        random.shuffle(by)
        exact = [at for at in range(keys, len(outputs)) if outputs[at].tolerance is None and not outputs[at].wraps]
        if exact and random.random() < 0.5:
            by.insert(0, random.choice(exact))
        order = ", ".join(f"o{at} {random.choice(('ASC', 'DESC'))} NULLS {random.choice(('FIRST', 'LAST'))}" for at in by)
        limit = random.choice(("", f" LIMIT {random.randint(1, 20)}", f" LIMIT {random.randint(1, 9)} OFFSET {random.randint(0, 9)}"))
        return f" ORDER BY {order}{limit}"

    def _distinct(self, random):
        columns = random.sample(self.columns, min(len(self.columns), random.choice((1, 2))))
        if random.random() < 0.5:
            outputs = [as_it_is(column) for column in columns]
            return self._of(outputs, self._where(random), False, True, "DISTINCT ")
        return self._of([Output(f"count(DISTINCT {columns[0].name})", "whole")], self._where(random), False, True)

    # What the servers do in part only: expressions, FILTER, several kinds of DISTINCT.
    def _mixed(self, random):
        outputs = [Output(f"count(DISTINCT {random.choice(self.columns).name})", "whole"), self._aggregate(random),
                   Output(f"count(*) FILTER (WHERE {self._condition(random, 1)})", "whole")]
        random.shuffle(outputs)
        group = random.sample(self.columns, random.choice((0, 1)))
        tail = self._where(random)
        if group:
            outputs = [as_it_is(group[0]), *outputs]
            tail += f" GROUP BY {group[0].name}"
        return self._of(outputs, tail, False, True)

    def _nested(self, random):
        column, other = random.choice(self.columns), random.choice(self.columns)
        inner = f"SELECT {column.name}, count({other.name}) AS n FROM {self.table.name}{self._where(random)} GROUP BY {column.name}"
        outputs = [Output("count(*)", "whole"), Output("max(n)", "whole"), Output("min(n)", "whole"), Output("sum(n)", "whole")]
        columns = ", ".join(f"{output.grampus} AS o{at}" for at, output in enumerate(outputs))
        sql = f"SELECT {columns} FROM ({inner}) AS q"
        return Query(sql, sql, outputs, False, True)

    def _plain(self, random):
        columns = random.sample(self.columns, random.randint(1, len(self.columns)))
        outputs = [as_it_is(column) for column in columns]
        tail = self._where(random)
        is_ordered = isinstance(self.table.key, schema.TextKey)
        if is_ordered:
            tail += f" ORDER BY k0{random.choice(('', ' DESC'))}" + random.choice(("", " LIMIT 7"))
        return self._of(outputs, tail, is_ordered, False)

    def _of(self, outputs, tail, is_ordered, is_aggregate, distinct=""):
        def written(word):
            columns = ", ".join(f"{getattr(output, word)} AS o{at}" for at, output in enumerate(outputs))
            return f"SELECT {distinct}{columns} FROM {self.table.name}{tail}"
        return Query(written("grampus"), written("duckdb"), outputs, is_ordered, is_aggregate)

    def _aggregate(self, random):
        at = random.randrange(len(self.columns))
        column, name = self.columns[at], self.columns[at].name
        functions = ["count", "min", "max"]
        if column.kind in ("whole", "decimal") or (column.kind == "real" and column.temper != "wild"):
            functions += ["sum", "sum", "avg", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"]
        function = random.choice(functions + ["*"])
        largest = self.largest[at]
        if function == "*":
            return Output("count(*)", "whole")
        call = f"{function}({name})"
        if function == "count":
            return Output(call, "whole")
        if function in ("min", "max"):
            return as_it_is(column, call)
        if function == "sum":
            exact = column.kind != "real"
            return Output(call, column.kind, None if exact else SHARE * largest * (1 + len(self.rows)), wraps=column.kind == "whole")
        if function == "avg":
            # The mean of a decimal is one of four digits more.
            digits = 1.01 * 10.0 ** -(column.scale + 4) if column.kind == "decimal" else 0
            return Output(call, "real", SHARE * largest + digits)
        return Output(call, "real", SHARE * largest * largest, square=function.startswith("stddev"))

    def _having(self, random):
        column = random.choice(self.columns)
        choices = [f"count(*) {random.choice(COMPARISONS)} {random.choice((1, 2, 10))}",
                   f"count({column.name}) > {random.choice((0, 1, 5))}",
                   f"max({column.name}) IS NOT NULL",
                   f"min({column.name}) {random.choice(COMPARISONS)} {self._literal(random, column)}"]
        if column.kind == "whole" and column.temper != "wild":
            choices.append(f"sum({column.name}) > 0")
        return random.choice(choices)

    # Conditions.
    def _where(self, random):
        parts = [self._condition(random, 3)] if random.random() < 0.7 else []
        if random.random() < 0.35:
            parts += self._key_range(random)
        if self.table.is_busy:
            parts.append("w IS NULL")
        random.shuffle(parts)
        parts = [f"({part})" if " OR " in part else part for part in parts]
        return " WHERE " + " AND ".join(parts) if parts else ""

    def _key_range(self, random):
        """Conditions on the first columns of the row key, or on some of them."""
        columns = self.table.key.columns
        found = []
        for column in columns[:random.randint(1, len(columns))]:
            if random.random() < 0.6:
                found.append(f"{column.name} = {self._literal(random, column)}")
                continue
            low, high = self._literal(random, column), self._literal(random, column)
            found.append(random.choice((f"{column.name} >= {low}", f"{column.name} < {high}", f"{column.name} > {low}",
                                        f"{column.name} BETWEEN {low} AND {high}", f"{column.name} IN ({low}, {high})")))
            break
        return found

    def _condition(self, random, depth):
        if depth and random.random() < 0.45:
            parts = [self._condition(random, depth - 1) for _ in range(random.choice((2, 2, 3)))]
            text = "(" + random.choice((" AND ", " OR ")).join(parts) + ")"
            return "NOT " + text if random.random() < 0.3 else text
        column = random.choice(self.columns)
        name = column.name
        choices = [self._compared, self._compared, self._listed, self._between, self._null]
        if column.kind == "text":
            choices += [self._like, self._like]
        if column.kind == "boolean":
            choices += [lambda *_: name, lambda *_: f"NOT {name}",
                        lambda *_: f"{name} IS {random.choice(('', 'NOT '))}{random.choice(('TRUE', 'FALSE'))}"]
        return random.choice(choices)(random, column)

    def _compared(self, random, column):
        alike = [other for other in self.columns if self._comparable(column, other)]
        if alike and random.random() < 0.15:
            return f"{column.name} {random.choice(COMPARISONS)} {random.choice(alike).name}"
        sides = [column.name, self._literal(random, column)]
        if random.random() < 0.2:
            sides.reverse()
        return f"{sides[0]} {random.choice(COMPARISONS)} {sides[1]}"

    @staticmethod
    def _comparable(one, other):
        if one is other or one.kind != other.kind:
            return False
        return one.kind != "decimal" or one.sql_type == other.sql_type

    def _listed(self, random, column):
        listed = ", ".join(self._literal(random, column) for _ in range(random.choice((1, 2, 3, 6))))
        return f"{column.name} {random.choice(('', 'NOT '))}IN ({listed})"

    def _between(self, random, column):
        return (f"{column.name} {random.choice(('', '', 'NOT '))}BETWEEN {self._literal(random, column)} "
                f"AND {self._literal(random, column)}")

    @staticmethod
    def _null(random, column):
        return f"{column.name} IS {random.choice(('', 'NOT '))}NULL"

    def _like(self, random, column):
        pattern, escape = "", ""
        for letter in self._known(random, column) or "a":
            turn = random.random()
            if turn < 0.15:
                pattern += "_"
            elif turn < 0.3:
                pattern += "%"
            elif letter in "%_" and random.random() < 0.5:
                pattern, escape = pattern + "\\" + letter, " ESCAPE '\\'"
            else:
                pattern += letter
        pattern = random.choice((pattern, pattern + "%", "%" + pattern, pattern[:3] + "%"))
        if pattern.endswith("\\"):
            pattern += "%"
        if "\\" not in pattern:
            escape = ""
        # Behind what escapes comes what is escaped.
        pattern = re.sub(r"\\(?![%_])", "", pattern)
        return f"{column.name} {random.choice(('', '', 'NOT '))}LIKE {quoted(pattern)}{escape}"

    def _known(self, random, column):
        """A value of some row, or any."""
        if self.rows and random.random() < 0.7:
            value = random.choice(self.rows)[self.table.columns.index(column)]
            if value is not None:
                return value
        return column._fresh(random)

    def _literal(self, random, column):
        value = self._known(random, column)
        if column.kind == "text":
            return quoted(value)
        if column.kind == "boolean":
            return "true" if value else "false"
        if column.kind == "time":
            return f"TIMESTAMP '{tables.time_text(value, schema.UNITS[column.unit])}'"
        if column.kind == "real":
            return f"CAST('{value!r}' AS DOUBLE)"
        if column.kind == "decimal":
            return self._decimal(random, column, value)
        if abs(value) >= 1 << 50:
            return f"CAST('{value}' AS BIGINT)"
        # Also what the column's type has not: halves, and numbers beyond it.
        return random.choices((str(value), f"{value}.5", str(value * 1000 + 7)), (10, 1, 1))[0] if abs(value) < 1 << 30 else str(value)

    @staticmethod
    def _decimal(random, column, value):
        scale = column.scale
        if column.digits <= 28 and random.random() < 0.2:
            scale += 2
            value = values.EXACT.add(value, Decimal(random.randint(-9, 9)).scaleb(-scale))
        digits = max(len(value.as_tuple().digits), scale + 1, column.digits)
        return f"CAST('{value:f}' AS DECIMAL({digits},{scale}))"

    def _largest(self, at):
        """The largest of a column's numbers."""
        column = self.columns[at]
        if column.kind not in ("whole", "real", "decimal"):
            return 0.0
        place = self.table.columns.index(column)
        found = (abs(float(row[place])) for row in self.rows if row[place] is not None)
        return max((size for size in found if size < float("inf")), default=0.0)


def as_it_is(column, expression=None):
    """Values of a column."""
    return Output(expression or column.name, "single" if column.sql_type == "REAL" else column.kind)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"
