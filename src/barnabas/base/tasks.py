"""Tasks with an owner, which waits for them and handles their errors; and actions that callers share."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.faults import report_fault

logger = logging.getLogger(__name__)

# Delay before failed work is restarted: doubled after each failure, up to the maximum.
RESTART_S: Final = 1.0
RESTART_S_MAX: Final = 60.0


async def together(*work: Coroutine[Any, Any, None]) -> None:
    """Run coroutines concurrently and wait for all. The first error cancels the others and is raised.

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


async def keep_running(name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run endless work, and restart it when it fails, until cancelled.

    For work whose failure does not affect anything else: it is only logged.
    """
    loop = asyncio.get_running_loop()
    wait_s = RESTART_S
    while True:
        begun = loop.time()
        try:
            await run()
            return
        except (BarnabasError, OSError) as error:
            logger.error("task failed name=%s error=%s", name, error)
        except Exception as error:
            report_fault(logger, error, "task failed name=%s", name)
        if loop.time() - begun > RESTART_S_MAX:
            # It ran for a long time, so this is a new failure, not a repetition.
            wait_s = RESTART_S
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, RESTART_S_MAX)


class Tasks:
    """Tasks that are started one by one and end by themselves. Each crash is reported to `on_crash`."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self._on_crash = on_crash
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str | None = None) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_crash(error)

    async def finish(self) -> None:
        """Wait until all running tasks have ended by themselves."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Cancel all running tasks and wait for their end."""
        running = list(self._running)
        for task in running:
            task.cancel()
        # Errors go to on_crash; this only waits.
        await asyncio.gather(*running, return_exceptions=True)


class Coalesced:
    """Runs one action, such as a sync, at a time; all callers that arrive during a run share the next one.

    The run that a caller awaits always starts after its call, so it includes the caller's changes.
    """

    def __init__(self, action: Callable[[], Awaitable[None]]) -> None:
        self._action = action
        self._running = asyncio.Lock()
        self._asked = 0
        self._done = 0

    async def run(self) -> None:
        self._asked += 1
        mine = self._asked
        async with self._running:
            if self._done >= mine:
                return
            serves = self._asked
            await self._action()
            self._done = serves
