"""A `grampus shell` that stays open, so that a command does not start a process on the core of the
load generator."""
import os
import subprocess

from generator import address


class Refused(Exception):
    """The error of the server or the shell."""


class Shell:
    """A shell of a server, for the duration of the block."""

    def __init__(self, binary, server):
        self._command = [os.path.abspath(binary), "shell", *address(server)]

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, bufsize=1)
        return self

    def __exit__(self, *_):
        # The shell ends after its input, once all commands are done.
        self._process.communicate()

    def do(self, command):
        """Runs a command and waits for it; its time is the last line that the shell prints for
        it."""
        self._process.stdin.write(command + "\n")
        said = []
        for line in self._process.stdout:
            said.append(line.strip())
            if line.startswith("Took ") or line.startswith("ERROR: line "):
                break
        if not said or not said[-1].startswith("Took ") or any(line.startswith("ERROR") for line in said):
            raise Refused(f"{command[:60]}: {' '.join(filter(None, said))}")
