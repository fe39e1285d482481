"""A `grampus shell` that stays open, so that a command costs those who measure on the same core no start of a process."""
import os
import subprocess

from generator import address


class Refused(Exception):
    """What the server, or the shell, said instead of doing it."""


class Shell:
    """A shell at a server, as long as the block lasts."""

    def __init__(self, binary, server):
        self._command = [os.path.abspath(binary), "shell", *address(server)]

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, bufsize=1)
        return self

    def __exit__(self, *_):
        # The end of its input is the end of the shell, once what it was told is done.
        self._process.communicate()

    def do(self, command):
        """Returns when the command is done; the time that it took is the last that the shell says of it."""
        self._process.stdin.write(command + "\n")
        said = []
        for line in self._process.stdout:
            said.append(line.strip())
            if line.startswith("Took ") or line.startswith("ERROR: line "):
                break
        if not said or not said[-1].startswith("Took ") or any(line.startswith("ERROR") for line in said):
            raise Refused(f"{command[:60]}: {' '.join(filter(None, said))}")
