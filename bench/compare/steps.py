"""What is measured: a step for each way that a table is used."""
from dataclasses import dataclass

# Numbers of clients of a curve.
CURVE = (1, 5, 10, 20, 50, 75)


@dataclass(frozen=True)
class Table:
    """A table of the benchmark."""

    name: str
    rows: int
    value_bytes: int

    def options(self):
        return ["--table", self.name, "--rows", str(self.rows), "--value-size", str(self.value_bytes)]


@dataclass(frozen=True)
class Step:
    """One way to use a table, measured with each of some numbers of clients."""

    name: str
    words: tuple
    table: Table
    clients: tuple = (10,)
    # What the machine allows: "echo" for calls, "walk" for rows.
    limit: str = ""
    # How each client asks, an echo server too.
    load: tuple = ()

    def options(self, clients):
        return [*self.words, *self.table.options(), *self._load_options(clients)]

    def echo_options(self, clients):
        return ["echo", *self._load_options(clients)]

    def _load_options(self, clients):
        return [*self.load, "--clients", str(clients)]


def all_steps(rows):
    """The matrix, over tables of so many rows."""
    small, large = Table("small", rows, 100), Table("large", rows, 1_000)
    written = Table("written", rows, 100)
    return [
        Step("get 100 B", ("randomRead",), small, CURVE, "echo"),
        Step("get 1 KB", ("randomRead",), large, CURVE, "echo"),
        Step("get, 16 in flight", ("randomRead",), small, (1,), "echo", ("--in-flight", "16")),
        Step("multi-get of 100", ("randomRead", "--batch", "100"), small, (1, 10)),
        Step("range scan, all filtered", ("filterRange10000",), small, (1,), "walk"),
        Step("table scan, all filtered", ("filterScan",), small, (1,), "walk"),
        Step("range scan, 10 % returned", ("filterRange10000", "--returned", "1"), small, (1,), "walk"),
        Step("table scan, 10 % returned", ("filterScan", "--returned", "1"), small, (1,), "walk"),
        Step("table scan, all returned", ("scan",), small, (1,), "walk"),
        Step("buffered write", ("randomWrite", "--batch", "1000"), written, (1,)),
        Step("put", ("randomWrite",), written, (1, 10)),
        Step("increment", ("increment",), written, (10,)),
        Step("check and put", ("checkAndPut",), written, (10,)),
    ]
