"""Run blocking work outside of the event loop: fsync, uncached reads, recovery, compaction.

The event loop never waits for a disk. Blocking work is a function of its arguments that touches nothing the
loop owns; its result goes back to the loop, and only the loop changes state.
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
    """Runs blocking functions."""

    async def run(self, work: Callable[[], T]) -> T:
        """Await the result of `work()` without blocking the loop; its exceptions are raised here."""


class ThreadExecutor:
    """A fixed number of threads; further work is queued.

    All threads are started at once: a process that later runs out of memory or threads could not start any,
    and the quorum could not write its log.
    """

    def __init__(self, threads: int) -> None:
        self._pool = _started(threads)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def resize(self, threads: int) -> None:
        """Use another number of threads for new work. The old threads finish what is queued."""
        try:
            old, self._pool = self._pool, _started(threads)
        except RuntimeError as error:
            logger.warning("thread pool resize failed threads=%d error=%s", threads, error)
        else:
            old.shutdown(wait=False)

    def close(self, timeout_s: float | None = None) -> bool:
        """Drop queued work and wait for running work. Return False if that exceeds `timeout_s`."""
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
    """Return a pool with all threads started. RuntimeError if the system refuses to start one."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="barnabas")
    may_go = threading.Event()
    try:
        for _ in range(threads):
            # A pool starts a thread only if all others are busy.
            pool.submit(may_go.wait)
    except RuntimeError:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        may_go.set()
    return pool


class InlineExecutor:
    """Runs work in the calling thread: for tools, and for tests that need a deterministic order of events."""

    async def run(self, work: Callable[[], T]) -> T:
        # Yield to the loop once, as happens with threads.
        await asyncio.sleep(0)
        return work()
