"""An event loop in a thread of its own, for clients that are used without one.

run() waits for a coroutine there. A wait that is interrupted (Ctrl-C) cancels the coroutine and sees it end,
so nothing of it goes on behind the user's back. The thread is a daemon: a script that forgets to close its
client ends all the same.
"""

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, Final, Generic, TypeVar

from barnabas.client.errors import Closed

T = TypeVar("T")

# How long a coroutine that is cancelled may take for its own end, and a loop for its last turn.
ENDING_S_MAX: Final = 10.0


class NotFromItsLoop(RuntimeError):
    """A blocking client was used in a callback of its own: the wait would be for itself."""


class LoopThread:
    def __init__(self, name: str) -> None:
        self.loop = _new_loop()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()
        # When nobody holds the client any more, or the interpreter ends, nothing need go on.
        self._finalizer = weakref.finalize(self, _stop, self.loop)

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of a coroutine in the loop. Closed if there is none any more."""
        if threading.current_thread() is self._thread:
            work.close()
            raise NotFromItsLoop("a blocking client cannot be waited for in one of its own callbacks")
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

    def _begin(self, waiting: "_Waiting[T]") -> None:
        with self._lock:
            if self._closed:
                waiting.cancel()
                raise Closed()
            self.loop.call_soon_threadsafe(waiting.begin)

    def close(self) -> None:
        """End whatever still runs there, and the thread. Once is enough, more often is allowed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._finalizer.detach()
        asyncio.run_coroutine_threadsafe(_cancel_all(), self.loop).result(ENDING_S_MAX)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(ENDING_S_MAX)
        self.loop.close()


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


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    # Names of hosts are looked up in its threads.
    await loop.shutdown_default_executor()
