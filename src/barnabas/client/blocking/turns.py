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


class _Asked:
    """A callback requested by the loop."""

    def __init__(self, callback: Callback, tps: _Tps) -> None:
        self.callback = callback
        self.tps = tps
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class CallerTurns:
    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        # Whether a callback runs in a thread right now.
        self.is_calling = False
        self._has_callbacks = False
        # Used only in the loop.
        self._asked: deque[_Asked] = deque()
        self._wakeup = asyncio.Event()

    def wrapped(self, callback: Callback | None) -> "Callable[[_Tps], Awaitable[None]] | None":
        """Wrap a callback for the loop: the wrapper completes when a thread has run the callback."""
        if callback is None:
            return None
        self._has_callbacks = True

        async def ask(tps: _Tps) -> None:
            asked = _Asked(callback, tps)
            self._asked.append(asked)
            self._wakeup.set()
            try:
                await asked.done
            finally:
                if asked in self._asked:
                    self._asked.remove(asked)

        return ask

    def check(self, what: str) -> None:
        if self.is_calling:
            raise InCallback(what)

    def run(self, work: Coroutine[Any, Any, T], *, ends: bool = False) -> T:
        """Run a coroutine in the loop and return its result; meanwhile run requested callbacks here.

        `ends`: the coroutine ends the subscription, so drop callbacks requested before.
        """
        if not self._has_callbacks:
            return self._thread.run(work)
        waiting = _Waiting(work)
        if ends:
            self._thread.run(self._forget())
        while (asked := self._wait(waiting)) is not None:
            try:
                self.is_calling = True
                asked.callback(asked.tps)
            except Exception as error:
                self._thread.run(_answer(asked, error))
            except BaseException as error:
                # Ctrl-C: report it to the loop, then raise it here.
                self._thread.run(_answer(asked, RuntimeError(repr(error))))
                self._thread.run(waiting.end())
                raise
            else:
                self._thread.run(_answer(asked, None))
            finally:
                self.is_calling = False
        return waiting.result()

    async def _forget(self) -> None:
        self._asked.clear()

    def _wait(self, waiting: "_Waiting[T]") -> _Asked | None:
        try:
            return self._thread.run(self._next(waiting))
        except BaseException:
            waiting.drop()
            raise

    async def _next(self, waiting: "_Waiting[T]") -> _Asked | None:
        """Return the next requested callback; None when the work is done."""
        task = waiting.begun()
        try:
            while not task.done():
                if self._asked:
                    return self._asked.popleft()
                self._wakeup.clear()
                news = asyncio.ensure_future(self._wakeup.wait())
                try:
                    await asyncio.wait([task, news], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
        except asyncio.CancelledError:
            await waiting.end()
            raise
        return None


class _Waiting(Generic[T]):
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


async def _answer(asked: _Asked, error: Exception | None) -> None:
    if asked.done.done():
        return
    if error is None:
        asked.done.set_result(None)
    else:
        asked.done.set_exception(error)
