"""Measure the memory that a call takes, by Python's own allocations."""

import tracemalloc
from collections.abc import Callable

TRIES = 5


def peak_of(work: Callable[[], object], limit: int) -> int:
    """Peak memory of `work`, including its result: the minimum of several tries.

    Other threads of the process are counted too, for example one in which the test runner receives commands.
    A try above `limit` is therefore repeated; work that really takes that much exceeds it each time.
    """
    started_here = not tracemalloc.is_tracing()
    if started_here:
        tracemalloc.start()
    try:
        return _least_peak(work, limit)
    finally:
        if started_here:
            tracemalloc.stop()


def _least_peak(work: Callable[[], object], limit: int) -> int:
    least = _peak(work)
    for _ in range(TRIES - 1):
        if least <= limit:
            break
        least = min(least, _peak(work))
    return least


def _peak(work: Callable[[], object]) -> int:
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    work()
    return tracemalloc.get_traced_memory()[1] - before
