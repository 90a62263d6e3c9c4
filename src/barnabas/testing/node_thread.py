"""A thread with an event loop and one broker, and the methods for other threads to use it.

The broker never shares the caller's event loop: a blocking client (confluent-kafka, Spark, our own blocking
ones) would block that loop while it waits for the broker. The caller waits for futures, blocking or awaiting.

The thread has no reference to the user's Broker object, so that a dropped one is garbage-collected. The
thread is a daemon: the exit of the process does not wait for it, but an atexit handler stops it.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.testing.errors import BrokerDied, BrokerStopped, BrokerStuck, note_log
from barnabas.testing.log_tail import TAILS, new_tail
from barnabas.testing.places import Place
from barnabas.testing.settings import Plan

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

T = TypeVar("T")

# The broker's own limits for a clean stop are 5 s for the controller and 5 s for clients.
STOP_TIMEOUT_S: Final = 30.0
# A start may wait for its controller three times, one minute each; a call waits up to 30 s.
START_TIMEOUT_S: Final = 200.0
CALL_TIMEOUT_S: Final = 60.0
# Short, because it delays the exit of the process.
EXIT_TIMEOUT_S: Final = 5.0

_running: "set[NodeThread]" = set()


class NodeThread:
    """Call start(), then call() until ask_to_stop(), all from other threads."""

    def __init__(self, plan: Plan, place: Place, *, name: str) -> None:
        # Resolved with the address when the broker accepts connections, or with the error of the start.
        self.started: Final[Future[str]] = _future()
        # Resolved when the thread is about to end.
        self.ended: Final[Future[None]] = _future()
        self.error: BaseException | None = None
        self.log: Final = new_tail()
        self._plan = plan
        self._place = place
        self._port = plan.port
        self._pid = os.getpid()
        self._broker: Broker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Future[bool] | None = None
        self._stop_requested = False
        # Reentrant, because the garbage collector may run a finalizer that calls ask_to_stop() at any point.
        self._changes = threading.RLock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # Called from other threads

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            # The process cannot start more threads.
            self._place.remove()
            self.started.set_exception(error)
            self.ended.set_result(None)
            raise
        _running.add(self)

    def call(self, ask: "Callable[[Broker], Awaitable[T]]") -> "Future[T]":
        """Run a coroutine with the broker in its event loop."""

        async def asked() -> T:
            if self._broker is None:
                raise BrokerStopped("the broker is down")
            return await ask(self._broker)

        return self.run(asked)

    def run(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Run a coroutine in the event loop. BrokerStopped or BrokerDied if the broker is gone or ends."""
        answer: Future[T] = _future()

        async def answered() -> None:
            try:
                answer.set_result(await work())
            except asyncio.CancelledError:
                answer.set_exception(self.why_gone())
            except BaseException as error:
                answer.set_exception(error)

        with self._changes:
            if self._loop is None or self._stop is None or self._stop.done():
                raise self.why_gone()
            self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(answered()))
        return answer

    def why_gone(self) -> BrokerStopped | BrokerDied:
        if self.error is not None:
            return BrokerDied(self.error, list(self.log))
        return BrokerStopped("the broker was stopped")

    def ask_to_stop(self, *, clean: bool = True) -> None:
        """Request a stop and return; `ended` is resolved later. A start in progress is aborted."""
        if self._pid != os.getpid():
            # This is a fork: it has no thread, and the directory belongs to the parent process.
            return
        with self._changes:
            self._stop_requested = True
            if self._loop is not None and self._stop is not None:
                self._loop.call_soon_threadsafe(_settle, self._stop, clean)

    def wait_ended(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise BrokerStuck("stopped", timeout_s, list(self.log))

    def result(self, answer: "Future[T]", timeout_s: float, what: str) -> T:
        """Wait for the result of a call; BrokerStuck after the timeout."""
        try:
            return answer.result(timeout_s)
        except TimeoutError:
            if answer.done():
                raise
            raise BrokerStuck(what, timeout_s, list(self.log)) from None

    # Called in the broker's event loop

    async def up(self) -> None:
        """Start the broker; a restart uses the same port."""
        # Imports the whole server; imported here so that only this thread waits for it.
        from barnabas.testing.node import make_broker

        broker = make_broker(self._plan, self._port)
        await broker.start()
        broker.failed.add_done_callback(self._broker_failed)
        self._port = broker.listeners[0].port
        self._broker = broker

    async def down(self, *, clean: bool) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.stop(clean=clean)

    def _run(self) -> None:
        me = threading.get_ident()
        TAILS.follow(me, self.log)
        try:
            from barnabas.testing.node import new_loop

            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._live())
        except BaseException as error:
            self._failed(error)
        finally:
            TAILS.leave(me)
            self._place.remove()
            _running.discard(self)
            if not self.started.done():
                self.started.set_exception(BrokerStopped("the broker was stopped before it was ready"))
            self.ended.set_result(None)

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        with self._changes:
            self._loop = loop
            self._stop = stop = loop.create_future()
            if self._stop_requested:
                stop.set_result(False)
        try:
            if await self._first_start(stop):
                await stop
        finally:
            with self._changes:
                # run() raises from here on.
                _settle(stop, False)
                self._loop = None
            await self.down(clean=stop.result())

    async def _first_start(self, stop: "asyncio.Future[bool]") -> bool:
        """Start for the first time. False if a stop was requested before the broker was ready."""
        starting = asyncio.ensure_future(self._up_with_topics())
        await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return False
        self.started.set_result(starting.result())
        return True

    async def _up_with_topics(self) -> str:
        from barnabas.testing.node import create_topics

        await self.up()
        assert self._broker is not None
        if self._plan.topics:
            await create_topics(self._broker, self._plan.topics)
        return self._broker.addresses[0]

    def _broker_failed(self, failed: "asyncio.Future[None]") -> None:
        error = failed.exception()
        if error is not None:
            self._failed(error)
            assert self._stop is not None
            _settle(self._stop, False)

    def _failed(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        if not self.started.done():
            note_log(error, list(self.log))
            self.started.set_exception(error)


def _future() -> "Future[T]":
    """Create a future that a waiter cannot cancel."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    return future


def _settle(future: "asyncio.Future[bool]", value: bool) -> None:
    if not future.done():
        future.set_result(value)


def _stop_all() -> None:
    """At exit, stop all brokers uncleanly, so that no directory is left behind."""
    running = list(_running)
    for one in running:
        one.ask_to_stop(clean=False)
    for one in running:
        if one._pid == os.getpid():
            # A stuck thread is a daemon and ends with the process.
            one._thread.join(EXIT_TIMEOUT_S)


atexit.register(_stop_all)
