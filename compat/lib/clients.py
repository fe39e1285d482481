"""The clients of compat/run: programs that use unmodified client libraries and print transcripts.

A client has a name, the suites of its program, a directory of golden transcripts, and a command. A
client that does not run `unasked` runs only if it is named.
"""
import os
import shutil
import subprocess

import pe
from javatools import COMPAT, TARGET, client_class_path, conf_directory, die, java, maven


class JavaClient:
    """compat/java with one version of hbase-client and one registry.

    A name without a suffix means the default registry of that version. Its transcripts are the
    golden ones for all registries, because the registry must not change the responses.
    """

    def __init__(self, version, registry, name=None):
        self.name = name or version
        self.version = version
        self.registry = registry
        self.records = self.name == version
        self.unasked = True
        self.golden = os.path.join(COMPAT, "java", "golden", version)
        self._listed = None

    def suites(self):
        """The suites that run by default, and those that run only if named."""
        return [line.split() for line in self._list()[:2]]

    def settings(self, suite):
        """The settings that servers need for a suite, beyond their defaults."""
        lines = [line.split(" ", 1) for line in self._list()[2:]]
        return dict(setting.split("=", 1) for name, setting in lines if name == suite)

    def _list(self):
        if self._listed is None:
            self._listed = _output([java(), "-cp", client_class_path(self.version), "compat.Main", "--list"])
        return self._listed

    def run(self, endpoint, suites, **how):
        conf = conf_directory(endpoint.settings(self.registry))
        class_path = client_class_path(self.version)
        try:
            # The heap holds a few of the largest responses; otherwise a user's usual settings.
            return subprocess.run([java(), "-Xmx1g", "-cp", f"{conf}:{class_path}", "compat.Main", *suites], **how)
        finally:
            shutil.rmtree(conf, ignore_errors=True)


class GoClient:
    """compat/go: gohbase."""

    name = "gohbase"
    records = True
    unasked = False
    golden = os.path.join(COMPAT, "go", "golden")

    def _program(self):
        go = shutil.which("go") or "/usr/local/go/bin/go"
        if not os.path.exists(go):
            die("no go found; install Go 1.18 or later, or choose other clients with --client")
        program = os.path.join(TARGET, "go", "compat")
        # Go itself decides whether something must be built.
        done = subprocess.run([go, "build", "-o", program, "."], cwd=os.path.join(COMPAT, "go"))
        if done.returncode:
            die("go build failed in compat/go")
        return program

    def suites(self):
        return [_output([self._program(), "--list"])[0].split(), []]

    def settings(self, suite):
        return {}

    def run(self, endpoint, suites, **how):
        return subprocess.run([self._program(), endpoint.quorum(), *suites], **how)


class AsynchbaseClient:
    """compat/asynchbase: asynchbase 1.8.2, which speaks the protocol of HBase 0.96 and later, but
    makes no tables."""

    name = "asynchbase"
    records = True
    unasked = False
    golden = os.path.join(COMPAT, "asynchbase", "golden")

    def _class_path(self):
        output = os.path.join(TARGET, "asynchbase")
        maven(os.path.join(COMPAT, "asynchbase"), output)
        return f"{output}/classes:{output}/lib/*"

    def suites(self):
        return [_output([java(), "-cp", self._class_path(), "compat.async.Main", "--list"])[0].split(), []]

    def settings(self, suite):
        return {}

    def run(self, endpoint, suites, **how):
        tables = [f"compat_async_{suite}" for suite in (self.suites()[0] if suites == ["all"] else suites)]
        pe.tool(endpoint, "create", ",".join(tables), "f,g", "r20", "r40")
        command = [java(), "-Xmx512m", "-cp", self._class_path(), "compat.async.Main"]
        return subprocess.run([*command, endpoint.quorum(), *suites], **how)


def _output(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


CLIENTS = {client.name: client for client in [
    JavaClient("2.5.10", "zk"),
    JavaClient("2.5.10", "master", "2.5.10-master"),
    JavaClient("2.6.4", "zk"),
    JavaClient("2.6.4", "rpc", "2.6.4-rpc"),
    JavaClient("3.0.0-beta-1", "rpc"),
    GoClient(),
    AsynchbaseClient(),
]}
