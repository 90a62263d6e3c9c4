"""A thread with an event loop and one broker in it, seen from the threads that use it.

The broker never shares the caller's loop, not even where the caller has one: a client that blocks (confluent-
kafka, Spark, our own blocking ones) would wait in that loop for a broker that cannot run until it returns.
The caller waits for futures, blocking or awaiting as it likes.

The thread knows nothing of the object that the user holds, so that a dropped one can be noticed. It is a
daemon: a process that ends does not wait for it, but stops it on its way out.
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
from barnabas.testing.plans import Plan

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

T = TypeVar("T")

# The broker's own limits for a clean stop are 5 s for the controller and 5 s for clients.
STOP_TIMEOUT_S: Final = 30.0
# A start may wait three times a minute for its controller, and a call half a minute.
START_TIMEOUT_S: Final = 200.0
CALL_TIMEOUT_S: Final = 60.0
# At the end of a process nobody wants to wait for long.
EXIT_TIMEOUT_S: Final = 5.0

_running: "set[NodeThread]" = set()


class NodeThread:
    """start(), then call() until ask_to_stop(). All of them are for other threads than its own."""

    def __init__(self, plan: Plan, place: Place, *, name: str) -> None:
        # Done when clients are served, with the address, or with what went wrong.
        self.started: Final[Future[str]] = _future()
        # Done when there is nothing left of it.
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
        self._told_to_stop = False
        # Reentrant, because the collector may run a finalizer that asks to stop wherever it likes.
        self._changes = threading.RLock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # What other threads do

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            # The process may have no more threads.
            self._place.remove()
            self.started.set_exception(error)
            self.ended.set_result(None)
            raise
        _running.add(self)

    def call(self, ask: "Callable[[Broker], Awaitable[T]]") -> "Future[T]":
        """Do something with the broker, in its loop."""

        async def asked() -> T:
            if self._broker is None:
                raise BrokerStopped("the broker is down")
            return await ask(self._broker)

        return self.run(asked)

    def run(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Do something in its loop. BrokerStopped or BrokerDied when it is over, or ends meanwhile."""
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
        """Have it stop soon; `ended` tells when. One that has not started yet gives that up."""
        if self._pid != os.getpid():
            # We are a copy of it in a fork. The thread is not here, and the directory is not ours.
            return
        with self._changes:
            self._told_to_stop = True
            if self._loop is not None and self._stop is not None:
                self._loop.call_soon_threadsafe(_settle, self._stop, clean)

    def wait_ended(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise BrokerStuck("stopped", timeout_s, list(self.log))

    def result(self, answer: "Future[T]", timeout_s: float, what: str) -> T:
        """What comes of something that it was asked; BrokerStuck if nothing does."""
        try:
            return answer.result(timeout_s)
        except TimeoutError:
            if answer.done():
                raise
            raise BrokerStuck(what, timeout_s, list(self.log)) from None

    # What is done in its own loop

    async def up(self) -> None:
        """Start the broker; every time on the port that it had the first time."""
        # It brings the whole server along, and is imported here so that only this thread waits for it.
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
                self.started.set_exception(BrokerStopped("the broker was stopped before it served"))
            self.ended.set_result(None)

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        with self._changes:
            self._loop = loop
            self._stop = stop = loop.create_future()
            if self._told_to_stop:
                stop.set_result(False)
        try:
            if await self._is_begun(stop):
                await stop
        finally:
            with self._changes:
                # From here on nobody can call.
                _settle(stop, False)
                self._loop = None
            await self.down(clean=stop.result())

    async def _is_begun(self, stop: "asyncio.Future[bool]") -> bool:
        """Start for the first time. False if it was told to stop before clients were served."""
        beginning = asyncio.ensure_future(self._begin())
        await asyncio.wait((beginning, stop), return_when=asyncio.FIRST_COMPLETED)
        if not beginning.done():
            beginning.cancel()
            await asyncio.gather(beginning, return_exceptions=True)
            return False
        self.started.set_result(beginning.result())
        return True

    async def _begin(self) -> str:
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
    """A future that whoever awaits it cannot cancel for the others."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    return future


def _settle(future: "asyncio.Future[bool]", value: bool) -> None:
    if not future.done():
        future.set_result(value)


def _stop_all() -> None:
    """The process ends: stop what still runs, without ceremony, so that no directory is left behind."""
    running = list(_running)
    for one in running:
        one.ask_to_stop(clean=False)
    for one in running:
        if one._pid == os.getpid():
            # Whoever is stuck is a daemon, and goes with the process.
            one._thread.join(EXIT_TIMEOUT_S)


atexit.register(_stop_all)
