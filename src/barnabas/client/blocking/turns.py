"""Callbacks that run in the thread of whoever waits, while it waits.

The loop asks for a callback and goes on with other things until it has run. It runs in a script's thread, in
the next call that waits for the loop here: reading, subscribing, closing. So a script needs no locks.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.client.group.callbacks import Callback
from barnabas.client.group.errors import InCallback

T = TypeVar("T")
_Tps = frozenset[TopicPartition]


class _Asked:
    """One call that the loop waits for."""

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
        # Only in the loop.
        self._asked: deque[_Asked] = deque()
        self._news = asyncio.Event()

    def wrapped(self, callback: Callback | None) -> "Callable[[_Tps], Awaitable[None]] | None":
        """The same for the loop: it is done when a thread has run it."""
        if callback is None:
            return None
        self._has_callbacks = True

        async def ask(tps: _Tps) -> None:
            asked = _Asked(callback, tps)
            self._asked.append(asked)
            self._news.set()
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
        """What comes of a coroutine in the loop; callbacks that are asked for meanwhile run here.

        If it `ends` what asks for them, those that were asked for before are not run any more.
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
                # Ctrl-C: the loop hears of it, and so does the script.
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
        """The next callback to run; None when the work is done."""
        task = waiting.begun()
        try:
            while not task.done():
                if self._asked:
                    return self._asked.popleft()
                self._news.clear()
                news = asyncio.ensure_future(self._news.wait())
                try:
                    await asyncio.wait([task, news], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
        except asyncio.CancelledError:
            await waiting.end()
            raise
        return None


class _Waiting(Generic[T]):
    """Work in the loop that a thread looks after."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def begun(self) -> "asyncio.Task[T]":
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work)
        return self._task

    async def end(self) -> None:
        """Cancel it, and see it end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def drop(self) -> None:
        """If it was never begun, it never will be."""
        if self._task is None:
            self._work.close()

    def result(self) -> T:
        assert self._task is not None, "it was never begun"
        return self._task.result()


async def _answer(asked: _Asked, error: Exception | None) -> None:
    if asked.done.done():
        return
    if error is None:
        asked.done.set_result(None)
    else:
        asked.done.set_exception(error)
