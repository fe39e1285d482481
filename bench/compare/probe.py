"""When does a server give its first answer? It is asked again and again from the moment its process begins.

Asking takes of the server too, so it is asked ever more slowly: again when a hundredth more time has passed, but not more
often than once in MIN_GAP_S. That is how exact the answer is.
"""
import statistics
import time

from javatools import die

GAP_SHARE = 0.01
MIN_GAP_S = 0.001
PATIENCE_S = 300
COST_RUNS = 100


def first_answer(server, question):
    """When the first answer was there, by the monotonic clock."""
    begun = server.server.begun
    while not question.is_answered():
        passed = time.monotonic() - begun
        if passed > PATIENCE_S or not server.server.running():
            die(f"{server.name} gave no answer; its log: {server.server.log}")
        time.sleep(max(MIN_GAP_S, GAP_SHARE * passed))
    return time.monotonic()


def cost_s(question):
    """What it takes to ask a server that is up."""
    return statistics.median(_timed(question) for _ in range(COST_RUNS))


def _timed(question):
    begin = time.monotonic()
    question.is_answered()
    return time.monotonic() - begin
