"""Random queries over a table, in both dialects.

The only difference is that DuckDB has another name for timestamps with nanoseconds.
"""
import re

import conditions
import endpoint
import schema

# Error of a sum of floating-point numbers: share of the largest value, per summand.
SHARE = 1e-12


class Output:
    """A column of a result: how it is decoded, and by how much two values may differ."""

    def __init__(self, grampus, kind, tolerance=None, wraps=False, square=False):
        # PostgreSQL's times have microseconds; as text they have all digits.
        self.grampus = self.duckdb = f"CAST({grampus} AS VARCHAR)" if kind == "time" else grampus
        self.kind = kind
        # None for exact values; otherwise the allowed difference, in addition to 1e-9 of the
        # values.
        self.tolerance = tolerance
        # A sum of BIGINT wraps around on overflow.
        self.wraps = wraps
        # For a square root: the squares are compared.
        self.square = square


class Query:
    """A query in both dialects, and as a request to the endpoint if there is one."""

    def __init__(self, grampus, duckdb, outputs, is_ordered, is_aggregate, asked=None):
        self.asked = asked
        self.grampus = grampus
        self.duckdb = re.sub(r"\bTIMESTAMP '", "TIMESTAMP_NS '", duckdb)
        self.outputs = outputs
        self.is_ordered = is_ordered
        self.is_aggregate = is_aggregate


