"""The measurements: runs as lines of JSON, and medians per step and number of clients."""
import json
import statistics

from steps import ECHOES


class Runs:
    """All runs of a comparison, in order of their measurement."""

    def __init__(self):
        self._points = {}
        self._limits = {}

    @staticmethod
    def kept(path):
        """The runs of a file."""
        runs = Runs()
        with open(path) as lines:
            for line in lines:
                runs.add(json.loads(line))
        return runs

    def add(self, line):
        """Adds a line: a run, or the minimum cost of a row."""
        if "us" in line:
            self._limits[line["limit"]] = line["us"]
            return
        key = line["step"], line["clients"]
        self._points.setdefault(key, Point(*key, line["limit"], self._limits)).add(line)

    def points(self):
        return list(self._points.values())

    def curve(self, step):
        """The points of a step, ordered by number of clients."""
        return sorted((point for point in self.points() if point.step == step), key=lambda point: point.clients)


class Point:
    """The medians of the runs of a step with one number of clients. A value that was not measured
    is None."""

    def __init__(self, step, clients, limit, limits):
        self.step = step
        self.clients = clients
        self._limit = limit
        self._limits = limits
        self._runs = {}

    def add(self, run):
        self._runs.setdefault(run["server"], []).append(run)

    def runs_each(self):
        return max(len(runs) for runs in self._runs.values())

    def rows_of_table(self):
        # An echo has no table.
        return max((run["rows_of_table"] for server, runs in self._runs.items() if server != "echo" for run in runs), default=0)

    def rate(self, server):
        """Rows per second."""
        return self._median(server, lambda run: run["rows_per_second"])

    def cpu_us(self, server):
        """Microseconds of the server's CPU per row."""
        return self._median(server, lambda run: run["server_cpu_us_per_row"])

    def latency_us(self, server, percentile):
        return self._median(server, lambda run: run["latency_us"][percentile])

    def limit_us(self):
        """The minimum cost of a row on this machine."""
        return self.cpu_us("echo") if self._limit in ECHOES else self._limits.get(self._limit)

    def ratio(self):
        """HBase's CPU time divided by Grampus's."""
        return quotient(self.cpu_us("hbase"), self.cpu_us("grampus"))

    def distance(self):
        """Grampus's CPU time divided by the limit."""
        return quotient(self.cpu_us("grampus"), self.limit_us())

    def ratio_of_echo(self):
        """HBase's CPU time divided by the echo's."""
        return quotient(self.cpu_us("hbase"), self.cpu_us("echo"))

    def _median(self, server, figure):
        figures = [figure(run) for run in self._runs.get(server, [])]
        figures = [one for one in figures if one is not None]
        return statistics.median(figures) if figures else None


def quotient(above, below):
    return above / below if above is not None and below else None
