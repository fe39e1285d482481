"""An SVG picture of text, lines and marks, with colours for light and dark colour schemes.

Each element has a class: its server, or its role in the picture. Servers differ in colour and in
the shape of their marks, so either is enough to distinguish them.
"""
from xml.sax.saxutils import escape

# For each class: colour on a light and on a dark page.
PAPER = ("#ffffff", "#15181d")
INK = ("#24292f", "#d6dbe1")
FAINT = ("#d9dde2", "#363c45")
SERVERS = {"hbase": ("#c2500a", "#ff9a52"), "grampus": ("#0b62c4", "#62adff"), "echo": ("#68707a", "#9aa4b0")}
NAMES = {"hbase": "HBase", "grampus": "Grampus", "echo": "echo, the minimum cost of a call"}
# Average width of a letter of 12 pixels' height.
LETTER = 6.6
MARK = 4


class Picture:
    """A picture; `text` returns the file."""

    def __init__(self, title, width, height):
        self._title = title
        self._width, self._height = width, height
        self._parts = []
        self.words(16, 28, title, "title")

    def words(self, x, y, words, kind="", anchor="start", turned=False):
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"{turn}>{escape(words)}</text>')

    def line(self, points, kind):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" class="{kind}"/>')

    def bar(self, x, y, width, height, kind):
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="mark {kind}"/>')

    def mark(self, x, y, server, told=""):
        """A server's mark; `told` is its tooltip."""
        shapes = {
            "hbase": f'<rect x="{x - MARK:.1f}" y="{y - MARK:.1f}" width="{2 * MARK}" height="{2 * MARK}"',
            "grampus": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{MARK}"',
            "echo": f'<path d="M{x:.1f} {y - MARK - 1:.1f}l{MARK + 1} {2 * MARK + 1}h-{2 * MARK + 2}z"',
        }
        self._parts.append(f'{shapes[server]} class="mark {server}"><title>{escape(told)}</title></{_tag(shapes[server])}>')

    def legend(self, y, servers):
        x = 24
        for server in servers:
            self.line([(x - 8, y - 4), (x + 8, y - 4)], server)
            self.mark(x, y - 4, server, NAMES[server])
            self.words(x + 14, y, NAMES[server])
            x += 14 + LETTER * len(NAMES[server]) + 36

    def text(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width} {self._height}" '
            f'width="{self._width}" height="{self._height}" role="img" aria-label="{escape(self._title)}">',
            f"<style>\n{style()}</style>",
            '<rect width="100%" height="100%" class="paper"/>', *self._parts, "</svg>", ""])


def style():
    """The style sheet: the colours of a light page, then the overrides of a dark one."""
    fixed = ("text { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif; }\n"
             "text.title { font-size: 17px; font-weight: 600; }\ntext.head { font-size: 13px; font-weight: 600; }\n"
             "text.strong { font-weight: 600; }\n"
             "polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }\npolyline.faint { stroke-width: 1; }\n"
             "polyline.wanted { stroke-width: 2; }\n.mark { stroke: none; }\n")
    return fixed + colours(0) + "@media (prefers-color-scheme: dark) {\n" + colours(1) + "}\n"


def colours(page):
    rules = [f".paper {{ fill: {PAPER[page]}; }}", f"text {{ fill: {INK[page]}; }}",
             f"polyline.faint {{ stroke: {FAINT[page]}; }}", f"polyline.wanted {{ stroke: {INK[page]}; }}"]
    for server, both in SERVERS.items():
        rules.append(f"polyline.{server} {{ stroke: {both[page]}; }} .mark.{server} {{ fill: {both[page]}; }}")
    return "\n".join(rules) + "\n"


def _tag(shape):
    return shape[1:].split(" ", 1)[0]
