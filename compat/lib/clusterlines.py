"""Lines of transcripts that a cluster must answer differently than the one server of the golden
transcripts. In both, the part that differs is replaced before they are compared."""
import re

# Per suite: what differs, and why.
_DIFFERENCES = {
    "async": [(r"^servers: \d+$", "the number of region servers")],
    "admin": [(r"^(servers|backup masters): \d+$", "the number of servers")],
    "regions": [
        (r"^one server holds all: \w+$", "regions are spread over the servers"),
        (r"info:server=\w+, info:serverstartcode=\w+, info:sn=\w+", "compares each location with the first"),
        (r"^(live servers|region servers): \d+$", "the number of region servers"),
        (r"^backup masters: .*$", "the second master"),
    ],
    # Of the shell.
    "tools": [(r"\d+ backup masters, \d+ servers", "the number of servers")],
    "splits": [(r"^the server's regions: .*$", "lists one server's share of the regions")],
}
_PATTERNS = {suite: [re.compile(pattern) for pattern, _ in patterns] for suite, patterns in _DIFFERENCES.items()}


def without_differences(suite, lines):
    """The lines of a suite, with the expected differences replaced."""
    for pattern in _PATTERNS.get(suite, []):
        lines = [pattern.sub("(of a cluster)", line) for line in lines]
    return lines
