"""The measurements of a part: lines of JSON during the run, and a table at the end."""
import json
import os
import statistics


class Record:
    """The measurements of one part, stored in a directory."""

    def __init__(self, directory, part):
        self._path = os.path.join(directory, part)
        self.runs = []
        open(self._path + ".jsonl", "w").close()

    def add(self, **figures):
        """Stores the measurements of one run."""
        self.runs.append(figures)
        with open(self._path + ".jsonl", "a") as out:
            out.write(json.dumps(figures) + "\n")

    def median(self, what, **of):
        """The median of `what(run)` over the runs that have the values `of`."""
        return statistics.median(what(run) for run in self.runs if of.items() <= run.items())

    def write(self, lines):
        """Prints the table and stores it."""
        text = "\n".join(lines) + "\n"
        with open(self._path + ".txt", "w") as out:
            out.write(text)
        print("\n" + text, flush=True)


def aligned(rows):
    """The lines of a table with columns as wide as needed: the first aligned left, the others
    right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        first, *others = (text.rjust(width) for text, width in zip(row, widths))
        yield "  ".join([first.strip().ljust(widths[0]), *others])
