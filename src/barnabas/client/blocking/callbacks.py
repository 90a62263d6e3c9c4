"""Runs rebalance callbacks in the user's thread while it waits for the loop.

The loop requests a callback and continues with other tasks until it has run. The callback runs in the user's
next call that waits for the loop: reading, subscribing, closing. So user code needs no locks.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.client.group.errors import InCallback
from barnabas.client.group.session import Callback

T = TypeVar("T")
_Tps = frozenset[TopicPartition]


class _RequestedCallback:
    """A callback requested by the loop."""

    def __init__(self, callback: Callback, tps: _Tps) -> None:
        self.callback = callback
        self.tps = tps
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class CallbackRunner:
    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        # Whether a callback runs in a thread right now.
        self.is_running = False
        self._has_callbacks = False
        # Used only in the loop.
        self._requested: deque[_RequestedCallback] = deque()
        self._wakeup = asyncio.Event()

    def wrapped(self, callback: Callback | None) -> "Callable[[_Tps], Awaitable[None]] | None":
        """Wrap a callback for the loop: the wrapper completes when a thread has run the callback."""
        if callback is None:
            return None
        self._has_callbacks = True

        async def ask(tps: _Tps) -> None:
            requested = _RequestedCallback(callback, tps)
            self._requested.append(requested)
            self._wakeup.set()
            try:
                await requested.done
            finally:
                if requested in self._requested:
                    self._requested.remove(requested)

        return ask

    def check(self, what: str) -> None:
        if self.is_running:
            raise InCallback(what)

    def run(self, work: Coroutine[Any, Any, T], *, ends: bool = False) -> T:
        """Run a coroutine in the loop and return its result; meanwhile run requested callbacks here.

        `ends`: the coroutine ends the subscription, so drop callbacks requested before.
        """
        if not self._has_callbacks:
            return self._thread.run(work)
        work_task = _Work(work)
        if ends:
            self._thread.run(self._drop_requested())
        while (requested := self._wait(work_task)) is not None:
            try:
                self.is_running = True
                requested.callback(requested.tps)
            except Exception as error:
                self._thread.run(_set_outcome(requested, error))
            except BaseException as error:
                # Ctrl-C: report it to the loop, then raise it here.
                self._thread.run(_set_outcome(requested, RuntimeError(repr(error))))
                self._thread.run(work_task.end())
                raise
            else:
                self._thread.run(_set_outcome(requested, None))
            finally:
                self.is_running = False
        return work_task.result()

    async def _drop_requested(self) -> None:
        self._requested.clear()

    def _wait(self, work_task: "_Work[T]") -> _RequestedCallback | None:
        try:
            return self._thread.run(self._next(work_task))
        except BaseException:
            work_task.drop()
            raise

    async def _next(self, work_task: "_Work[T]") -> _RequestedCallback | None:
        """Return the next requested callback; None when the work is done."""
        task = work_task.begun()
        try:
            while not task.done():
                if self._requested:
                    return self._requested.popleft()
                self._wakeup.clear()
                news = asyncio.ensure_future(self._wakeup.wait())
                try:
                    await asyncio.wait([task, news], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
        except asyncio.CancelledError:
            await work_task.end()
            raise
        return None


class _Work(Generic[T]):
    """A coroutine in the loop whose end a thread waits for."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def begun(self) -> "asyncio.Task[T]":
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work)
        return self._task

    async def end(self) -> None:
        """Cancel the task and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def drop(self) -> None:
        """Close the coroutine if it was never started."""
        if self._task is None:
            self._work.close()

    def result(self) -> T:
        assert self._task is not None, "the task was never started"
        return self._task.result()


async def _set_outcome(requested: _RequestedCallback, error: Exception | None) -> None:
    if requested.done.done():
        return
    if error is None:
        requested.done.set_result(None)
    else:
        requested.done.set_exception(error)
