"""Tasks that have an owner: whoever starts them waits for them, and sees what goes wrong in them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Run all of it at once and wait for the end. The first error stops the others and is raised as it is.

    A TaskGroup raises a group even for one error, and then `except OSError` does not see an OSError.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


class Tasks:
    """Tasks that are started one by one and end by themselves. A crash of one is never silent."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self._on_crash = on_crash
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_crash(error)

    async def finish(self) -> None:
        """Wait until what runs has ended by itself."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        running = list(self._running)
        for task in running:
            task.cancel()
        # Its errors go to on_crash; here it is only waited for.
        await asyncio.gather(*running, return_exceptions=True)
