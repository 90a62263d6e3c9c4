"""A Python worker of Spark, which runs many tasks one after the other."""

import ctypes
import gc
import logging
from itertools import count
from typing import Final

logger = logging.getLogger(__name__)

# glibc's mallopt(): how much is kept when it is free, which memory is asked from the system for one use, and
# how many arenas there are.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
# Larger than an answer, unless somebody asks for larger ones, and as much as a few of them.
_MMAP_FROM_BYTES: Final = 32 << 20
_KEPT_BYTES_MAX: Final = 64 << 20


_tasks = count()


def settle_in() -> None:
    """When a task begins. There is something to do with the first, and with the second."""
    number = next(_tasks)
    if number == 0:
        gc.collect()
        _leave_alone()
        _keep_memory()
    elif number == 1:
        # What the first one has imported and keeps. Spark has looked for garbage since then.
        _leave_alone()


def _leave_alone() -> None:
    """What is there by now stays, and is left out when garbage is looked for.

    Spark has Python look for it after every task, before the worker takes another. With all the modules of
    Spark, Arrow and ours that takes 60 ms, a quarter of a small micro-batch, and finds nothing. Not with
    every task: what is left alone and then given up, a client perhaps, would never be found.
    """
    gc.freeze()


def _keep_memory() -> None:
    """The memory of an answer is kept for the next one.

    Else the system takes it back, and has to clear it, page by page, before it is given out again: 8% of what
    a worker did that read records of 1 kB. A thread must not have an arena of its own for that: one consists
    of heaps of 64 MB, and a heap that is empty goes back to the system whatever is to be kept. Of other C
    libraries nothing is asked.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError) as error:
        logger.debug("mallopt not available error=%s", error)
        return
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_MMAP_THRESHOLD, _MMAP_FROM_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
