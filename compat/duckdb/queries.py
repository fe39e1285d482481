"""Random queries over a table, in the words of both dialects.

They differ in two things: DuckDB has times of nanoseconds by another name, and gives them out as text.
"""
import re
from decimal import Decimal

import endpoint
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
    """A query in both dialects, and as a question to the endpoint if it is one."""

    def __init__(self, grampus, duckdb, outputs, is_ordered, is_aggregate, asked=None):
        self.asked = asked
        self.grampus = grampus
        self.duckdb = re.sub(r"\bTIMESTAMP '", "TIMESTAMP_NS '", duckdb)
        self.outputs = outputs
        self.is_ordered = is_ordered
        self.is_aggregate = is_aggregate


class Condition:
    """A condition in SQL, and as a message to the endpoint; None where that has none."""

    def __init__(self, sql, message):
        self.sql = sql
        self.message = message

    def negated(self, is_it=True):
        return Condition(f"NOT ({self.sql})", self.message and endpoint.negated(self.message)) if is_it else self

    @staticmethod
    def joined(word, parts):
        join = endpoint.every if word == "AND" else endpoint.some
        known = all(part.message for part in parts)
        return Condition("(" + f" {word} ".join(part.sql for part in parts) + ")",
                         join([part.message for part in parts]) if known else None)


class Literal:
    """A literal in SQL, and the value of the column that it is; None if it is none."""

    def __init__(self, sql, value):
        self.sql = sql
        self.value = value


