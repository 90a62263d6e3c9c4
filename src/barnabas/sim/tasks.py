"""Numbered tasks and futures, so that a set of them has the same order in every run.

asyncio uses sets of tasks: a TaskGroup cancels its children in set order. An ordinary task is hashed by its
address, so the order would change from run to run, and a failing seed could not be replayed.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas.sim.process import Process

T = TypeVar("T")


class SimTask(asyncio.Task[T]):
    def __init__(
        self, coro: Coroutine[Any, Any, T], *, number: int, process: Process | None, **rest: Any
    ) -> None:
        # First, because the constructor of a task adds it to a set.
        self.number = number
        self.process = process
        super().__init__(coro, **rest)

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[T]):
    def __init__(self, *, number: int, process: Process | None, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.process = process
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


def number_of(task: asyncio.Task[Any]) -> int:
    return task.number if isinstance(task, SimTask) else -1
