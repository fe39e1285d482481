"""The pictures of a comparison: which measurements are plotted against which."""
from dataclasses import dataclass

from panel import Axis, Bars, Panel
from picture import Picture
from scale import Linear, Log, Places
from wanted import wanted_of

SERVERS = ("hbase", "grampus", "echo")
WIDTH = 920
# Where the panels begin, below title and legend.
TOP = 64
PANEL_HEIGHT = 330
MARGIN = 12
# Latencies are drawn for runs with this many clients.
CLIENTS = 10
PERCENTILES = {"p50": "50", "p95": "95", "p99": "99", "p999": "99.9"}


@dataclass(frozen=True)
class Lines:
    """The data of a panel: for each server a list of (x, y) pairs."""

    title: str
    across: Axis
    servers: dict


def pictures(runs):
    """Pairs of a file's name and its text, for all pictures that have data."""
    drawn = {
        "throughput.svg": grid("Throughput, by number of clients", "rows per second", linear, curves(runs, "rate")),
        "cpu.svg": grid("Server CPU per row, by number of clients", "microseconds (log scale)", log, curves(runs, "cpu_us")),
        "latency.svg": grid(f"Latency of a call, {CLIENTS} clients", "microseconds (log scale)", log, latencies(runs)),
        "ratios.svg": ratios(runs),
    }
    return [(name, picture.text()) for name, picture in drawn.items() if picture]


def curves(runs, figure):
    """A measurement against the number of clients, for each step with more than two such
    numbers."""
    for step in dict.fromkeys(point.step for point in runs.points()):
        curve = runs.curve(step)
        if len(curve) > 2:
            clients = [point.clients for point in curve]
            # The last mark is a little before the end.
            across = Axis("clients", Linear(max(clients) * 1.03, clients))
            yield Lines(step, across, {server: drawable((point.clients, getattr(point, figure)(server)) for point in curve)
                                       for server in SERVERS})


def latencies(runs):
    """Percentiles of call latency, for each step."""
    across = Axis("percentile of calls", Places(PERCENTILES.values()))
    for point in runs.points():
        if point.clients == CLIENTS:
            yield Lines(point.step, across, {server: drawable((name, point.latency_us(server, key))
                                                              for key, name in PERCENTILES.items()) for server in SERVERS})


def grid(title, unit, scale, panels):
    """A picture of panels, two per line, with a common scale; None if there are no panels."""
    panels = list(panels)
    figures = [figure for lines in panels for line in lines.servers.values() for _, figure in line]
    if not figures:
        return None
    up = Axis(unit, scale(figures))
    picture = Picture(title, WIDTH, TOP + PANEL_HEIGHT * ((len(panels) + 1) // 2) + MARGIN)
    picture.legend(52, SERVERS)
    for at, lines in enumerate(panels):
        box = (WIDTH / 2 * (at % 2), TOP + PANEL_HEIGHT * (at // 2), WIDTH / 2, PANEL_HEIGHT)
        panel = Panel(picture, box, lines.title, lines.across, up)
        for server, line in lines.servers.items():
            panel.draw(server, line)
    return picture


def ratios(runs):
    """A bar for each point: HBase's CPU time divided by Grampus's."""
    points = [point for point in runs.points() if point.ratio()]
    if not points:
        return None
    wanted = [next((one.ratio_min for one in wanted_of(point) if one.ratio_min), 0) for point in points]
    most = max(max(point.ratio(), least) for point, least in zip(points, wanted))
    picture = Picture("Server CPU per row: HBase divided by Grampus", WIDTH, TOP + 24 + Bars.height(len(points)) + MARGIN)
    picture.mark(24, 48, "echo")
    picture.words(38, 52, "limit: ratio of the echo (writes: synced echo)")
    picture.line([(360, 40), (360, 56)], "wanted")
    picture.words(370, 52, "target")
    words = [f"{point.step}, {point.clients} client{'s' * (point.clients != 1)}" for point in points]
    bars = Bars(picture, (16, TOP + 20, WIDTH - 32, 0), words, "times", Linear(most))
    for at, point in enumerate(points):
        bars.draw(at, "grampus", point.ratio(), point.ratio_of_echo(), wanted[at])
    return picture


def linear(figures):
    return Linear(max(figures))


def log(figures):
    return Log(min(figures), max(figures))


def drawable(pairs):
    """The pairs that can be drawn on both kinds of scales."""
    return [(across, figure) for across, figure in pairs if figure]
