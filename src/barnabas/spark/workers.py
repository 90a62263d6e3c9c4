"""A Python worker of Spark, which runs many tasks one after the other."""

import ctypes
import gc
import logging
from functools import cache
from typing import Final

logger = logging.getLogger(__name__)

# glibc's mallopt(): which memory is asked from the system for one use, and how much is kept when it is free.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# Larger than an answer, unless somebody asks for larger ones, and as much as a few of them.
_MMAP_FROM_BYTES: Final = 32 << 20
_KEPT_BYTES_MAX: Final = 64 << 20


@cache
def settle_in() -> None:
    """Once in a worker, for all of its tasks."""
    _leave_modules_alone()
    _keep_memory()


def _leave_modules_alone() -> None:
    """What is there by now stays, and is left out when garbage is looked for.

    Spark has Python look for it after every task, before the worker takes another. With all the modules of
    Spark, Arrow and ours that takes 60 ms, a quarter of a small micro-batch, and finds nothing.
    """
    gc.collect()
    gc.freeze()


def _keep_memory() -> None:
    """The memory of an answer is kept for the next one.

    Else the system takes it back, and has to clear it, page by page, before it is given out again: 8% of what
    a worker did that read records of 1 kB. Of other C libraries nothing is asked.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError) as error:
        logger.debug("memory is kept as the system does reason=%s", error)
        return
    mallopt(_M_MMAP_THRESHOLD, _MMAP_FROM_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
