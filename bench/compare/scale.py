"""Scales: the position of a value on an axis, and the axis labels."""
import math

# The maximum number of ticks of a logarithmic scale.
TICKS_MAX = 11


class Linear:
    """A scale from zero to a round number; with `ticks`, to exactly `most`, and with those
    labels."""

    def __init__(self, most, ticks=None):
        step = _round_up(most / 5)
        self.most = most if ticks else step * math.ceil(most / step - 1e-9)
        self.ticks = ticks or [step * count for count in range(round(self.most / step) + 1)]

    def share(self, figure):
        """The position on the axis, from 0 to 1."""
        return figure / self.most


class Log:
    """A logarithmic scale; each end is 1, 2 or 5 times a power of ten."""

    def __init__(self, least, most):
        steps = [mantissa * 10.0 ** exponent for exponent in range(-4, 10) for mantissa in (1, 2, 5)]
        first = max(step for step in steps if step <= least)
        last = min(step for step in steps if step >= most and step > first)
        self.ticks = [step for step in steps if first <= step <= last]
        # If there are too many ticks, only powers of ten remain, if the range has more than one.
        powers = [step for step in self.ticks if round(math.log10(step), 6).is_integer()]
        if len(self.ticks) > TICKS_MAX and len(powers) > 1:
            self.ticks = powers
        self._first, self._last = first, last

    def share(self, figure):
        return math.log(figure / self._first) / math.log(self._last / self._first)


class Places:
    """One position for each of some words, none at the ends."""

    def __init__(self, words):
        self.ticks = list(words)

    def share(self, word):
        return (self.ticks.index(word) + 0.5) / len(self.ticks)


def _round_up(step):
    """The next higher number that is 1, 2 or 5 times a power of ten."""
    if step <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(step))
    return next(mantissa * power for mantissa in (1, 2, 5, 10) if mantissa * power >= step * (1 - 1e-9))


def label(figure):
    """The label of a tick."""
    return figure if isinstance(figure, str) else f"{figure:,.10g}"
