"""Memory settings of a Spark Python worker, which runs many tasks one after the other."""

import ctypes
import gc
import logging
from itertools import count
from typing import Final

logger = logging.getLogger(__name__)

# Parameters of glibc's mallopt(): free memory to keep, smallest block to mmap, and number of arenas.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
# The first exceeds a fetch response of default size; the second holds a few of them.
_MMAP_FROM_BYTES: Final = 32 << 20
_KEPT_BYTES_MAX: Final = 64 << 20


_tasks = count()


def settle_in() -> None:
    """Call when a task begins. Only the first and second task of a worker change anything."""
    number = next(_tasks)
    if number == 0:
        gc.collect()
        _leave_alone()
        _keep_memory()
    elif number == 1:
        # Covers what the first task imported and cached. Spark has collected garbage since then.
        _leave_alone()


def _leave_alone() -> None:
    """Exclude all current objects from garbage collection.

    Spark runs gc.collect() after every task, before the worker takes another. With all the modules of Spark,
    Arrow and ours that takes 60 ms, a quarter of a small micro-batch, and finds nothing. Do not call this
    after every task: a frozen object that becomes garbage, such as a client, would never be collected.
    """
    gc.freeze()


def _keep_memory() -> None:
    """Reuse the memory of a fetch response for the next one.

    Otherwise malloc returns it to the kernel, which zeroes every page before handing it out again: 8 % of the
    work of a worker that reads 1 kB records. All threads share one arena, because other arenas consist of
    64 MB heaps that are unmapped when empty, regardless of the trim threshold. C libraries without mallopt()
    are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError) as error:
        logger.debug("mallopt not available error=%s", error)
        return
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_MMAP_THRESHOLD, _MMAP_FROM_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
