"""Performance targets of Grampus, each for the steps whose names match a pattern.

A ratio is HBase's CPU time divided by Grampus's. A distance is Grampus's CPU time divided by the
minimum on this machine: an echo for calls, an iteration over memory for rows.
"""
from dataclasses import dataclass
from fnmatch import fnmatchcase

MANY = 1 << 30


@dataclass(frozen=True)
class Wanted:
    """One target, for some steps with a range of client counts."""

    steps: str
    ratio_min: float = None
    distance_max: float = None
    clients_min: int = 1
    clients_max: int = MANY

    def concerns(self, point):
        return fnmatchcase(point.step, self.steps) and self.clients_min <= point.clients <= self.clients_max

    def met(self, point):
        """Whether a point meets it; None if it was not measured."""
        if self.ratio_min is not None:
            return None if point.ratio() is None else point.ratio() >= self.ratio_min
        return None if point.distance() is None else point.distance() <= self.distance_max

    def __str__(self):
        return f"ratio ≥ {self.ratio_min:g}" if self.ratio_min is not None else f"≤ {self.distance_max:g} × limit"


WANTED = (
    # A single client waits for each response, so gets cannot share any work.
    Wanted("get *", distance_max=1.3, clients_max=1),
    Wanted("get *", distance_max=2, clients_min=2),
    Wanted("get, * in flight", distance_max=2),
    Wanted("get *", ratio_min=7, clients_min=10),
    Wanted("multi-get *", ratio_min=25),
    Wanted("*scan, *", ratio_min=8),
    Wanted("*scan, all filtered", distance_max=2),
    Wanted("buffered write", ratio_min=5),
    # Each put of a single client waits for its own sync.
    Wanted("put", ratio_min=5, clients_min=10),
    Wanted("increment", ratio_min=5),
    Wanted("check and put", ratio_min=5),
)


def wanted_of(point):
    return [one for one in WANTED if one.concerns(point)]
