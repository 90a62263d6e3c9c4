"""Give the memory of a spike back to the system when the spike is over.

The allocator keeps freed memory for the next request (allocator.py), and never returns free pages that lie
between used ones. So a broker that once served a large request would stay large. A task looks at the size of
the process every few seconds. While the size is well above the smallest one, malloc_trim() runs in a thread:
80 ms for a gigabyte that is returned, under 1 ms if there is nothing, 16 ms with 100,000 free pieces.
If the memory is really in use, the task looks less and less often.

Before that, a garbage collection empties the interpreter's lists of free tuples and floats: two thousand of
these, spread over the blocks that Python allocates small objects from, keep all of the blocks in use. It is
short, because old objects are left out (garbage.py). Every few minutes it looks at these as well, unless so
many came since the start that it would hold up the loop.
"""

import asyncio
import ctypes
import gc
import logging
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from barnabas.base.executor import Executor
from barnabas.base.garbage import collect_all

logger = logging.getLogger(__name__)

# How far the process has to be above its smallest size.
EXCESS_BYTES: Final = 4 << 20
# From so much the log says it.
REPORTED_BYTES: Final = 64 << 20
# How often, and up to how many objects since the start, old objects are looked at too.
OLD_EVERY_S: Final = 600.0
OLD_MAX: Final = 200_000
# The time between two looks, and how long it may become if the size stays what it is.
PAUSE_S_MIN: Final = 5.0
PAUSE_S_MAX: Final = 60.0
_RESIDENT_PAGES_AT: Final = 1
_PAGE_BYTES: Final = resource.getpagesize()


def resident_bytes() -> int:
    """The size of this process in memory; 0 if the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[_RESIDENT_PAGES_AT]) * _PAGE_BYTES
    except OSError:
        return 0


def malloc_trim() -> Callable[[], None] | None:
    """Return the function of the C library that returns free pages; None if it has none."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else lambda: trim(0)


class Trimming:
    """When to return memory. `run` serves until it is cancelled."""

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, *, pause_s_min: float = PAUSE_S_MIN
    ) -> None:
        self._resident = resident
        self._pause_s_min = pause_s_min
        self._smallest = resident()
        self._objects = sys.getallocatedblocks()
        self._since_old_s = 0.0
        self._last = self._smallest
        self.pause_s = self._pause_s_min

    def is_due(self) -> bool:
        """Whether the process is so large that free memory should be returned."""
        size = self._resident()
        self._smallest = min(self._smallest, size)
        if size - self._smallest < EXCESS_BYTES:
            self._last = size
            self.pause_s = self._pause_s_min
            return False
        # A spike that grows, and will end. Memory that stays in use is looked at less often.
        is_growing = size - self._last >= EXCESS_BYTES
        self.pause_s = self._pause_s_min if is_growing else min(2 * self.pause_s, PAUSE_S_MAX)
        self._last = max(size, self._last)
        return True

    def _collect(self) -> None:
        if self._since_old_s >= OLD_EVERY_S and sys.getallocatedblocks() - self._objects < OLD_MAX:
            self._since_old_s = 0.0
            collect_all()
        else:
            gc.collect()

    async def run(self, executor: Executor) -> None:
        trim = malloc_trim()
        if trim is None or self._smallest == 0:
            return
        while True:
            await asyncio.sleep(self.pause_s)
            self._since_old_s += self.pause_s
            if self.is_due():
                before = self._resident()
                self._collect()
                await executor.run(trim)
                returned = before - self._resident()
                if returned >= REPORTED_BYTES:
                    logger.info("memory returned bytes=%d resident=%d", returned, self._resident())
