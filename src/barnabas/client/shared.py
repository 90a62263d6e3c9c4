"""Work that several wait for and that is done once: a connection being opened, metadata being asked for."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar, cast

from barnabas.client.errors import Closed

T = TypeVar("T")


class SharedWork:
    """At most one run for each key at a time. A caller that is cancelled leaves; the run goes on.

    Each run has a bound of its own (a time-out of what it does), so what nobody waits for any more ends too.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._closed = False

    async def join(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the run under this key, which is begun if there is none."""
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
            # Those who wait get it; if they have all left, it is nobody's error.
            task.exception()

    async def close(self) -> None:
        """Cancel what runs and wait for its end; whoever waits gets Closed."""
        self._closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
