"""Tasks and futures that know their number, so that a set of them has the same order in every run.

asyncio keeps sets of tasks: a TaskGroup cancels its children in the order of one. An ordinary task is
hashed by its address, so this order would change from run to run, and a failing seed would not replay.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SimTask(asyncio.Task[T]):
    def __init__(self, coro: Coroutine[Any, Any, T], *, number: int, **rest: Any) -> None:
        # First, because the constructor of a task already puts it into a set.
        self.number = number
        super().__init__(coro, **rest)

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[T]):
    def __init__(self, *, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


def number_of(task: asyncio.Task[Any]) -> int:
    return task.number if isinstance(task, SimTask) else -1
