"""What a part has measured: lines of JSON as they come, and a table in the end."""
import json
import os
import statistics


class Record:
    """The figures of one part, kept in a directory."""

    def __init__(self, directory, part):
        self._path = os.path.join(directory, part)
        self.runs = []
        open(self._path + ".jsonl", "w").close()

    def add(self, **figures):
        """Keeps what one run gave."""
        self.runs.append(figures)
        with open(self._path + ".jsonl", "a") as out:
            out.write(json.dumps(figures) + "\n")

    def median(self, what, **of):
        """The median of `what(run)` over the runs that have these figures."""
        return statistics.median(what(run) for run in self.runs if of.items() <= run.items())

    def write(self, lines):
        """Prints the table, and keeps it."""
        text = "\n".join(lines) + "\n"
        with open(self._path + ".txt", "w") as out:
            out.write(text)
        print("\n" + text, flush=True)


def aligned(rows):
    """Lines of a table: rows of text in columns as wide as they need, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        first, *others = (text.rjust(width) for text, width in zip(row, widths))
        yield "  ".join([first.strip().ljust(widths[0]), *others])
