"""When does a server give its first answer? A client asks again and again, and the first that is answered tells.

Clients of HBase wait between their tries, longer each time. So no one client is relied on: a further one is started
whenever a twentieth more time has passed, which is how exact the answer is, but not more often than once in MIN_GAP_S.
"""
import os
import socket
import statistics
import subprocess
import time

from generator import address
from javatools import die

GAP_SHARE = 0.05
MIN_GAP_S = 0.005
LOOK_S = 0.0005
PATIENCE_S = 300
COST_RUNS = 5


class Probe:
    """A command of the shell; it is answered when its output has some words."""

    def __init__(self, binary, server, command, words):
        self._command = [os.path.abspath(binary), "shell", *address(server), "-e", command]
        self._server = server
        self._words = words

    def first_answer(self):
        """When the port for gets was open, and when the first answer was there, by the monotonic clock."""
        end = time.monotonic() + PATIENCE_S
        while not _is_open(self._server.endpoint.region_server):
            self._give_up_after(end)
            time.sleep(LOOK_S)
        open_at = time.monotonic()
        asking = []
        try:
            while not any(self._is_answered(process) for process in asking):
                self._give_up_after(end)
                if time.monotonic() >= (next_at if asking else 0):
                    asking.append(self._ask())
                    now = time.monotonic()
                    next_at = now + max(MIN_GAP_S, GAP_SHARE * (now - self._server.server.begun))
                time.sleep(LOOK_S)
            return open_at, time.monotonic()
        finally:
            for process in asking:
                process.kill()
                process.communicate()

    def cost_s(self):
        """What it takes to ask a server that is up, a client's start included."""
        return statistics.median(self._timed() for _ in range(COST_RUNS))

    def _timed(self):
        begin = time.monotonic()
        self._ask().communicate()
        return time.monotonic() - begin

    def _ask(self):
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def _is_answered(self, process):
        # What it says is a few lines, for which a pipe has room.
        if process.poll() is None or process.stdout.closed:
            return False
        with process.stdout as said:
            return self._words in said.read()

    def _give_up_after(self, end):
        if time.monotonic() > end or not self._server.server.running():
            die(f"{self._server.name} gave no answer; its log: {self._server.server.log}")


def _is_open(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
