"""Runs as they are kept and shown."""
import json
import os
import statistics


class Results:
    """All runs: written as they come, shown together in the end."""

    def __init__(self, directory):
        self._directory = directory
        self._runs = {}
        self._limits = {}
        self._file = os.path.join(directory, "runs.jsonl")
        open(self._file, "w").close()

    def add(self, step, clients, run, server, got):
        with open(self._file, "a") as out:
            out.write(json.dumps({"step": step.name, "limit": step.limit, "server": server, "run": run, **got}) + "\n")
        self._runs.setdefault((step.name, step.limit, clients), {}).setdefault(server, []).append(got)
        print(f"  {server:8} {step.name:28} {clients:3} clients, run {run}: {got['rows_per_second']:12,.0f} rows/s "
              f"{got['server_cpu_us_per_row']:9.3f} us CPU a row, p999 {got['latency_us']['p999']:9,.0f} us", flush=True)

    def limit(self, name, us):
        self._limits[name] = us

    def write(self):
        """Prints the table, and keeps it."""
        text = "\n".join(self._lines()) + "\n"
        with open(os.path.join(self._directory, "table.txt"), "w") as out:
            out.write(text)
        print("\n" + text, end="")

    def _lines(self):
        yield (f"{'median of the runs':28} {'':7} {'rows a second':>27} {'server CPU us a row':>21} {'HBase/':>8} {'limit':>8} "
               f"{'Grampus/':>8} {'p999 us':>17}")
        yield (f"{'':28} {'clients':>7} {'HBase':>13} {'Grampus':>13} {'HBase':>10} {'Grampus':>10} {'Grampus':>8} {'us':>8} "
               f"{'limit':>8} {'HBase':>8} {'Grampus':>8}")
        for (name, limit, clients), servers in self._runs.items():
            rate = {server: median(runs, "rows_per_second") for server, runs in servers.items()}
            cpu = {server: median(runs, "server_cpu_us_per_row") for server, runs in servers.items()}
            p999 = {server: statistics.median(run["latency_us"]["p999"] for run in runs) for server, runs in servers.items()}
            least = cpu.get("echo") if limit == "echo" else self._limits.get(limit)
            bound = f"{least:8.3f} {cpu['grampus'] / least:8.2f}" if least else f"{'':8} {'':8}"
            yield (f"{name:28} {clients:7} {rate['hbase']:13,.0f} {rate['grampus']:13,.0f} {cpu['hbase']:10.3f} "
                   f"{cpu['grampus']:10.3f} {cpu['hbase'] / max(cpu['grampus'], 1e-9):8.2f} {bound} {p999['hbase']:8,.0f} "
                   f"{p999['grampus']:8,.0f}")


def median(runs, what):
    return statistics.median(run[what] for run in runs)
