"""The table of a comparison, one line per step and number of clients: aligned for a terminal, and
as Markdown."""
from runs import quotient
from wanted import wanted_of

NAMES = {"hbase": "HBase", "grampus": "Grampus", "echo": "the echo server"}
MARKS = {True: "✓", False: "✗", None: "?"}
# More clients should not mean fewer rows per second: the numbers of clients that are compared.
FEW_CLIENTS, MANY_CLIENTS = 10, 75
# A smaller decrease is noise.
FALL_MIN = 0.01


def number(decimals):
    return lambda figure: "" if figure is None else f"{figure:,.{decimals}f}"


# The heading of each column, and its value for a point.
COLUMNS = (
    ("step", lambda point: point.step),
    ("clients", lambda point: str(point.clients)),
    ("HBase rows/s", lambda point: number(0)(point.rate("hbase"))),
    ("Grampus rows/s", lambda point: number(0)(point.rate("grampus"))),
    ("HBase CPU µs", lambda point: number(3)(point.cpu_us("hbase"))),
    ("Grampus CPU µs", lambda point: number(3)(point.cpu_us("grampus"))),
    ("HBase / Grampus", lambda point: number(2)(point.ratio())),
    ("limit µs", lambda point: number(3)(point.limit_us())),
    ("Grampus / limit", lambda point: number(2)(point.distance())),
    ("HBase p999 µs", lambda point: number(0)(point.latency_us("hbase", "p999"))),
    ("Grampus p999 µs", lambda point: number(0)(point.latency_us("grampus", "p999"))),
    ("target", lambda point: ", ".join(f"{MARKS[one.met(point)]} {one}" for one in wanted_of(point))),
)
HEADS = [head for head, _ in COLUMNS]
# Text is aligned left, numbers right.
LEFT = ("step", "target")


def text(runs):
    """The table for a terminal."""
    lines = [HEADS, *rows(runs)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    table = ["  ".join(cell.ljust(width) if head in LEFT else cell.rjust(width)
                       for head, cell, width in zip(HEADS, line, widths)).rstrip() for line in lines]
    return "\n".join([caption(runs), "", *table, *spaced(remarks(runs))]) + "\n"


def markdown(runs):
    """The table for a page of documentation."""
    rule = ["---" if head in LEFT else "---:" for head in HEADS]
    table = ["| " + " | ".join(cells) + " |" for cells in [HEADS, rule, *rows(runs)]]
    return "\n".join([caption(runs), "", *table, *spaced(f"* {remark}" for remark in remarks(runs))]) + "\n"


def rows(runs):
    return [[figure(point) for _, figure in COLUMNS] for point in runs.points()]


def caption(runs):
    points = runs.points()
    times = max((point.runs_each() for point in points), default=0)
    size = max((point.rows_of_table() for point in points), default=0)
    return (f"Medians of {times} run{'s' * (times != 1)}, tables of {size:,} rows. CPU is the server's, per row. The limit is "
            "the CPU of an echo server (calls), a synced echo (writes) or a walk over memory (scans).")


def remarks(runs):
    """Remarks below the table: how many targets are met, and where more clients mean less
    throughput."""
    met = [one.met(point) for point in runs.points() for one in wanted_of(point)]
    if met:
        yield f"{met.count(True)} of {len(met)} targets are met."
    for step in dict.fromkeys(point.step for point in runs.points()):
        yield from falls({point.clients: point for point in runs.curve(step)})


def falls(curve):
    few, many = curve.get(FEW_CLIENTS), curve.get(MANY_CLIENTS)
    for server, name in NAMES.items():
        share = quotient(many.rate(server), few.rate(server)) if few and many else None
        if share is not None and share <= 1 - FALL_MIN:
            yield (f"{few.step}: {name} returns {1 - share:.0%} fewer rows per second with {MANY_CLIENTS} clients than with "
                   f"{FEW_CLIENTS}.")


def spaced(lines):
    lines = list(lines)
    return ["", *lines] if lines else []
