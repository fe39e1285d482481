"""Where processes run: the servers on the first core, everything that asks them on the second.

What is started inherits the core of the thread that starts it, and threads do too.
"""
import os
from contextlib import contextmanager

from javatools import die

# Read before anything is pinned.
_ALL = sorted(os.sched_getaffinity(0))


def ask_from_the_second():
    """Moves this script, and with it what it starts from now on, to the core of those who ask."""
    if len(_ALL) < 2:
        die("the servers and the load generator need a core each; this machine has one")
    os.sched_setaffinity(0, {_ALL[1]})


@contextmanager
def of_servers():
    """What is started in this block runs on the servers' core."""
    os.sched_setaffinity(0, {_ALL[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, {_ALL[1]})


@contextmanager
def on_all():
    """What is started in this block runs wherever it likes."""
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _ALL)
    try:
        yield
    finally:
        os.sched_setaffinity(0, pinned)
