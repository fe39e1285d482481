"""The part `beside`: the p99 of gets at half of Grampus's capacity, while all data is aggregated
concurrently.

Gets are sent at a fixed rate, and each is timed from the moment it was due. One of these loads runs
concurrently:

  nothing   the baseline
  warm      a query to ColumnService that is answered from vectors
  cells     the sum by HBase's AggregateService, which reads each cell of each block: the longest work there is

Target: a p99 of at most twice the baseline. HBase is not measured.
"""
import os
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager

import cores
import subject
from generator import Generator, address
from javatools import die
from record import Record, aligned
from steps import Table

CLIENTS = 75
RECORDS = 200_000
REGIONS = 8
QUESTION = ["--sum", 4, "--only", "6=3", "--group-by", 1]
LOADS = {"nothing": None, "warm": "columns", "cells": "endpoint"}
# More runs than there is time for.
WITHOUT_END = 1_000_000
WANTED = 2


class Beside:
    """Gets at a rate, with a concurrent aggregation."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._record = Record(arguments.out, "beside")
        self._table = Table("asked", arguments.rows, 100)
        self._records = RECORDS if arguments.rows >= RECORDS else arguments.rows

    def run(self):
        """Measures and returns the missed targets."""
        server = subject.grampus(self._arguments.grampus, settings={"grampus.memory": self._arguments.memory})
        with ExitStack() as started:
            with cores.of_servers():
                started.enter_context(server)
            print(f"{server.name}: filling", flush=True)
            self._generator.load(server, self._table)
            with self._asked(server, ["load", "columns", "endpoint", "--regions", REGIONS]) as asked:
                asked.wait()
            rate = self._saturation(server) / 2
            for run in range(1, self._arguments.runs + 1):
                for name, step in LOADS.items():
                    self._measure(server, rate, run, name, step)
        self._record.write(self.lines())
        return [f"beside: with the load {name}, p99 is {self._growth(name):.1f} times as long (target: {WANTED} at most)"
                for name in LOADS if self._growth(name) > WANTED]

    def _gets(self):
        return ["randomRead", *self._table.options(), "--clients", CLIENTS, "--seconds", self._arguments.pause_seconds]

    def _saturation(self, server):
        got = self._generator.run(server, *self._gets())
        print(f"  saturated: {got['rows_per_second']:,.0f} gets/s", flush=True)
        return got["rows_per_second"]

    def _measure(self, server, rate, run, name, step):
        if step is None:
            return self._keep(name, run, self._generator.run(server, *self._gets(), "--rate", rate), 0)
        # Not a pipe: the process would block once the pipe is full.
        with tempfile.TemporaryFile("w+") as answers, self._asked(server, [step, "--runs", WITHOUT_END], answers):
            got = self._generator.run(server, *self._gets(), "--rate", rate)
            answers.seek(0)
            answered = len(answers.readlines())
        return self._keep(name, run, got, answered)

    @contextmanager
    def _asked(self, server, words, answers=subprocess.DEVNULL):
        """A process that sends queries until the block ends."""
        command = [self._arguments.records, *words, "--rows", self._records, *QUESTION, "--json", *address(server)]
        # It shares a core with the load generator, which must send on time.
        asked = subprocess.Popen([str(word) for word in command], stdout=answers,
                                 preexec_fn=lambda: os.nice(19))
        try:
            yield asked
        finally:
            asked.terminate()
            asked.wait()
            if asked.returncode not in (0, -15):
                die(f"{' '.join(map(str, command))} failed")

    def _keep(self, name, run, got, answers):
        rows = answers * self._records / got["seconds"] if answers else 0
        self._record.add(beside=name, run=run, rows_aggregated_per_second=rows, **got)
        latency = got["latency_us"]
        print(f"  {name:8} run {run}: {got['rows_per_second']:9,.0f} gets/s, p50 {latency['p50']:8,.0f} us, p99 "
              f"{latency['p99']:8,.0f} us, p999 {latency['p999']:8,.0f} us; {rows:,.0f} rows/s aggregated", flush=True)

    def lines(self):
        """The table."""
        yield (f"gets of 100 B at half of saturation, {CLIENTS} clients, {self._table.rows:,} rows, while {self._records:,} "
               f"records of 91 attributes are aggregated in a loop; one core for the server; medians of "
               f"{self._arguments.runs} runs of {self._arguments.pause_seconds:g} s")
        yield from aligned([["load", "gets/s", "p50 us", "p99 us", "p999 us", "p99 / p99 without load", "rows/s aggregated"],
                            *(self._row(name) for name in LOADS)])
        yield f"target: p99 at most {WANTED} times as long"

    def _row(self, name):
        latencies = (f"{self._latency(name, which):,.0f}" for which in ("p50", "p99", "p999"))
        rates = (f"{self._record.median(lambda run: run[rate], beside=name):,.0f}"
                 for rate in ("rows_per_second", "rows_aggregated_per_second"))
        gets, rows = rates
        return [name, gets, *latencies, f"{self._growth(name):.2f}", rows]

    def _latency(self, name, which):
        return self._record.median(lambda run: run["latency_us"][which], beside=name)

    def _growth(self, name):
        return self._latency(name, "p99") / self._latency("nothing", "p99")
