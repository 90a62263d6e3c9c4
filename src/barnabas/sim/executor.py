"""The simulated executor: blocking work runs on the loop after a seeded delay, as if in a few threads.

It shows the visible behaviour of threads: work queues when all are busy, its effects are visible before its
result, and work that has started continues when its waiter is cancelled.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeVar

T = TypeVar("T")

THREADS: Final = 4
# Default duration of a job: between memory and a fast disk.
DELAY_MS: Final = (0.01, 1.0)
# For a disk that hangs for longer than this, use hold().
DELAY_MS_MAX: Final = 600_000.0


@dataclass(slots=True)
class _Job:
    work: Callable[[], Any]
    result: asyncio.Future[Any]
    outcome: Any = None
    error: BaseException | None = None


class SimExecutor:
    """Implements base/executor.py."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: Random, *, threads: int = THREADS) -> None:
        self._loop = loop
        self._rng = rng
        self._threads = threads
        self._delay_ms = DELAY_MS
        self._queue: deque[_Job] = deque()
        self._busy = 0
        self._held = False

    @property
    def delay_ms(self) -> tuple[float, float]:
        """Minimum and maximum duration of a job, without its time in the queue."""
        return self._delay_ms

    @delay_ms.setter
    def delay_ms(self, bounds: tuple[float, float]) -> None:
        least, most = bounds
        if not 0 <= least <= most <= DELAY_MS_MAX:
            raise ValueError(
                f"invalid delays {least} to {most} ms, expected 0 <= least <= most <= {DELAY_MS_MAX}"
            )
        self._delay_ms = least, most

    def hold(self) -> None:
        """Start no more work until release(), like a hanging disk."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self._begin()

    @property
    def in_line(self) -> int:
        """The number of queued jobs."""
        return len(self._queue)

    async def run(self, work: Callable[[], T]) -> T:
        return await self.submit(work)

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        result: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(_Job(work, result))
        self._begin()
        return result

    def _begin(self) -> None:
        while self._queue and self._busy < self._threads and not self._held:
            job = self._queue.popleft()
            # As with threads, a job that was cancelled in the queue is not run.
            if not job.result.cancelled():
                self._busy += 1
                total_s = self._rng.uniform(*self._delay_ms) / 1000
                before_s = total_s * self._rng.random()
                self._loop.call_later(before_s, self._do, job, total_s - before_s)

    def _do(self, job: _Job, after_s: float) -> None:
        try:
            job.outcome = job.work()
        except BaseException as error:  # For the waiter, even a PowerLoss.
            job.error = error
        self._loop.call_later(after_s, self._end, job)

    def _end(self, job: _Job) -> None:
        self._busy -= 1
        self._begin()
        if job.result.done():
            return
        if job.error is None:
            job.result.set_result(job.outcome)
        else:
            job.result.set_exception(job.error)
