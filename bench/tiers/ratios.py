"""The results: a table of all cases next to the figures of the study, and the missed targets."""
from cases import CASES
from record import aligned

HEADS = ("case", "rows/s", "slowest second", "mean ms", "longest ms", "written, by tier", "to slow", "study", "to fast", "study",
         "mean latency to slow", "study")


class Ratios:
    """Reads the runs of a record."""

    def __init__(self, record, tolerance):
        self._record, self._tolerance = record, tolerance
        self._measured = [case for case in CASES if any(run["case"] == case.name for run in record.runs)]

    def lines(self):
        """The lines of the table."""
        yield from aligned([HEADS, *map(self._row, self._measured)])

    def complaints(self):
        """Mixes that are slower than their slow tier alone."""
        for case in self._measured:
            ratio = self._ratio(case, case.slow, "rows_per_second")
            if case.is_mix() and ratio is not None and ratio < 1 - self._tolerance:
                yield (f"{case.name} writes {1 - ratio:.0%} fewer rows per second than {case.slow} alone "
                       f"({self._tolerance:.0%} are tolerated as noise)")

    def _row(self, case):
        return [
            case.name,
            f"{self._median(case.name, 'rows_per_second'):,.0f}",
            f"{min(self._of(case.name, 'slowest_second_rows')):,.0f}",
            f"{self._median(case.name, 'mean_ms'):,.1f}",
            f"{max(self._of(case.name, 'longest_ms')):,.0f}",
            self._written(case),
            _percent(self._ratio(case, case.slow, "rows_per_second")),
            _percent(case.study_to_slow),
            _percent(self._ratio(case, case.fast, "rows_per_second")),
            _percent(case.study_to_fast),
            _percent(self._ratio(case, case.slow, "mean_ms")),
            _percent(case.study_latency),
        ]

    def _written(self, case):
        """The bytes of each tier, and their shares."""
        sums = [sum(tier) for tier in zip(*self._of(case.name, "written_mib"))]
        runs = len(self._of(case.name, "written_mib"))
        return ", ".join(f"{tier.name} {mib / runs:,.0f} MiB ({mib / sum(sums):.0%})" for tier, mib in zip(case.tiers, sums))

    def _ratio(self, case, other, figure):
        """The case divided by another one; None if that was not measured, or is the same."""
        if other == case.name or not self._of(other, figure):
            return None
        return self._median(case.name, figure) / self._median(other, figure)

    def _median(self, name, figure):
        return self._record.median(lambda run: run[figure], case=name)

    def _of(self, name, figure):
        return [run[figure] for run in self._record.runs if run["case"] == name]


def _percent(ratio):
    return "-" if ratio is None else f"{ratio:.0%}"
