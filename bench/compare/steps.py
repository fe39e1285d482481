"""The steps of the matrix: one for each way to use a table."""
from dataclasses import dataclass

# The numbers of clients of a curve.
CURVE = (1, 5, 10, 20, 50, 75)
# Limits that are servers.
ECHOES = ("echo", "synced")
# Bytes around a value in the response to a get, and of the response to a put.
GOT_BYTES, DONE_BYTES = 80, 10


@dataclass(frozen=True)
class Table:
    """A table of the benchmark."""

    name: str
    rows: int
    value_bytes: int

    def got_bytes(self):
        """Approximate bytes of the response to a get."""
        return GOT_BYTES + self.value_bytes

    def options(self):
        return ["--table", self.name, "--rows", str(self.rows), "--value-size", str(self.value_bytes)]


@dataclass(frozen=True)
class Step:
    """One way to use a table, measured with each number of clients."""

    name: str
    words: tuple
    table: Table
    clients: tuple = (10,)
    # The limit of the machine: "echo" for calls, "synced" for calls that write a log, "walk" for
    # rows.
    limit: str = ""
    # Rows per call, and calls in flight per client; also used for an echo server.
    batch: int = 1
    in_flight: int = 1

    def options(self, clients):
        return [*self.words, *self.table.options(), *self._load_options(clients)]

    def echo_options(self, clients):
        word = "echoPut" if self.limit == "synced" else "echo"
        return [word, "--value-size", str(self.table.value_bytes), *self._load_options(clients)]

    def reply_bytes(self):
        """Approximate bytes of a response."""
        return self.batch * (DONE_BYTES if self.limit == "synced" else self.table.got_bytes())

    def _load_options(self, clients):
        return ["--batch", str(self.batch), "--in-flight", str(self.in_flight), "--clients", str(clients)]


def all_steps(rows):
    """The matrix, over tables of `rows` rows."""
    small, large = Table("small", rows, 100), Table("large", rows, 1_000)
    written = Table("written", rows, 100)
    return [
        Step("get 100 B", ("randomRead",), small, CURVE, "echo"),
        Step("get 1 KB", ("randomRead",), large, CURVE, "echo"),
        Step("get, 16 in flight", ("randomRead",), small, (1,), "echo", in_flight=16),
        Step("multi-get of 100", ("randomRead",), small, (1, 10), "echo", batch=100),
        Step("range scan, all filtered", ("filterRange10000",), small, (1,), "walk"),
        Step("table scan, all filtered", ("filterScan",), small, (1,), "walk"),
        Step("range scan, 10 % returned", ("filterRange10000", "--returned", "1"), small, (1,), "walk"),
        Step("table scan, 10 % returned", ("filterScan", "--returned", "1"), small, (1,), "walk"),
        Step("table scan, all returned", ("scan",), small, (1,), "walk"),
        Step("buffered write", ("randomWrite",), written, (1,), "synced", batch=1000),
        Step("put", ("randomWrite",), written, (1, 10), "synced"),
        Step("increment", ("increment",), written, (10,), "synced"),
        Step("check and put", ("checkAndPut",), written, (10,), "synced"),
    ]
