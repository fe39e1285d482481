"""A plugin of pytest for happybase's tests, which are older than the packages that they need: the port is
text, which thriftpy2 refuses since version 0.5."""
import builtins
import time

import happybase
import pytest

_connect = happybase.Connection.__init__


def _connect_to_number(self, *positional, **named):
    if "port" in named:
        named["port"] = int(named["port"])
    _connect(self, *positional, **named)


happybase.Connection.__init__ = _connect_to_number

# The archive's tests use this name of nose without an import.
builtins.assert_raises = pytest.raises


_set = happybase.Table.counter_set


def _set_later(self, *positional, **named):
    # Increments within a millisecond get timestamps ahead of the clock, as in HBase, and hide an
    # earlier put.
    time.sleep(0.05)
    _set(self, *positional, **named)


happybase.Table.counter_set = _set_later
