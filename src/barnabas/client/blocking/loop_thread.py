"""An event loop in a thread of its own, for the blocking clients.

run() waits for a coroutine in the loop. If the wait is interrupted (Ctrl-C), the coroutine is cancelled and
awaited, so nothing continues in the background. The thread is a daemon: a script that does not close its
client still exits, unflushed records are lost, and Python issues a ResourceWarning as for an unclosed file. A
forked child has no such thread, so using the client there raises Forked.
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

# Longest wait for a cancelled coroutine, and for the loop to stop.
ENDING_S_MAX: Final = 10.0
# The same at interpreter exit, for a client that was not closed.
EXIT_S_MAX: Final = 1.0


class NotFromItsLoop(RuntimeError):
    """A blocking client was called in a callback of its own, which would deadlock."""


class Forked(ClientError):
    """The client was created before os.fork() and works only in the parent process."""

    def __init__(self) -> None:
        super().__init__(
            "this client was created before fork() and works only in the parent: create a new one here"
        )


class LoopThread:
    def __init__(self, name: str) -> None:
        # Whether this is a forked child, where the thread does not exist.
        self.forked = False
        self.loop = _new_loop()
        # Called for clients that were not closed.
        self.disconnects: list[Disconnect] = []
        self._name = name
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=_serve, args=(self.loop,), name=name, daemon=True)
        self._thread.start()
        # Stop the loop when the client is garbage-collected.
        self._finalizer = weakref.finalize(self, _abandon, self.loop, self.disconnects, name)
        self._finalizer.atexit = False
        _threads.add(self)

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result. Closed if the loop has ended."""
        try:
            self._check_caller()
        except BaseException:
            work.close()
            raise
        call = _Call(self.loop, work)
        try:
            self._begin(call)
            return call.outcome.result()
        except concurrent.futures.CancelledError:
            # The loop was closed by another thread.
            raise Closed() from None
        except BaseException:
            if not call.outcome.done():
                self.loop.call_soon_threadsafe(call.cancel)
                concurrent.futures.wait([call.outcome], ENDING_S_MAX)
            raise

    def _check_caller(self) -> None:
        if self.forked:
            raise Forked()
        if threading.current_thread() is self._thread:
            raise NotFromItsLoop("a blocking client cannot be called in its own callbacks: it would deadlock")

    def _begin(self, call: "_Call[T]") -> None:
        with self._lock:
            if self._closed:
                call.cancel()
                raise Closed()
            self.loop.call_soon_threadsafe(call.begin)

    def close(self) -> None:
        """Cancel all tasks and end the thread. May be called repeatedly."""
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

    def stop_at_exit(self) -> None:
        """At interpreter exit: end the tasks, or Python complains about pending tasks."""
        if self._closed:
            return
        self._closed = True
        with suppress(TimeoutError, concurrent.futures.CancelledError, RuntimeError):
            ending = _cancel_tasks(self.disconnects)
            asyncio.run_coroutine_threadsafe(ending, self.loop).result(EXIT_S_MAX)
        _stop(self.loop)
        self._thread.join(EXIT_S_MAX)
        _warn_unclosed(self._name)

    def mark_forked(self) -> None:
        """After fork() in the child: replace the lock, which another thread may have held forever."""
        self.forked = self._closed = True
        self._lock = threading.Lock()
        self._finalizer.detach()


# Loop threads that are not closed.
_threads: "weakref.WeakSet[LoopThread]" = weakref.WeakSet()


def _stop_all_at_exit() -> None:
    with ExitStack() as stack:
        # With `-W error` a warning raises, and the other threads must still be ended.
        for thread in list(_threads):
            stack.callback(thread.stop_at_exit)


def _mark_all_forked() -> None:
    for thread in list(_threads):
        thread.mark_forked()


atexit.register(_stop_all_at_exit)
os.register_at_fork(after_in_child=_mark_all_forked)


class _Call(Generic[T]):
    """A coroutine in the loop that a thread waits for."""

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
        # Otherwise concurrent.futures.wait() with a timeout does not notice the cancellation.
        self.outcome.set_running_or_notify_cancel()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Use uvloop if installed: about twice as fast."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Thread function: run the loop until it is stopped, then close it and its sockets."""
    try:
        loop.run_forever()
    finally:
        loop.close()


def _abandon(loop: asyncio.AbstractEventLoop, disconnects: list[Disconnect], name: str) -> None:
    """The client was garbage-collected: end its loop without waiting."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(_end(loop, disconnects)))
        _warn_unclosed(name)


def _warn_unclosed(name: str) -> None:
    # No stack level points at user code: this runs in the garbage collector or at exit.
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
    # Host names are resolved in its threads.
    await loop.shutdown_default_executor()