class Maker:
    """Makes queries over one table, of whose rows it knows some; with `for_endpoint` such as the endpoint answers alone."""

    def __init__(self, table, rows, for_endpoint=False):
        self.table = table
        self.rows = rows
        self.for_endpoint = for_endpoint
        # The columns that queries are about: not the mark of rows which are left out.
        self.columns = [column for column in table.columns if column is not table.mark]
        self.largest = [self._largest(at) for at in range(len(self.columns))]
        self._asked = None

    def query(self, random):
        if not self.for_endpoint:
            self._asked = endpoint.Asked(self.table)
            make = random.choices((self._grouped, self._distinct, self._mixed, self._nested, self._plain), (83, 4, 4, 4, 5))[0]
            return make(random)
        while True:
            self._asked = endpoint.Asked(self.table)
            query = self._grouped(random)
            if query.asked:
                return query

    # Aggregates of groups, which the servers are to find.
    def _grouped(self, random):
        group = random.sample(self.columns, min(len(self.columns), random.choices((0, 1, 2, 3), (3, 4, 2, 1))[0]))
        keys = [as_it_is(column) for column in group]
        aggregates = [self._aggregate(random) for _ in range(random.choice((1, 1, 2, 3, 5)))]
        where, tail = self._where(random)
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
            return self._of(outputs, self._where(random)[1], False, True, "DISTINCT ")
        return self._of([Output(f"count(DISTINCT {columns[0].name})", "whole")], self._where(random)[1], False, True)

    # What the servers do in part only: expressions, FILTER, several kinds of DISTINCT.
    def _mixed(self, random):
        outputs = [Output(f"count(DISTINCT {random.choice(self.columns).name})", "whole"), self._aggregate(random),
                   Output(f"count(*) FILTER (WHERE {self._condition(random, 1).sql})", "whole")]
        random.shuffle(outputs)
        group = random.sample(self.columns, random.choice((0, 1)))
        tail = self._where(random)[1]
        if group:
            outputs = [as_it_is(group[0]), *outputs]
            tail += f" GROUP BY {group[0].name}"
        return self._of(outputs, tail, False, True)

    def _nested(self, random):
        column, other = random.choice(self.columns), random.choice(self.columns)
        inner = f"SELECT {column.name}, count({other.name}) AS n FROM {self.table.name}{self._where(random)[1]} GROUP BY {column.name}"
        outputs = [Output("count(*)", "whole"), Output("max(n)", "whole"), Output("min(n)", "whole"), Output("sum(n)", "whole")]
        columns = ", ".join(f"{output.grampus} AS o{at}" for at, output in enumerate(outputs))
        sql = f"SELECT {columns} FROM ({inner}) AS q"
        return Query(sql, sql, outputs, False, True)

    def _plain(self, random):
        columns = random.sample(self.columns, random.randint(1, len(self.columns)))
        outputs = [as_it_is(column) for column in columns]
        tail = self._where(random)[1]
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
            # The mean of a decimal is one of four digits more.
            digits = 1.01 * 10.0 ** -(column.scale + 4) if column.kind == "decimal" else 0
            return Output(call, "real", SHARE * largest + digits)
        return Output(call, "real", SHARE * largest * largest, square=function.startswith("stddev"))

    def _having(self, random):
        column = random.choice(self.columns)
        choices = [f"count(*) {random.choice(COMPARISONS)} {random.choice((1, 2, 10))}",
                   f"count({column.name}) > {random.choice((0, 1, 5))}",
                   f"max({column.name}) IS NOT NULL",
                   f"min({column.name}) {random.choice(COMPARISONS)} {self._literal(random, column).sql}"]
        if column.kind == "whole" and column.temper != "wild":
            choices.append(f"sum({column.name}) > 0")
        return random.choice(choices)

    # Conditions.
    def _where(self, random):
        """A condition or None, and the words of a query for it."""
        parts = [self._condition(random, 3)] if random.random() < 0.7 else []
        if random.random() < 0.35:
            parts += self._key_range(random)
        if self.table.is_busy:
            parts.append(self._null(random, self.table.mark, "IS"))
        random.shuffle(parts)
        if not parts:
            return None, ""
        found = Condition.joined("AND", parts)
        return found, " WHERE " + found.sql[1:-1]

    def _key_range(self, random):
        """Conditions on the first columns of the row key, or on some of them."""
        columns = self.table.key.columns
        found = []
        for column in columns[:random.randint(1, len(columns))]:
            if random.random() < 0.6:
                found.append(self._against(column, "=", self._literal(random, column)))
                continue
            form = random.choice((">=", "<", ">", "BETWEEN", "IN"))
            if form == "BETWEEN":
                found.append(self._between(random, column, False))
            elif form == "IN":
                found.append(self._listed(random, column, False))
            else:
                found.append(self._against(column, form, self._literal(random, column)))
            break
        return found

    def _condition(self, random, depth):
        if depth and random.random() < 0.45:
            parts = [self._condition(random, depth - 1) for _ in range(random.choice((2, 2, 3)))]
            return Condition.joined(random.choice(("AND", "OR")), parts).negated(random.random() < 0.3)
        column = random.choice(self.columns)
        choices = [self._compared, self._compared, self._listed, self._between, self._null]
        if column.kind == "text":
            choices += [self._like, self._like]
        if column.kind == "boolean":
            choices += [self._truth, self._truth]
        return random.choice(choices)(random, column)

    def _against(self, column, operator, literal, is_turned=False):
        turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        sql = f"{literal.sql} {turned} {column.name}" if is_turned else f"{column.name} {operator} {literal.sql}"
        message = None
        if literal.value is not None:
            message = endpoint.compared(self._asked.place(column), operator, endpoint.value(column, literal.value))
        return Condition(sql, message)

    def _compared(self, random, column):
        alike = [other for other in self.columns if self._comparable(column, other)]
        operator = random.choice(COMPARISONS)
        if alike and random.random() < 0.15:
            other = random.choice(alike)
            message = None
            if column.unit == other.unit:
                message = endpoint.columns_compared(self._asked.place(column), operator, self._asked.place(other))
            return Condition(f"{column.name} {operator} {other.name}", message)
        return self._against(column, operator, self._literal(random, column), random.random() < 0.2)

    @staticmethod
    def _comparable(one, other):
        if one is other or one.kind != other.kind:
            return False
        return one.kind != "decimal" or one.sql_type == other.sql_type

    def _listed(self, random, column, may_negate=True):
        literals = [self._literal(random, column) for _ in range(random.choice((1, 2, 3, 6)))]
        message = None
        if all(literal.value is not None for literal in literals):
            message = endpoint.listed(self._asked.place(column), [endpoint.value(column, literal.value) for literal in literals])
        word = "NOT IN" if may_negate and random.random() < 0.4 else "IN"
        sql = f"{column.name} {word} ({', '.join(literal.sql for literal in literals)})"
        return Condition(sql, endpoint.negated(message) if message and word == "NOT IN" else message)

    def _between(self, random, column, may_negate=True):
        low, high = self._literal(random, column), self._literal(random, column)
        both = Condition.joined("AND", [self._against(column, ">=", low), self._against(column, "<=", high)])
        word = "NOT BETWEEN" if may_negate and random.random() < 0.3 else "BETWEEN"
        message = endpoint.negated(both.message) if both.message and word == "NOT BETWEEN" else both.message
        return Condition(f"{column.name} {word} {low.sql} AND {high.sql}", message)

    def _null(self, random, column, word=None):
        word = word or random.choice(("IS", "IS NOT"))
        message = endpoint.null(self._asked.place(column))
        return Condition(f"{column.name} {word} NULL", endpoint.negated(message) if word == "IS NOT" else message)

    def _truth(self, random, column):
        """A boolean column by itself."""
        is_true = endpoint.compared(self._asked.place(column), "=", endpoint.value(column, 1))
        is_null = endpoint.null(self._asked.place(column))
        return random.choice((
            Condition(column.name, is_true), Condition(f"NOT {column.name}", endpoint.negated(is_true)),
            Condition(f"{column.name} IS TRUE", endpoint.every([is_true, endpoint.negated(is_null)])),
            Condition(f"{column.name} IS NOT TRUE", endpoint.some([endpoint.negated(is_true), is_null])),
            Condition(f"{column.name} IS FALSE", endpoint.every([endpoint.negated(is_true), endpoint.negated(is_null)]))))

    def _like(self, random, column):
        pattern = []
        for letter in self._known(random, column) or "a":
            turn = random.random()
            if turn < 0.15:
                pattern.append("_")
            elif turn < 0.3:
                pattern.append("%")
            else:
                pattern.append("\\" + letter if letter in "%_" and turn < 0.6 else letter)
        pattern = "".join(random.choice((pattern, [*pattern, "%"], ["%", *pattern], [*pattern[:3], "%"])))
        escape = " ESCAPE '\\'" if "\\" in pattern else ""
        word = random.choice(("LIKE", "LIKE", "NOT LIKE"))
        message = endpoint.like(self._asked.place(column), pattern)
        return Condition(f"{column.name} {word} {quoted(pattern)}{escape}", endpoint.negated(message) if word != "LIKE" else message)

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
            return Literal(quoted(value), value)
        if column.kind == "boolean":
            return Literal("true" if value else "false", value)
        if column.kind == "time":
            return Literal(f"TIMESTAMP '{tables.time_text(value, schema.UNITS[column.unit])}'", value)
        if column.kind == "real":
            return Literal(f"CAST('{value!r}' AS DOUBLE)", value)
        if column.kind == "decimal":
            return self._decimal(random, column, value)
        if abs(value) >= 1 << 50:
            return Literal(f"CAST('{value}' AS BIGINT)", value)
        if abs(value) >= 1 << 30:
            return Literal(str(value), value)
        # Also what the column's type has not: halves, and numbers beyond it.
        found = value * 1000 + 7
        return random.choices((Literal(str(value), value), Literal(f"{value}.5", None), Literal(str(found), found)), (10, 1, 1))[0]

    @staticmethod
    def _decimal(random, column, value):
        scale, is_finer = column.scale, column.digits <= 28 and random.random() < 0.2
        found = value
        if is_finer:
            scale += 2
            found = values.EXACT.add(value, Decimal(random.randint(-9, 9)).scaleb(-scale))
        digits = max(len(found.as_tuple().digits), scale + 1, column.digits)
        return Literal(f"CAST('{found:f}' AS DECIMAL({digits},{scale}))", None if is_finer else value)

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
