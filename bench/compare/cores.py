"""CPU pinning: the servers run on the first core, all clients on the second.

A process or thread inherits the core of the thread that starts it.
"""
import os
from contextlib import contextmanager

from javatools import die

# Read before anything is pinned.
_ALL = sorted(os.sched_getaffinity(0))


def ask_from_the_second():
    """Moves this script, and so everything that it starts from now on, to the core of the
    clients."""
    if len(_ALL) < 2:
        die("the servers and the load generator need a core each; this machine has one")
    os.sched_setaffinity(0, {_ALL[1]})


@contextmanager
def of_servers():
    """Processes started in this block run on the servers' core."""
    os.sched_setaffinity(0, {_ALL[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, {_ALL[1]})


@contextmanager
def on_all():
    """Processes started in this block run on any core."""
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _ALL)
    try:
        yield
    finally:
        os.sched_setaffinity(0, pinned)
