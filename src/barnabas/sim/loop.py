"""An asyncio event loop with virtual time: nothing waits, and the seed decides the order of events.

It is asyncio's own selector loop, with its own transports, servers and streams. Only the layer below is
replaced: the selector advances virtual time instead of waiting (selector.py), sockets are simulated
(network.py), and blocking work runs on the loop itself (executor.py).

A run ends when the story is done, or with SimulationStuck, SimulationTooLong or SimulationFailed. Each takes
little real time.
"""

import asyncio
import gc
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, Final, TypeVar, cast
from weakref import WeakValueDictionary

from barnabas.sim.errors import SimulationFailed, SimulationStuck, SimulationTooLong, waiting
from barnabas.sim.executor import SimExecutor
from barnabas.sim.network import SimNetwork
from barnabas.sim.selector import SimSelector

T = TypeVar("T")


class SimTask(asyncio.Task[T]):
    """A numbered task, so that a set of them has the same order in every run.

    asyncio uses sets of tasks: a TaskGroup cancels its children in set order. An ordinary task is hashed by
    its address, so the order would change from run to run, and a failing seed could not be replayed.
    """

    def __init__(self, coro: Coroutine[Any, Any, T], *, number: int, **rest: Any) -> None:
        # First, because the constructor of a task adds it to a set.
        self.number = number
        super().__init__(coro, **rest)

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[T]):
    """A numbered future, for the same reason."""

    def __init__(self, *, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


def number_of(task: asyncio.Task[Any]) -> int:
    return task.number if isinstance(task, SimTask) else -1


TURNS_MAX: Final = 2_000_000
# Maximum virtual time of a run.
RUN_S_MAX: Final = 3600.0
# Virtual time and iterations for cancelled tasks to clean up, and how often they may start new ones.
CLEANUP_S_MAX: Final = 600.0
CLEANUP_TURNS_MAX: Final = 100_000
CLEANUP_ROUNDS_MAX: Final = 10
# Maximum number of unretrieved errors in one message.
ERRORS_SHOWN_MAX: Final = 5
# Loop iterations between garbage collections.
COLLECT_TURNS: Final = 20_000


class SimLoop(asyncio.SelectorEventLoop):
    """The loop of one simulated world. `rng` makes all random decisions."""

    def __init__(self, rng: Random | None = None) -> None:
        rng = rng or Random(0)
        # In nanoseconds: a float would round, and a wait of 300 ms could end after 299.
        self._now_ns = 0
        self._numbers = 0
        self._thread: int | None = None
        self._unretrieved: list[tuple[str, BaseException | None]] = []
        self._open: WeakValueDictionary[int, asyncio.Transport] = WeakValueDictionary()
        self.turns = 0
        self.turns_max = TURNS_MAX
        self.until_s = RUN_S_MAX
        selector = SimSelector(Random(rng.random()), self._pass_time)
        self.network = SimNetwork(self, selector, Random(rng.random()))
        self.executor = SimExecutor(self, Random(rng.random()))
        super().__init__(selector)
        self.set_task_factory(cast(Any, self._make_task))

    # Time

    def time(self) -> float:
        return self._now_ns / 1_000_000_000

    def time_ns(self) -> int:
        """Nanoseconds since the start of the world."""
        return self._now_ns

    def _pass_time(self, seconds: float | None) -> None:
        """Begin an iteration. The selector calls this instead of waiting."""
        self.turns += 1
        if self._unretrieved:
            raise self._failure()
        if self.turns > self.turns_max:
            raise SimulationTooLong(f"limit of {self.turns_max} loop iterations exceeded {self._waiting()}")
        if self.turns % COLLECT_TURNS == 0:
            gc.collect()
        if seconds is None:
            raise SimulationStuck(f"deadlock: no event is scheduled {self._waiting()}")
        then_ns = self._now_ns + round(seconds * 1_000_000_000)
        if then_ns > self.until_s * 1_000_000_000:
            raise SimulationTooLong(f"limit of {self.until_s} s exceeded {self._waiting()}")
        self._now_ns = then_ns

    def _waiting(self) -> str:
        return f"at {self.time()} s; waiting:\n{waiting(self._tasks())}"

    def _tasks(self) -> list[asyncio.Task[Any]]:
        return sorted(asyncio.all_tasks(self), key=number_of)

    # Tasks and their errors

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(number=self._number(), loop=self)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T], **rest: Any
    ) -> SimTask[T]:
        number = self._number()
        # asyncio's own numbers continue from run to run.
        rest.setdefault("name", f"sim-{number}")
        return SimTask(coro, number=number, loop=loop, **rest)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Collect an unhandled error. The run fails with it in the next iteration."""
        error = context.get("exception")
        if isinstance(error, asyncio.CancelledError):
            # In Python 3.11 the cancellation of a stream server's task escapes from a callback.
            return
        about = context.get("task") or context.get("future") or ""
        text = f"{context.get('message')} {about}"
        self._unretrieved.append((f"{text}: {error!r}" if error is not None else text, error))

    def _failure(self) -> SimulationFailed:
        unretrieved, self._unretrieved = self._unretrieved, []
        texts = [text for text, _ in unretrieved[:ERRORS_SHOWN_MAX]]
        if len(unretrieved) > len(texts):
            texts.append(f"and {len(unretrieved) - len(texts)} more")
        failure = SimulationFailed("; ".join(texts))
        failure.__cause__ = next((error for _, error in unretrieved if error is not None), None)
        return failure

    # Running

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        self._thread = threading.get_ident()
        with steady_garbage():
            try:
                result = super().run_until_complete(future)
            except BaseException as error:
                gc.collect()
                for text, _ in self._unretrieved:
                    error.add_note(f"also not retrieved: {text}")
                self._unretrieved.clear()
                raise
            # Collecting forgotten tasks reports their errors.
            gc.collect()
        if self._unretrieved:
            raise self._failure()
        return result

    def close(self) -> None:
        """Cancel all tasks, abort all connections, and wait for their end."""
        if not self.is_closed():
            try:
                self._clean_up()
            finally:
                super().close()

    def _clean_up(self) -> None:
        self.until_s = self.time() + CLEANUP_S_MAX
        self.turns_max = self.turns + CLEANUP_TURNS_MAX
        self.executor.release()
        for _ in range(CLEANUP_ROUNDS_MAX):
            tasks = self._tasks()
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.run_until_complete(self._await_end(tasks))
        self.run_until_complete(self.shutdown_asyncgens())
        for _, transport in sorted(self._open.items()):
            transport.abort()
        self.run_until_complete(asyncio.sleep(0))

    async def _await_end(self, tasks: list[asyncio.Task[Any]]) -> None:
        for task, end in zip(tasks, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                self.call_exception_handler({"message": "failed at the end", "exception": end, "task": task})

    # Connections

    async def create_server(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | Iterable[str] | None = None,
        port: int | None = None,
        *,
        family: int = socket.AF_UNSPEC,
        flags: int = socket.AI_PASSIVE,
        sock: Any = None,
        reuse_address: bool | None = None,
        reuse_port: bool | None = None,
        **rest: Any,
    ) -> asyncio.Server:
        """`reuse_address` has no effect: an address is free as soon as its server is closed."""
        if reuse_port:
            raise NotImplementedError("two servers on one port")
        factory = partial(self._make_protocol, protocol_factory)
        if sock is not None or (host is None and port is None):
            return await super().create_server(factory, sock=sock, **rest)
        names = [host] if host is None or isinstance(host, str) else list(host)
        listener = self.network.listen(names, int(port or 0), family)
        try:
            return await super().create_server(factory, sock=cast(Any, listener), **rest)
        except BaseException:
            listener.close()
            raise

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        family: int = socket.AF_UNSPEC,
        sock: Any = None,
        server_hostname: str | None = None,
        **rest: Any,
    ) -> tuple[asyncio.Transport, Any]:
        for option in ("proto", "flags", "local_addr", "happy_eyeballs_delay", "interleave"):
            if rest.pop(option, None):
                raise NotImplementedError(f"create_connection({option}=...)")
        if sock is None and host is not None:
            sock = await self.network.connect(host, int(port or 0), family)
            if ssl and server_hostname is None:
                server_hostname = host
        return await super().create_connection(
            protocol_factory, sock=sock, ssl=ssl, server_hostname=server_hostname, **rest
        )

    async def getaddrinfo(self, host: Any, port: Any, *, family: int = 0, **_rest: Any) -> Any:
        return [
            (found.family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", found.name())
            for found in self.network.hosts.resolve(host, int(port or 0), family)
        ]

    def _make_protocol(self, factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol:
        """Report errors of the protocol factory, which asyncio hides outside of debug mode."""
        try:
            return factory()
        except BaseException as error:
            self.call_exception_handler({"message": "no protocol for a connection", "exception": error})
            raise

    def _make_socket_transport(self, *args: Any, **rest: Any) -> asyncio.Transport:
        """asyncio's transport on a simulated socket. It hides the socket, which has no real descriptor."""
        transport = super()._make_socket_transport(*args, **rest)  # type: ignore[misc]
        transport._extra["socket"] = None
        self._open[transport._sock_fd] = transport
        return cast(asyncio.Transport, transport)

    # No threads

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        if executor is not None:
            raise RuntimeError(f"{executor!r} uses threads, which the simulated world does not support")
        return self.executor.submit(partial(func, *args))

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if self._thread not in (None, threading.get_ident()):
            raise RuntimeError("called from another thread, which the simulated world does not support")
        return self.call_soon(callback, *args, context=context)


@contextmanager
def steady_garbage() -> Iterator[None]:
    """Collect only when gc.collect() is called, and only objects created inside.

    A collection has effects: a forgotten task reports its error, a forgotten stream closes its connection.
    Python collects depending on all allocations since the start of the process, so a run would depend on
    earlier tests. Here the run itself determines the times.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    # Existing objects are irrelevant for this run, and would slow down every collection.
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
