"""Output of a comparison: lines of JSON during the run; tables and pictures at the end."""
import json
import os

import plots
import table
from runs import Runs


class Results:
    """All runs of a comparison, stored in a directory."""

    def __init__(self, directory):
        self._directory = directory
        self._runs = Runs()
        self._file = os.path.join(directory, "runs.jsonl")
        open(self._file, "w").close()

    def add(self, step, clients, run, server, got):
        self._keep({"step": step.name, "limit": step.limit, "server": server, "run": run, **got, "clients": clients})
        print(f"  {server:8} {step.name:28} {clients:3} clients, run {run}: {got['rows_per_second']:12,.0f} rows/s "
              f"{got['server_cpu_us_per_row']:9.3f} us CPU per row, p999 {got['latency_us']['p999']:9,.0f} us", flush=True)

    def limit(self, name, us):
        self._keep({"limit": name, "us": us})

    def write(self):
        write(self._runs, self._directory)

    def _keep(self, line):
        with open(self._file, "a") as out:
            out.write(json.dumps(line) + "\n")
        self._runs.add(line)


def write(runs, directory):
    """Writes table.txt, table.md and the pictures to a directory, and prints the table."""
    for name, text in [("table.txt", table.text(runs)), ("table.md", table.markdown(runs)), *plots.pictures(runs)]:
        with open(os.path.join(directory, name), "w", encoding="utf-8") as out:
            out.write(text)
    print("\n" + table.text(runs), end="")
