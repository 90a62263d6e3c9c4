"""A program that runs on a simulated machine: its queue of callbacks, its timers, its CPU, and its death.

A context variable has the process of the running code: tasks and callbacks inherit it from their creator, so
the loop knows the owner of everything that it schedules. Code outside of any process belongs to the world:
the test and the network.

A killed process never runs again. No except, finally or __del__ of it runs, as after kill -9: its tasks,
callbacks, timers and asynchronous generators are kept in its grave, where nothing can wake them.
"""

import asyncio
import heapq
from asyncio import tasks as asyncio_tasks
from collections import deque
from collections.abc import Iterable
from contextvars import ContextVar
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.sim.clock import SimClock

if TYPE_CHECKING:
    from barnabas.sim.executor import SimExecutor

CURRENT: Final[ContextVar["Process | None"]] = ContextVar("simulated process", default=None)

# CPU time of one callback: from a small callback to the processing of a large batch.
CALLBACK_NS: Final = (5_000, 100_000)
# Cancelled timers are removed from the heap when they are more than these, and more than half.
CANCELLED_MIN: Final = 100


class Failure(NamedTuple):
    """An unhandled error of the process."""

    at_ns: int
    text: str
    error: BaseException | None


class Process:
    """One incarnation of a program. The loop calls its methods."""

    def __init__(self, name: str, number: int, clock: SimClock, rng: Random) -> None:
        self.name: Final = name
        self.number: Final = number
        # In traces.
        self.label: Final = f"{name}#{number}".encode()
        self.clock: Final = clock
        self.executor: SimExecutor | None = None
        self.callback_ns = CALLBACK_NS
        self.ready: deque[asyncio.Handle] = deque()
        # Callbacks left in the current iteration of its event loop.
        self.turn = 0
        self.busy_until_ns = 0
        self.is_paused = False
        self.is_dead = False
        self.failures: list[Failure] = []
        self._rng: Final = rng
        # (true time, number, timer): timers of the same time run in the order of their creation.
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._timer_number = 0
        self._cancelled = 0
        self._grave: list[object] = []

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"

    # Scheduling

    def add(self, handle: asyncio.Handle) -> None:
        if self.is_dead:
            self._grave.append(handle)
        else:
            self.ready.append(handle)

    def add_timer(self, timer: asyncio.TimerHandle) -> None:
        if self.is_dead:
            self._grave.append(timer)
            return
        timer._scheduled = True  # type: ignore[attr-defined]
        self._timer_number += 1
        due_ns = self.clock.true_ns(round(timer.when() * 1_000_000_000))
        heapq.heappush(self._timers, (due_ns, self._timer_number, timer))

    def timer_was_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > CANCELLED_MIN and self._cancelled * 2 > len(self._timers):
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def next_timer_ns(self) -> int | None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
            self._cancelled -= 1
        return self._timers[0][0] if self._timers else None

    def take_due_timers(self, now_ns: int) -> None:
        """Move the due timers to the ready callbacks."""
        while self._timers and self._timers[0][0] <= now_ns:
            timer = heapq.heappop(self._timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._cancelled -= 1
            else:
                self.ready.append(timer)

    def clock_changed(self) -> None:
        """Compute the due times again after the clock's rate has changed."""
        timers = [
            (self.clock.true_ns(round(timer.when() * 1_000_000_000)), number, timer)
            for _, number, timer in self._timers
        ]
        heapq.heapify(timers)
        self._timers = timers

    def use_cpu(self, now_ns: int) -> None:
        """Note that a callback has run."""
        self.busy_until_ns = now_ns + self._rng.randint(*self.callback_ns)

    # Death

    def bury(self, all_tasks: Iterable[asyncio.Task[Any]], rest: Iterable[object]) -> None:
        """Take everything that could run. `all_tasks` are the process's tasks, `rest` is kept with them."""
        self.is_dead = True
        for task in all_tasks:
            # Without this a task would be cancelled at the end of the world, or report that it was destroyed.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            asyncio_tasks._unregister_task(task)
            self._grave.append(task)
        self._grave += [self.ready, self._timers, *rest]
        self.ready, self._timers, self.turn = deque(), [], 0

    def forget(self) -> None:
        """Free the grave. This runs cleanup code of the dead process, so call it when nothing can notice."""
        self._grave.clear()
