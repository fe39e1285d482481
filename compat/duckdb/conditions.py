"""Random conditions on the rows of a table, in SQL and as messages to the endpoint."""
from decimal import Decimal

import endpoint
import schema
import tables
import values

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Condition:
    """A condition in SQL, and as a message to the endpoint, or None if the endpoint cannot express
    it."""

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
    """A literal in SQL, and its value in the column; None if the column cannot have it."""

    def __init__(self, sql, value):
        self.sql = sql
        self.value = value


class Conditions:
    """Makes conditions for one request, and adds their columns to it."""

    def __init__(self, table, columns, rows, asked):
        self.table = table
        # The columns that conditions use.
        self.columns = columns
        # Rows that provide values.
        self.rows = rows
        self.asked = asked

    def where(self, random):
        """A condition or None, and its WHERE clause."""
        parts = [self.one(random, 3)] if random.random() < 0.7 else []
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
        """Conditions on leading columns of the row key."""
        columns = self.table.key.columns
        found = []
        for column in columns[:random.randint(1, len(columns))]:
            if random.random() < 0.6:
                found.append(self._against(column, "=", self.literal(random, column)))
                continue
            form = random.choice((">=", "<", ">", "BETWEEN", "IN"))
            if form == "BETWEEN":
                found.append(self._between(random, column, False))
            elif form == "IN":
                found.append(self._listed(random, column, False))
            else:
                found.append(self._against(column, form, self.literal(random, column)))
            break
        return found

    def one(self, random, depth):
        if depth and random.random() < 0.45:
            parts = [self.one(random, depth - 1) for _ in range(random.choice((2, 2, 3)))]
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
            message = endpoint.compared(self.asked.place(column), operator, endpoint.value(column, literal.value))
        return Condition(sql, message)

    def _compared(self, random, column):
        alike = [other for other in self.columns if self._comparable(column, other)]
        operator = random.choice(COMPARISONS)
        if alike and random.random() < 0.15:
            other = random.choice(alike)
            message = None
            if column.unit == other.unit:
                message = endpoint.columns_compared(self.asked.place(column), operator, self.asked.place(other))
            return Condition(f"{column.name} {operator} {other.name}", message)
        return self._against(column, operator, self.literal(random, column), random.random() < 0.2)

    @staticmethod
    def _comparable(one, other):
        if one is other or one.kind != other.kind:
            return False
        return one.kind != "decimal" or one.sql_type == other.sql_type

    def _listed(self, random, column, may_negate=True):
        literals = [self.literal(random, column) for _ in range(random.choice((1, 2, 3, 6)))]
        message = None
        if all(literal.value is not None for literal in literals):
            message = endpoint.listed(self.asked.place(column), [endpoint.value(column, literal.value) for literal in literals])
        word = "NOT IN" if may_negate and random.random() < 0.4 else "IN"
        sql = f"{column.name} {word} ({', '.join(literal.sql for literal in literals)})"
        return Condition(sql, endpoint.negated(message) if message and word == "NOT IN" else message)

    def _between(self, random, column, may_negate=True):
        low, high = self.literal(random, column), self.literal(random, column)
        both = Condition.joined("AND", [self._against(column, ">=", low), self._against(column, "<=", high)])
        word = "NOT BETWEEN" if may_negate and random.random() < 0.3 else "BETWEEN"
        message = endpoint.negated(both.message) if both.message and word == "NOT BETWEEN" else both.message
        return Condition(f"{column.name} {word} {low.sql} AND {high.sql}", message)

    def _null(self, random, column, word=None):
        word = word or random.choice(("IS", "IS NOT"))
        message = endpoint.null(self.asked.place(column))
        return Condition(f"{column.name} {word} NULL", endpoint.negated(message) if word == "IS NOT" else message)

    def _truth(self, random, column):
        """A boolean column as a condition."""
        is_true = endpoint.compared(self.asked.place(column), "=", endpoint.value(column, 1))
        is_null = endpoint.null(self.asked.place(column))
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
        message = endpoint.like(self.asked.place(column), pattern)
        return Condition(f"{column.name} {word} {quoted(pattern)}{escape}", endpoint.negated(message) if word != "LIKE" else message)

    def _known(self, random, column):
        """A value of some row, or a random one."""
        if self.rows and random.random() < 0.7:
            value = random.choice(self.rows)[self.table.columns.index(column)]
            if value is not None:
                return value
        return column._fresh(random)

    def literal(self, random, column):
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
        # Also values that the column's type cannot have: fractions and numbers beyond its range.
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


def quoted(text):
    return "'" + text.replace("'", "''") + "'"
