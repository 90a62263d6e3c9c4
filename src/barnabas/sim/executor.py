"""The simulated executor: blocking work runs on the loop after a seeded delay, as if in a few threads.

It shows the visible behaviour of threads: work queues when all are busy, its effects are visible before its
result, and work that has started continues when its waiter is cancelled.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

THREADS: Final = 4
# Default duration of a job: between memory and a fast disk.
DELAY_MS: Final = (0.01, 1.0)
# For a disk that hangs for longer than this, use hold().
DELAY_MS_MAX: Final = 600_000.0


class Outside(Protocol):
    """The loop, which runs jobs outside of any process: the kernel finishes what a dead program began."""

    def create_future(self) -> asyncio.Future[Any]: ...

    def call_outside(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle: ...


@dataclass(eq=False, slots=True)
class _Job:
    work: Callable[[], Any]
    result: asyncio.Future[Any]
    # Set while it is waiting for its turn on a thread that has taken it.
    begins: asyncio.TimerHandle | None = None
    outcome: Any = None
    error: BaseException | None = None


class SimExecutor:
    """Implements base/executor.py."""

    def __init__(self, loop: Outside, rng: Random, *, threads: int = THREADS) -> None:
        self._loop = loop
        self._rng = rng
        self._threads = threads
        self._delay_ms = DELAY_MS
        self._queue: deque[_Job] = deque()
        # The jobs on a thread, in the order of their start.
        self._busy: dict[_Job, None] = {}
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
        self._queue.append(_Job(partial(copy_context().run, work), result))
        self._begin()
        return result

    def kill(self) -> list[Callable[[], object]]:
        """End with the process. Return the jobs on a thread, some of whose calls the kernel may have done."""
        under_way = []
        for job in self._busy:
            if job.begins is not None:
                job.begins.cancel()
                under_way.append(job.work)
        self._queue.clear()
        self._busy = {}
        self._held = True
        return under_way

    def _begin(self) -> None:
        while self._queue and len(self._busy) < self._threads and not self._held:
            job = self._queue.popleft()
            # As with threads, a job that was cancelled in the queue is not run.
            if not job.result.cancelled():
                self._busy[job] = None
                total_s = self._rng.uniform(*self._delay_ms) / 1000
                before_s = total_s * self._rng.random()
                job.begins = self._loop.call_outside(before_s, self._do, job, total_s - before_s)

    def _do(self, job: _Job, after_s: float) -> None:
        job.begins = None
        try:
            job.outcome = job.work()
        except BaseException as error:  # For the waiter, even a PowerLoss.
            job.error = error
        self._loop.call_outside(after_s, self._end, job)

    def _end(self, job: _Job) -> None:
        self._busy.pop(job, None)
        self._begin()
        if job.result.done():
            return
        if job.error is None:
            job.result.set_result(job.outcome)
        else:
            job.result.set_exception(job.error)
