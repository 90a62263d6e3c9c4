"""An asyncio event loop with virtual time: nothing waits, and the seed decides the order of events.

It is asyncio's own selector loop, with its own transports, servers and streams. Only the layer below is
replaced: the selector advances virtual time instead of waiting (selector.py), sockets are simulated
(network.py), and blocking work runs on the loop itself (executor.py).

Programs on simulated machines (process.py) share the loop, but each has its own ready queue, timers, CPU time
and clock: within a process callbacks run in the order that asyncio guarantees, between processes in any.

A run ends when the story is done, or with SimulationStuck, SimulationTooLong or SimulationFailed. Each takes
little real time.
"""

import asyncio
import gc
import heapq
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from barnabas.sim.errors import SimulationFailed, SimulationStuck, SimulationTooLong, waiting
from barnabas.sim.executor import SimExecutor
from barnabas.sim.network import SimNetwork
from barnabas.sim.process import CURRENT, Failure, Process
from barnabas.sim.selector import SimSelector

T = TypeVar("T")


class SimTask(asyncio.Task[T]):
    """A numbered task, so that a set of them has the same order in every run.

    asyncio uses sets of tasks: a TaskGroup cancels its children in set order. An ordinary task is hashed by
    its address, so the order would change from run to run, and a failing seed could not be replayed.
    """

    def __init__(
        self, coro: Coroutine[Any, Any, T], *, number: int, process: Process | None, **rest: Any
    ) -> None:
        # First, because the constructor of a task adds it to a set.
        self.number = number
        self.process = process
        super().__init__(coro, **rest)

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[T]):
    """A numbered future, for the same reason."""

    def __init__(self, *, number: int, process: Process | None, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.process = process
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

    # Of asyncio's base class, for the callbacks and timers outside of any process.
    _ready: deque[Any]
    _scheduled: list[Any]
    _timer_cancelled_count: int
    _stopping: bool
    _process_events: Callable[[Any], None]
    _asyncgens: WeakSet[Any]

    def __init__(self, rng: Random | None = None) -> None:
        rng = rng or Random(0)
        # In nanoseconds: a float would round, and a wait of 300 ms could end after 299.
        self._now_ns = 0
        self._numbers = 0
        self._thread: int | None = None
        self._unretrieved: list[tuple[str, BaseException | None]] = []
        self._open: WeakValueDictionary[int, asyncio.Transport] = WeakValueDictionary()
        self._generators: WeakKeyDictionary[Any, Process | None] = WeakKeyDictionary()
        self._processes: list[Process] = []
        # The context of callbacks that belong to no process.
        self.outside = Context()
        self._steps = blake2b(digest_size=16)
        self.turns = 0
        self.turns_max = TURNS_MAX
        self.until_s = RUN_S_MAX
        self.selector: Final = SimSelector(Random(rng.random()), self._pass_time)
        self.network = SimNetwork(self, self.selector, Random(rng.random()))
        self.executor = SimExecutor(self, Random(rng.random()))
        # Decides between processes that can run at the same time.
        self._order = Random(rng.random())
        super().__init__(self.selector)
        self.set_task_factory(cast(Any, self._make_task))

    # Time

    def time(self) -> float:
        """The monotonic time of the running process's machine."""
        process = CURRENT.get()
        return (self._now_ns if process is None else process.clock.ticks_ns()) / 1_000_000_000

    def time_ns(self) -> int:
        """True time: nanoseconds since the start of the world."""
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
        self._pass_to(self._now_ns + round(seconds * 1_000_000_000))

    def _pass_to(self, then_ns: int) -> None:
        if then_ns > self.until_s * 1_000_000_000:
            raise SimulationTooLong(f"limit of {self.until_s} s exceeded {self._waiting()}")
        self._now_ns = then_ns

    def _waiting(self) -> str:
        return f"at {self.time()} s; waiting:\n{waiting(self._tasks())}"

    def _tasks(self) -> list[asyncio.Task[Any]]:
        return sorted(asyncio.all_tasks(self), key=number_of)

    # Processes

    def add_process(self, process: Process) -> None:
        self._processes.append(process)

    def kill_process(self, process: Process) -> None:
        """Stop a process without running any of its code, as kill -9 does."""
        self._processes.remove(process)
        tasks = [task for task in self._tasks() if isinstance(task, SimTask) and task.process is process]
        # A killed process does not finish its asynchronous generators either, not even when the loop closes.
        generators = [one for one in self._asyncgens if self._generators.get(one) is process]
        for one in generators:
            self._asyncgens.discard(one)
        process.bury(tasks, [*generators, *self.selector.unregister_all(process)])

    def call_outside(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Schedule a callback of the network or the kernel, in true time. It survives every process."""
        return self.call_outside_at(self._now_ns / 1_000_000_000 + delay_s, callback, *args)

    def call_outside_at(
        self, true_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        return super().call_at(true_s, callback, *args, context=self.outside)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        process = _owner(context)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        process.add_timer(timer)
        return timer

    def _call_soon(self, callback: Any, args: Any, context: Any) -> asyncio.Handle:
        process = _owner(context)
        if process is None:
            return cast(asyncio.Handle, super()._call_soon(callback, args, context))  # type: ignore[misc]
        handle = asyncio.Handle(callback, args, self, context)
        process.add(handle)
        return handle

    def _add_callback(self, handle: Any) -> None:
        process = _owner(handle._context)
        if process is None:
            super()._add_callback(handle)  # type: ignore[misc]
        elif not handle.cancelled():
            process.add(handle)

    def _timer_handle_cancelled(self, handle: Any) -> None:
        process = _owner(handle._context)
        if process is None:
            super()._timer_handle_cancelled(handle)  # type: ignore[misc]
        elif handle._scheduled:
            process.timer_was_cancelled()

    def _run_once(self) -> None:
        if not self._processes:
            super()._run_once()  # type: ignore[misc]
            return
        at_ns, process = self._next()
        if at_ns is None:
            self._pass_time(None)
        else:
            self._pass_time(0)
            self._pass_to(max(at_ns, self._now_ns))
            if process is None:
                self._run_outside()
            else:
                self._run_in(process)

    def _next(self) -> tuple[int | None, Process | None]:
        """The process that can run first, and when; None stands for code outside of processes."""
        soonest = self._due_outside_ns()
        found: list[Process | None] = [] if soonest is None else [None]
        for process in self._processes:
            due_ns = self._due_ns(process)
            if due_ns is None:
                continue
            if soonest is None or due_ns < soonest:
                soonest, found = due_ns, [process]
            elif due_ns == soonest:
                found.append(process)
        if soonest is None:
            return None, None
        return soonest, found[0] if len(found) == 1 else self._order.choice(found)

    def _due_outside_ns(self) -> int | None:
        if self._ready or self._stopping or self.selector.has_ready(None):
            return self._now_ns
        scheduled = self._scheduled
        while scheduled and scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)._scheduled = False
        return round(scheduled[0].when() * 1_000_000_000) if scheduled else None

    def _due_ns(self, process: Process) -> int | None:
        if process.is_paused:
            return None
        if process.ready or self.selector.has_ready(process):
            return max(self._now_ns, process.busy_until_ns)
        timer_ns = process.next_timer_ns()
        return None if timer_ns is None else max(self._now_ns, process.busy_until_ns, timer_ns)

    def _run_outside(self) -> None:
        self._process_events(self.selector.ready_of(None))
        scheduled = self._scheduled
        while scheduled and round(scheduled[0].when() * 1_000_000_000) <= self._now_ns:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if timer.cancelled():
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(timer)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _run_in(self, process: Process) -> None:
        """Run one callback of a process, after beginning an iteration of its loop if the last one is done."""
        if not process.turn:
            self._process_events(self.selector.ready_of(process))
            process.take_due_timers(self._now_ns)
            process.turn = len(process.ready)
        while process.turn:
            process.turn -= 1
            handle = process.ready.popleft()
            if not handle.cancelled():
                self._trace(process)
                handle._run()
                process.use_cpu(self._now_ns)
                break

    def _trace(self, process: Process) -> None:
        self._steps.update(b"%d %s;" % (self._now_ns, process.label))

    def digest(self) -> str:
        """The digest of all steps of processes so far: equal for equal runs."""
        return self._steps.hexdigest()

    # Tasks and their errors

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(number=self._number(), process=CURRENT.get(), loop=self)

    def _asyncgen_firstiter_hook(self, agen: Any) -> None:
        self._generators[agen] = CURRENT.get()
        super()._asyncgen_firstiter_hook(agen)  # type: ignore[misc]

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, T], **rest: Any
    ) -> SimTask[T]:
        number = self._number()
        # asyncio's own numbers continue from run to run.
        rest.setdefault("name", f"sim-{number}")
        return SimTask(coro, number=number, process=_owner(rest.get("context")), loop=loop, **rest)

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
        process = _process_of(context)
        if process is not None:
            # A machine's failure is a fact about the run, for the checkers.
            process.failures.append(Failure(self._now_ns, text, error))
            return
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
        process = CURRENT.get()
        own = self.executor if process is None or process.executor is None else process.executor
        return own.submit(partial(func, *args))

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if self._thread not in (None, threading.get_ident()):
            raise RuntimeError("called from another thread, which the simulated world does not support")
        return self.call_soon(callback, *args, context=context)


def _owner(context: Context | None) -> Process | None:
    """The process that a callback with this context belongs to."""
    return CURRENT.get() if context is None else context.get(CURRENT)


def _process_of(context: dict[str, Any]) -> Process | None:
    """The process in which an unhandled error occurred, from the arguments of the exception handler."""
    handle = context.get("handle")
    if handle is not None:
        return _owner(handle._context)
    about = context.get("task") or context.get("future")
    return about.process if isinstance(about, (SimTask, SimFuture)) else CURRENT.get()


# Whether a steady_garbage() is in use. Simulations never run in threads.
_is_steady = False


@contextmanager
def steady_garbage() -> Iterator[None]:
    """Collect only when gc.collect() is called, and only objects created inside. Nested uses change nothing.

    A collection has effects: a forgotten task reports its error, a forgotten stream closes its connection.
    Python collects depending on all allocations since the start of the process, so a run would depend on
    earlier tests. Here the run itself determines the times.
    """
    global _is_steady
    if _is_steady:
        yield
        return
    _is_steady = True
    was_enabled = gc.isenabled()
    gc.disable()
    # Existing objects are irrelevant for this run, and would slow down every collection.
    gc.freeze()
    try:
        yield
    finally:
        _is_steady = False
        gc.unfreeze()
        if was_enabled:
            gc.enable()
