"""Return the memory of a spike to the system when the spike is over.

The allocator keeps freed memory for the next request (memory.py), and never returns free pages that lie
between used ones. So a broker that once served a large request would stay large. A task checks the size of
the process every few seconds. While the size is well above the smallest one, malloc_trim() runs in a thread:
80 ms for a gigabyte that is returned, under 1 ms if there is nothing, 16 ms with 100,000 free pieces.
If the memory is really in use, the task checks less and less often.

Before that, a garbage collection empties the interpreter's free lists of tuples and floats: two thousand of
these, spread over the blocks that Python allocates small objects from, keep all of the blocks in use. The
collection is short, because old objects are excluded (memory.py). Every few minutes it includes them, unless
so many were added since the start that it would block the loop.

While the process grows, objects come from malloc() (pymalloc.py). It is growing if pymalloc holds 2 MB more
than a moment ago, or if Python starts a collection by itself: thousands of objects were added since the last
one. It has stopped growing when there was no such collection since the last check and its size is the same.
"""

import asyncio
import ctypes
import gc
import logging
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from barnabas.base.executor import Executor
from barnabas.base.memory import collect_all
from barnabas.base.pymalloc import ObjectAllocator

logger = logging.getLogger(__name__)

# How far above its smallest size the process must be before memory is returned.
EXCESS_BYTES: Final = 4 << 20
# Returned memory is logged from this size on.
REPORTED_BYTES: Final = 64 << 20
# The process counts as growing when pymalloc has allocated this many more blocks, which are 2 MB, and as long
# as its largest size rises by at least GROWN_BYTES between two checks.
GROWN_BLOCKS: Final = 20_000
GROWN_BYTES: Final = 1 << 20
# Interval between counts of blocks; longer if a count takes long. A count takes 0.1 ms for 30 MB of blocks.
COUNT_EVERY_S: Final = 0.2
_COUNT_SHARE_MAX: Final = 0.001
# Interval between collections that include old objects; not done with more than OLD_MAX of them since the
# start, or with more than OLD_BYTES_MAX more memory, because even counting them then takes long.
OLD_EVERY_S: Final = 600.0
OLD_MAX: Final = 200_000
OLD_BYTES_MAX: Final = 256 << 20
# The interval between two checks, and its maximum if the size does not change.
PAUSE_S_MIN: Final = 5.0
PAUSE_S_MAX: Final = 60.0
_RESIDENT_PAGES_AT: Final = 1
_PAGE_BYTES: Final = resource.getpagesize()


def resident_bytes() -> int:
    """The resident size of this process; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[_RESIDENT_PAGES_AT]) * _PAGE_BYTES
    except OSError:
        return 0


def malloc_trim() -> Callable[[], None] | None:
    """Return the function of the C library that returns free pages; None if it has none."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else lambda: trim(0)


class Trimming:
    """Decides when to return memory. `run` works until it is cancelled."""

    def __init__(
        self,
        resident: Callable[[], int] = resident_bytes,
        *,
        objects: ObjectAllocator | None = None,
        pause_s_min: float = PAUSE_S_MIN,
    ) -> None:
        self._resident = resident
        self._objects = objects or ObjectAllocator()
        self._pause_s_min = pause_s_min
        self._smallest = resident()
        self._old_at_start = gc.get_freeze_count()
        self._since_old_s = 0.0
        # Whether Python started a collection since the last check, and whether one of ours is running.
        self._has_collected = False
        self._collects = False
        # The fewest blocks in use while pymalloc is used, and the largest size since malloc() is used.
        self._fewest_blocks = sys.getallocatedblocks()
        self._largest = 0
        self._count_every_s = min(COUNT_EVERY_S, self._pause_s_min)
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
        # A growing spike will end soon. Memory that stays in use is checked less often.
        is_growing = size - self._last >= EXCESS_BYTES
        self.pause_s = self._pause_s_min if is_growing else min(2 * self.pause_s, PAUSE_S_MAX)
        self._last = max(size, self._last)
        return True

    def _collect(self) -> None:
        if sys.version_info < (3, 12):
            # The type cache may keep names of class patterns in match statements alive, up to 4,096 of them.
            sys._clear_type_cache()
        self._collects = True
        if self._since_old_s >= OLD_EVERY_S and self._are_old_few():
            self._since_old_s = 0.0
            collect_all()
        else:
            gc.collect()
        self._collects = False

    def _are_old_few(self) -> bool:
        if self._resident() - self._smallest >= OLD_BYTES_MAX:
            return False
        return gc.get_freeze_count() - self._old_at_start < OLD_MAX

    # Growth

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start" and not self._collects:
            self._has_collected = True
            self._grow()

    def watch(self) -> None:
        """Detect growth early. Python counts blocks of malloc() only when they are freed."""
        if not self._objects.uses_malloc:
            started = time.perf_counter()
            blocks = sys.getallocatedblocks()
            took_s = time.perf_counter() - started
            every_s = max(COUNT_EVERY_S, took_s / _COUNT_SHARE_MAX)
            self._count_every_s = min(every_s, self._pause_s_min)
            self._fewest_blocks = min(self._fewest_blocks, blocks)
            if blocks - self._fewest_blocks >= GROWN_BLOCKS:
                self._grow()

    def _grow(self) -> None:
        if not self._objects.uses_malloc:
            self._objects.use_malloc()
            self._largest = self._resident()

    def settle(self) -> None:
        """Switch back to pymalloc if the process no longer grows."""
        size, has_collected = self._resident(), self._has_collected
        self._has_collected = False
        if not self._objects.uses_malloc or has_collected or size - self._largest >= GROWN_BYTES:
            self._largest = max(self._largest, size)
            return
        self._objects.use_pymalloc()
        self._fewest_blocks = sys.getallocatedblocks()

    # At work

    async def run(self, executor: Executor) -> None:
        trim = malloc_trim()
        if trim is None or self._smallest == 0:
            return
        gc.callbacks.append(self._on_collection)
        try:
            await self._run(executor, trim)
        finally:
            gc.callbacks.remove(self._on_collection)
            self._objects.use_pymalloc()

    async def _run(self, executor: Executor, trim: Callable[[], None]) -> None:
        while True:
            await self._pause()
            self.settle()
            if self.is_due():
                before = self._resident()
                self._collect()
                await executor.run(trim)
                returned = before - self._resident()
                if returned >= REPORTED_BYTES:
                    logger.info("memory returned bytes=%d resident=%d", returned, self._resident())

    async def _pause(self) -> None:
        """Wait until the next check is due: soon, while the process grows."""
        waited_s = 0.0
        while waited_s < (self._pause_s_min if self._objects.uses_malloc else self.pause_s):
            pause_s = self._count_every_s
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            self.watch()
        self._since_old_s += waited_s