class Maker:
    """Makes queries over one table with known rows; with `for_endpoint` only queries that the
    endpoint can answer alone."""

    def __init__(self, table, rows, for_endpoint=False):
        self.table = table
        self.rows = rows
        self.for_endpoint = for_endpoint
        # The columns that queries use: not the marker of excluded rows.
        self.columns = [column for column in table.columns if column is not table.mark]
        self.largest = [self._largest(at) for at in range(len(self.columns))]
        # The request being made, and its conditions.
        self._asked = self._conditions = None

    def query(self, random):
        if not self.for_endpoint:
            self._begin()
            make = random.choices((self._grouped, self._distinct, self._mixed, self._nested, self._plain), (83, 4, 4, 4, 5))[0]
            return make(random)
        while True:
            self._begin()
            query = self._grouped(random)
            if query.asked:
                return query

    def _begin(self):
        self._asked = endpoint.Asked(self.table)
        self._conditions = conditions.Conditions(self.table, self.columns, self.rows, self._asked)

    # Grouped aggregates, which must be pushed down to the servers.
    def _grouped(self, random):
        group = random.sample(self.columns, min(len(self.columns), random.choices((0, 1, 2, 3), (3, 4, 2, 1))[0]))
        keys = [as_it_is(column) for column in group]
        aggregates = [self._aggregate(random) for _ in range(random.choice((1, 1, 2, 3, 5)))]
        where, tail = self._conditions.where(random)
        if group:
            tail += " GROUP BY " + ", ".join(column.name for column in group)
        outputs = keys + aggregates
        if self.for_endpoint:
            asked = self._asked if where is None or where.message else None
            self._asked.predicate = where and where.message
            self._asked.group_by = [self._asked.place(column) for column in group]
            return self._of(outputs, tail, False, True, asked=asked)
        if random.random() < 0.25:
            tail += " HAVING " + self._having(random)
        is_ordered = bool(group) and random.random() < 0.4
        if is_ordered:
            tail += self._order(random, len(keys), outputs)
        return self._of(outputs, tail, is_ordered, True)

    def _order(self, random, keys, outputs):
        """An order by all keys, so that it is total, possibly preceded by an exact aggregate."""
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
            return self._of(outputs, self._conditions.where(random)[1], False, True, "DISTINCT ")
        return self._of([Output(f"count(DISTINCT {columns[0].name})", "whole")], self._conditions.where(random)[1], False, True)

    # Queries that servers evaluate only in part: expressions, FILTER, several kinds of DISTINCT.
    def _mixed(self, random):
        outputs = [Output(f"count(DISTINCT {random.choice(self.columns).name})", "whole"), self._aggregate(random),
                   Output(f"count(*) FILTER (WHERE {self._conditions.one(random, 1).sql})", "whole")]
        random.shuffle(outputs)
        group = random.sample(self.columns, random.choice((0, 1)))
        tail = self._conditions.where(random)[1]
        if group:
            outputs = [as_it_is(group[0]), *outputs]
            tail += f" GROUP BY {group[0].name}"
        return self._of(outputs, tail, False, True)

    def _nested(self, random):
        column, other = random.choice(self.columns), random.choice(self.columns)
        inner = f"SELECT {column.name}, count({other.name}) AS n FROM {self.table.name}{self._conditions.where(random)[1]} GROUP BY {column.name}"
        outputs = [Output("count(*)", "whole"), Output("max(n)", "whole"), Output("min(n)", "whole"), Output("sum(n)", "whole")]
        columns = ", ".join(f"{output.grampus} AS o{at}" for at, output in enumerate(outputs))
        sql = f"SELECT {columns} FROM ({inner}) AS q"
        return Query(sql, sql, outputs, False, True)

    def _plain(self, random):
        columns = random.sample(self.columns, random.randint(1, len(self.columns)))
        outputs = [as_it_is(column) for column in columns]
        tail = self._conditions.where(random)[1]
        is_ordered = isinstance(self.table.key, schema.TextKey)
        if is_ordered:
            tail += f" ORDER BY k0{random.choice(('', ' DESC'))}" + random.choice(("", " LIMIT 7"))
        return self._of(outputs, tail, is_ordered, False)

    def _of(self, outputs, tail, is_ordered, is_aggregate, distinct="", asked=None):
        def written(word):
            columns = ", ".join(f"{getattr(output, word)} AS o{at}" for at, output in enumerate(outputs))
            return f"SELECT {distinct}{columns} FROM {self.table.name}{tail}"
        return Query(written("grampus"), written("duckdb"), outputs, is_ordered, is_aggregate, asked)

    def _aggregate(self, random):
        at = random.randrange(len(self.columns))
        column, name = self.columns[at], self.columns[at].name
        functions = ["count", "min", "max"]
        if column.kind in ("whole", "decimal") or (column.kind == "real" and column.temper != "wild"):
            functions += ["sum", "sum", "avg", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"]
        function = random.choice(functions + ["*"])
        largest = self.largest[at]
        self._asked.aggregates.append(("count", None) if function == "*" else (function, self._asked.place(column)))
        if function == "*":
            return Output("count(*)", "whole")
        call = f"{function}({name})"
        if function == "count":
            return Output(call, "whole")
        if function in ("min", "max"):
            return as_it_is(column, call)
        if function == "sum":
            exact = column.kind != "real"
            return Output(call, column.kind, None if exact else SHARE * largest * (1 + len(self.rows)), wraps=column.kind == "whole" and not self.for_endpoint)
        if function == "avg":
            # The mean of a decimal has four more digits.
            digits = 1.01 * 10.0 ** -(column.scale + 4) if column.kind == "decimal" else 0
            return Output(call, "real", SHARE * largest + digits)
        return Output(call, "real", SHARE * largest * largest, square=function.startswith("stddev"))

    def _having(self, random):
        column = random.choice(self.columns)
        choices = [f"count(*) {random.choice(conditions.COMPARISONS)} {random.choice((1, 2, 10))}",
                   f"count({column.name}) > {random.choice((0, 1, 5))}",
                   f"max({column.name}) IS NOT NULL",
                   f"min({column.name}) {random.choice(conditions.COMPARISONS)} {self._conditions.literal(random, column).sql}"]
        if column.kind == "whole" and column.temper != "wild":
            choices.append(f"sum({column.name}) > 0")
        return random.choice(choices)

    def _largest(self, at):
        """The largest absolute value of a column."""
        column = self.columns[at]
        if column.kind not in ("whole", "real", "decimal"):
            return 0.0
        place = self.table.columns.index(column)
        found = (abs(float(row[place])) for row in self.rows if row[place] is not None)
        return max((size for size in found if size < float("inf")), default=0.0)


def as_it_is(column, expression=None):
    """Values of a column."""
    return Output(expression or column.name, "single" if column.sql_type == "REAL" else column.kind)
