"""Both servers and an echo, running on the servers' core for the duration of the block."""
from contextlib import ExitStack

import cores
import limits
import subject


class Session:
    """`hbase` and `grampus`, together `both`, and an echo for each response size."""

    def __init__(self, arguments):
        self._arguments = arguments

    def __enter__(self):
        arguments = self._arguments
        with ExitStack() as started, cores.of_servers():
            self.hbase = started.enter_context(subject.hbase(arguments.hbase_heap))
            self.grampus = started.enter_context(
                subject.grampus(arguments.grampus, settings={"grampus.memory": arguments.memory}))
            self._started = started.pop_all()
        self._echoes = limits.Echoes(arguments.limits, self._started)
        self.both = [self.hbase, self.grampus]
        return self

    def echo(self, reply_bytes, synced=False):
        """The echo with responses of `reply_bytes`; with `synced` it responds once the request is
        written and synced."""
        return self._echoes.of(reply_bytes, synced)

    def __exit__(self, *exception):
        return self._started.__exit__(*exception)
