"""Runs the tests of happybase, from its source archive on PyPI."""
import os
import re
import subprocess
import sys

import pypi

PYTEST = "pytest==8.3.5"
# The tests of pools start threads that contend for connections, and take some seconds.
PATIENCE_S = 600
# Tests that fail run again: some wait for threads, or for connections that a server closes when idle.
ATTEMPTS = 3
HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "thrift.md")
RESULT = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) \S*?(test_\w+\.py::\w+)", re.MULTILINE)


def results(port):
    """The result of each test over the Thrift 1 service on a port, by name: with the newest and the
    oldest methods that it uses."""
    found = {}
    for transport, compat in (("buffered", "0.98"), ("buffered", "0.90")):
        for name, result in _results(port, transport, compat).items():
            found[f"{transport} {compat} {name}"] = result
    return found


def runs_example(port):
    """Whether the example of the documentation runs with the Thrift 1 service on a port."""
    with open(PAGE, encoding="utf-8") as page:
        example = page.read().split("```python\n")[1].split("```")[0]
    example = example.replace('"localhost", 9090', f'"127.0.0.1", {port}')
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(pypi.module_path(pypi.HAPPYBASE))}
    return subprocess.run([sys.executable, "-c", example], env=environment, timeout=PATIENCE_S).returncode == 0


def _results(port, transport, compat):
    source = pypi.source(pypi.HAPPYBASE)
    path = [HERE, *pypi.module_path(pypi.HAPPYBASE), *pypi.module_path(PYTEST)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "HAPPYBASE_HOST": "127.0.0.1", "HAPPYBASE_PORT": str(port),
                   "HAPPYBASE_COMPAT": compat, "HAPPYBASE_TRANSPORT": transport}
    found, tests = {}, ["tests"]
    for _ in range(ATTEMPTS):
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-p", "happybase_fixes", *tests]
        done = subprocess.run(command, cwd=source, env=environment, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        found.update({name: result for result, name in RESULT.findall(done.stdout)})
        tests = [f"tests/{name}" for name, result in found.items() if result != "PASSED"]
        if not tests:
            break
    if not found:
        sys.exit(f"happybase's tests do not run:\n{done.stdout[-3000:]}")
    return found
