"""Tasks that have an owner: whoever starts them waits for them, and sees what goes wrong in them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.faults import report_fault

logger = logging.getLogger(__name__)

# How long work that failed is left alone before it is begun again: doubled each time, up to the most.
RESTART_S: Final = 1.0
RESTART_S_MAX: Final = 60.0


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


async def keep_running(name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something that goes on for ever, and begin it again when it fails; until cancelled.

    For work whose failure concerns nothing else: it is logged, and others go on.
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
            # It was at work for long: this is another failure, not the same one again.
            wait_s = RESTART_S
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, RESTART_S_MAX)


class Tasks:
    """Tasks that are started one by one and end by themselves. A crash of one is never silent."""

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
        """Wait until what runs has ended by itself."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        running = list(self._running)
        for task in running:
            task.cancel()
        # Its errors go to on_crash; here it is only waited for.
        await asyncio.gather(*running, return_exceptions=True)
