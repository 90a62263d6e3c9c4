"""An event loop in a thread of its own, for clients that are used without one.

run() waits for a coroutine there. A wait that is interrupted (Ctrl-C) cancels the coroutine and sees it end,
so nothing of it goes on behind the user's back. The thread is a daemon: a script that forgets to close its
client ends all the same, and what was not flushed is lost; as for an unclosed file, Python has a
ResourceWarning for it. A process that is forked has no such thread, so whoever uses the client there is told.
"""

import asyncio
import atexit
import concurrent.futures
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, suppress
from typing import Any, Final, Generic, TypeAlias, TypeVar

from barnabas.client.errors import ClientError, Closed

T = TypeVar("T")
Disconnect: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

# How long a coroutine that is cancelled may take for its own end, and a loop for its last turn.
ENDING_S_MAX: Final = 10.0
# The same for a loop that nobody closed before the interpreter ends: it ends without it then.
LEAVING_S_MAX: Final = 1.0


class NotFromItsLoop(RuntimeError):
    """A blocking client was used in a callback of its own: the wait would be for itself."""


class Forked(ClientError):
    """The client was made before os.fork(), and works in the parent alone."""

    def __init__(self) -> None:
        super().__init__(
            "this client was created before fork() and works only in the parent: create a new one here"
        )


class LoopThread:
    def __init__(self, name: str) -> None:
        # In a child of the process that has the thread.
        self.forked = False
        self.loop = _new_loop()
        # Close the connections of a client that its user did not close.
        self.disconnects: list[Disconnect] = []
        self._name = name
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=_serve, args=(self.loop,), name=name, daemon=True)
        self._thread.start()
        # When nobody holds the client any more, nothing need go on.
        self._finalizer = weakref.finalize(self, _abandon, self.loop, self.disconnects, name)
        self._finalizer.atexit = False
        _threads.add(self)

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of a coroutine in the loop. Closed if there is none any more."""
        try:
            self._check_caller()
        except BaseException:
            work.close()
            raise
        waiting = _Waiting(self.loop, work)
        try:
            self._begin(waiting)
            return waiting.outcome.result()
        except concurrent.futures.CancelledError:
            # The loop was closed by another thread.
            raise Closed() from None
        except BaseException:
            if not waiting.outcome.done():
                self.loop.call_soon_threadsafe(waiting.cancel)
                concurrent.futures.wait([waiting.outcome], ENDING_S_MAX)
            raise

    def _check_caller(self) -> None:
        if self.forked:
            raise Forked()
        if threading.current_thread() is self._thread:
            raise NotFromItsLoop("a blocking client cannot be called in its own callbacks: it would deadlock")

    def _begin(self, waiting: "_Waiting[T]") -> None:
        with self._lock:
            if self._closed:
                waiting.cancel()
                raise Closed()
            self.loop.call_soon_threadsafe(waiting.begin)

    def close(self) -> None:
        """End whatever still runs there, and the thread. Once is enough, more often is allowed."""
        if self._closed:
            return
        self._check_caller()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._finalizer.detach()
        asyncio.run_coroutine_threadsafe(_cancel_all(), self.loop).result(ENDING_S_MAX)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(ENDING_S_MAX)

    def leave(self) -> None:
        """The interpreter ends: have the tasks end too, or Python complains of them."""
        if self._closed:
            return
        self._closed = True
        with suppress(TimeoutError, concurrent.futures.CancelledError, RuntimeError):
            ending = _cancel_tasks(self.disconnects)
            asyncio.run_coroutine_threadsafe(ending, self.loop).result(LEAVING_S_MAX)
        _stop(self.loop)
        self._thread.join(LEAVING_S_MAX)
        _warn_unclosed(self._name)

    def stay_behind(self) -> None:
        """This is a child of the process where the thread runs. What others held is held here for ever."""
        self.forked = self._closed = True
        self._lock = threading.Lock()
        self._finalizer.detach()


# Those that nobody closed yet, and perhaps nobody will.
_threads: "weakref.WeakSet[LoopThread]" = weakref.WeakSet()


def _leave_all() -> None:
    with ExitStack() as all_of_them:
        # With `-W error` a warning is an exception, and the others are to leave all the same.
        for thread in list(_threads):
            all_of_them.callback(thread.leave)


def _stay_behind() -> None:
    for thread in list(_threads):
        thread.stay_behind()


atexit.register(_leave_all)
os.register_at_fork(after_in_child=_stay_behind)


class _Waiting(Generic[T]):
    """A coroutine that a thread waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self.outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()
            self._cancelled()

    def _ended(self, task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            self._cancelled()
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())

    def _cancelled(self) -> None:
        self.outcome.cancel()
        # Without this, who waits for the outcome with a limit is not told.
        self.outcome.set_running_or_notify_cancel()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's if it is installed: about twice as fast."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """What the thread does: run the loop until it is stopped, and close it with the sockets that it has."""
    try:
        loop.run_forever()
    finally:
        loop.close()


def _abandon(loop: asyncio.AbstractEventLoop, disconnects: list[Disconnect], name: str) -> None:
    """Nobody has the client any more, and nobody waits for its end."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(_end(loop, disconnects)))
        _warn_unclosed(name)


def _warn_unclosed(name: str) -> None:
    # There is no line of the user's to point at: this runs in the garbage collector, or at the end.
    warnings.warn(f"unclosed {name}: use it in a `with` block, or close() it", ResourceWarning, stacklevel=2)


async def _end(loop: asyncio.AbstractEventLoop, disconnects: list[Disconnect]) -> None:
    try:
        await _cancel_all(disconnects)
    finally:
        loop.stop()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)


async def _cancel_tasks(disconnects: Iterable[Disconnect] = ()) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for disconnect in disconnects:
        await disconnect()


async def _cancel_all(disconnects: Iterable[Disconnect] = ()) -> None:
    await _cancel_tasks(disconnects)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    # Names of hosts are looked up in its threads.
    await loop.shutdown_default_executor()
