"""How much memory a piece of work takes, by what Python itself allocates."""

import tracemalloc
from collections.abc import Callable

TRIES = 5


def peak_of(work: Callable[[], object], limit: int) -> int:
    """The most that was allocated at once, what `work` returns included: the least of a few tries.

    Other threads of the process are counted too. The test runner's takes its orders in one, and what it
    allocates for them has nothing to do with the work: so a try that takes more than `limit` is repeated.
    Work that really takes so much does it each time.
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
