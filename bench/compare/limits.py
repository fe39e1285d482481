"""The limits of the machine: runs the programs of bench/limits."""
import json
import subprocess
import tempfile

import cores
from javatools import TARGET, die


def run(command):
    """Runs a program to its end and returns what it printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        die(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    return done.stdout


def walk_us(binary, cells):
    """Microseconds to iterate over one cell in memory."""
    return json.loads(run([binary, "walk", "--cells", str(cells)]))["ns_per_cell"] / 1e3


def pipeline_us(binary, storage, entry_bytes, hsync):
    """The latencies of commits to a log on HDFS, in microseconds: `p50` and `p99`."""
    settings = [f"--set={key}={value}" for key, value in storage.client_settings().items()]
    level = ["--hsync"] if hsync else []
    return json.loads(run([binary, "pipeline", "--url", f"{storage.url}/limits", "--entry-bytes", str(entry_bytes),
                           *settings, *level]))


class Echo:
    """An echo server, for the duration of the block; with `synced` it first writes and syncs each
    request to a file."""

    name = "echo"

    def __init__(self, binary, reply_bytes, synced=False):
        self._command = [binary, "echo", "--reply-bytes", str(reply_bytes)]
        self._file = tempfile.NamedTemporaryFile(dir=TARGET, prefix="synced.") if synced else None
        if synced:
            self._command += ["--synced", self._file.name]

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self.at = self._process.stdout.readline().strip()
        self.server = self._process
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        if self._file:
            self._file.close()


class Echoes:
    """Echo servers on the servers' core, each started on first use."""

    def __init__(self, binary, until_end):
        """`until_end` is an ExitStack that ends the echo servers."""
        self._binary, self._until_end, self._echoes = binary, until_end, {}

    def of(self, reply_bytes, synced=False):
        """The echo server with responses of `reply_bytes`; with `synced` it responds once the
        request is written and synced."""
        key = reply_bytes, synced
        if key not in self._echoes:
            with cores.of_servers():
                self._echoes[key] = self._until_end.enter_context(Echo(self._binary, *key))
        return self._echoes[key]
