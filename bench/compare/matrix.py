"""The part `matrix`: CPU cost and throughput of each operation when everything is cached."""
import time

import limits
import steps
from generator import Generator
from javatools import die
from report import Results
from session import Session


class Matrix:
    """All steps, alternating between both servers; plus the echo and the walk as limits."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._generator = Generator(arguments)
        self._steps = [step for step in steps.all_steps(arguments.rows) if arguments.only in step.name]
        if not self._steps:
            die(f"no step has {arguments.only!r} in its name; the steps are: " +
                ", ".join(step.name for step in steps.all_steps(arguments.rows)))
        self._results = Results(arguments.out)

    def run(self):
        """Measures and returns the missed targets: this part has none."""
        with Session(self._arguments) as session:
            for server in session.both:
                for table in {step.table.name: step.table for step in self._steps}.values():
                    print(f"{server.name}: filling {table.name}", flush=True)
                    self._generator.load(server, table)
            self._warm(session.hbase)
            for step in self._steps:
                self._measure(step, session)
            if any(step.limit == "walk" for step in self._steps):
                self._results.limit("walk", limits.walk_us(self._arguments.limits, self._arguments.rows))
        self._results.write()
        return []

    def _warm(self, hbase):
        """Repeats all steps until the warm-up time ends, so that the JVM has compiled the hot
        code."""
        print(f"hbase: warming up for {self._arguments.warm} s", flush=True)
        end = time.monotonic() + self._arguments.warm
        while time.monotonic() < end:
            for step in self._steps:
                if time.monotonic() < end:
                    self._generator.run(hbase, *step.options(step.clients[len(step.clients) // 2]), "--seconds", 3)

    def _measure(self, step, session):
        """Measures a step, alternating between the servers."""
        seconds = ("--seconds", self._arguments.seconds)
        for clients in step.clients:
            for run in range(1, self._arguments.runs + 1):
                for server in session.both:
                    got = self._generator.run(server, *step.options(clients), *seconds)
                    self._results.add(step, clients, run, server.name, got)
                if step.limit in steps.ECHOES:
                    echo = session.echo(step.reply_bytes(), synced=step.limit == "synced")
                    got = self._generator.run(echo, *step.echo_options(clients), *seconds)
                    self._results.add(step, clients, run, "echo", got)
