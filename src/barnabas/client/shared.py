"""Tasks that several callers share, and tasks that finish even if their caller is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar, cast

from barnabas.client.errors import Closed

T = TypeVar("T")


class SharedWork:
    """Runs at most one task per key, for example opening a connection or refreshing metadata.

    Cancelling a caller does not cancel the task.
    Each task has timeouts of its own, so it ends even if no caller waits any more.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._closed = False

    async def join(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the task for this key; start it if there is none."""
        if self._closed:
            raise Closed()
        task = self._running.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(work())
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        try:
            return cast(T, await asyncio.shield(task))
        except asyncio.CancelledError:
            if task.cancelled() and self._closed:
                raise Closed() from None
            raise

    def is_running(self, key: Hashable) -> bool:
        return key in self._running

    def _ended(self, key: Hashable, task: "asyncio.Task[Any]") -> None:
        del self._running[key]
        if not task.cancelled():
            # Waiters get the error. Retrieve it, so that asyncio does not log it if there are none.
            task.exception()

    async def close(self) -> None:
        """Cancel all tasks and wait for their end; waiters get Closed."""
        self._closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish `work` even if the caller is cancelled, then raise the cancellation. Only for quick work."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
