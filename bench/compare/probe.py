"""Measures when a server gives its first response, by polling it from the start of its process.

Polling also costs the server time, so the interval grows: it is 1 % of the time that has passed,
but at least MIN_GAP_S. This is the accuracy of the result.
"""
import statistics
import time

from javatools import die

GAP_SHARE = 0.01
MIN_GAP_S = 0.001
PATIENCE_S = 300
COST_RUNS = 100


def first_answer(server, question):
    """The time of the first response, by the monotonic clock."""
    begun = server.server.begun
    while not question.is_answered():
        passed = time.monotonic() - begun
        if passed > PATIENCE_S or not server.server.running():
            die(f"{server.name} did not respond; its log: {server.server.log}")
        time.sleep(max(MIN_GAP_S, GAP_SHARE * passed))
    return time.monotonic()


def cost_s(question):
    """The time of one request to a running server."""
    return statistics.median(_timed(question) for _ in range(COST_RUNS))


def _timed(question):
    begin = time.monotonic()
    question.is_answered()
    return time.monotonic() - begin
