"""Where blocking work runs: fsync, reads from the disk itself, recovery, compaction.

The event loop never waits for a disk. Work that may is a plain function of what it is given, and touches
nothing that the loop owns; its result comes back to the loop, which alone changes state.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs a blocking function somewhere else."""

    async def run(self, work: Callable[[], T]) -> T:
        """Wait for the result of `work()` without holding up the loop; what it raises is raised here."""


class ThreadExecutor:
    """A few threads. Work beyond their number waits in line."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="barnabas")

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def resize(self, threads: int) -> None:
        """Have another number of threads for what comes from here on. What waits is still done by the old."""
        old, self._pool = self._pool, ThreadPoolExecutor(threads, thread_name_prefix="barnabas")
        old.shutdown(wait=False)

    def close(self, timeout_s: float | None = None) -> bool:
        """Drop what waits in line, and wait for what runs. False if that takes longer than `timeout_s`."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        waiting = threading.Thread(target=self._pool.shutdown, daemon=True)
        waiting.start()
        waiting.join(timeout_s)
        return not waiting.is_alive()


class InlineExecutor:
    """Runs the work where it is: for tools, and for tests that want one order of events."""

    async def run(self, work: Callable[[], T]) -> T:
        # A turn of the loop in between, as there is with threads.
        await asyncio.sleep(0)
        return work()
