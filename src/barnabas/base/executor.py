"""Where blocking work runs: fsync, reads from the disk itself, recovery, compaction.

The event loop never waits for a disk. Work that may is a plain function of what it is given, and touches
nothing that the loop owns; its result comes back to the loop, which alone changes state.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Executor(Protocol):
    """Runs a blocking function somewhere else."""

    async def run(self, work: Callable[[], T]) -> T:
        """Wait for the result of `work()` without holding up the loop; what it raises is raised here."""


class ThreadExecutor:
    """A few threads. Work beyond their number waits in line.

    All of them are made at the beginning: a process that has run out of memory or threads can make none, and
    the quorum could not write its log then.
    """

    def __init__(self, threads: int) -> None:
        self._pool = _started(threads)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def resize(self, threads: int) -> None:
        """Have another number of threads for what comes from here on. What waits is still done by the old."""
        try:
            old, self._pool = self._pool, _started(threads)
        except RuntimeError as error:
            logger.warning("thread pool resize failed threads=%d error=%s", threads, error)
        else:
            old.shutdown(wait=False)

    def close(self, timeout_s: float | None = None) -> bool:
        """Drop what waits in line, and wait for what runs. False if that takes longer than `timeout_s`."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        waiting = threading.Thread(target=self._pool.shutdown, daemon=True)
        try:
            waiting.start()
        except RuntimeError:
            self._pool.shutdown()
            return True
        waiting.join(timeout_s)
        return not waiting.is_alive()


def _started(threads: int) -> ThreadPoolExecutor:
    """A pool with all of its threads. RuntimeError if the system has not so many."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="barnabas")
    may_go = threading.Event()
    try:
        for _ in range(threads):
            # A pool makes a thread for work that finds all others busy.
            pool.submit(may_go.wait)
    except RuntimeError:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        may_go.set()
    return pool


class InlineExecutor:
    """Runs the work where it is: for tools, and for tests that want one order of events."""

    async def run(self, work: Callable[[], T]) -> T:
        # A turn of the loop in between, as there is with threads.
        await asyncio.sleep(0)
        return work()
