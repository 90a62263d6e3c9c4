"""One simulated world: loop, network, disk, clock, executor and random numbers, all from one seed.

The real broker runs in it unchanged:

    with World(seed=7) as world:
        ports = Ports(fs=world.disk, clock=world.clock, executor=world.executor, rng=world.rng, ...)
        world.run(story(Broker(settings, ports, ...)))

Errors carry the seed and a command that replays the run.
"""

import gc
import logging
import os
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import Context, ContextVar
from random import Random
from types import TracebackType
from typing import Any, Final, TypeVar

from barnabas.base.faults import REPORTS
from barnabas.sim.clock import SimClock
from barnabas.sim.disk import SimDisk
from barnabas.sim.errors import SimulationFailed
from barnabas.sim.faults.holds import Holds
from barnabas.sim.history import History
from barnabas.sim.loop import SimLoop, steady_garbage
from barnabas.sim.node import Node
from barnabas.sim.process import Process

T = TypeVar("T")

# Default limit of virtual time for a story.
UNTIL_MS: Final = 600_000
# Number of recent network events that are shown when a run fails.
EVENTS_SHOWN: Final = 10


class World:
    """Use it in a `with`: leaving it cancels all tasks and closes the loop."""

    def __init__(self, seed: int = 0, *, hosts: Iterable[str] = ()) -> None:
        self.seed = seed
        # For the code under test. Each component has its own generator, so that one more random number on
        # the network does not change the disk.
        self.rng = self.dice("code")
        # Whether bugs may be reported, because the test causes them on purpose.
        self.expects_faults = False
        self.loop = SimLoop(self.dice("loop"))
        self.network = self.loop.network
        self.executor = self.loop.executor
        self.clock = SimClock(self.loop)
        self.disk = self.new_disk("disk")
        self.nodes: dict[str, Node] = {}
        self.holds = Holds()
        # While the world exists, collections look only at its own objects.
        self._garbage = ExitStack()
        self.history = History(self.loop.time_ns)
        # Killed processes, which are freed when nothing can notice any more.
        self.graves: list[Process] = []
        for host in hosts:
            self.network.add_host(host)

    @property
    def outside(self) -> Context:
        """The context of code that belongs to no process."""
        return self.loop.outside

    def is_on(self, host: str) -> bool:
        """Whether a host has power; hosts without a node always have."""
        node = self.nodes.get(host)
        return node is None or node.has_power

    def add_node(self, name: str) -> Node:
        """Add a machine with its own clock and disk. It runs nothing until its start()."""
        node = self.nodes[name] = Node(self, name)
        return node

    def dice(self, name: str) -> Random:
        """A random number generator derived from the seed and a name."""
        # A string, because random.Random hashes strings the same way in every process.
        return Random(f"{self.seed}/{name}")

    def new_disk(self, name: str, *, capacity: int | None = None, clock: SimClock | None = None) -> SimDisk:
        """Create another disk, for another broker."""
        return SimDisk(self.dice(name), clock=clock or self.clock, capacity=capacity)

    def on(self, host: str) -> AbstractContextManager[None]:
        """Run the code inside, and every task that it starts, on this host."""
        return self.network.at(host)

    def run(self, story: Coroutine[Any, Any, T], *, until_ms: float = UNTIL_MS) -> T:
        """Run a story to its end. Tasks that it leaves behind continue in the next run."""
        self.loop.until_s = self.loop.time() + until_ms / 1000
        faults = REPORTS.total
        try:
            result = self.loop.run_until_complete(story)
            if REPORTS.total != faults and not (self.expects_faults or _faults_expected.get()):
                # A broker continues after a bug, but a test must fail.
                raise SimulationFailed(REPORTS.latest)
            return result
        except BaseException as error:
            self._explain(error)
            raise

    def replay_command(self) -> str:
        """The command that replays this run, for the message of a failed assertion."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        hashing = os.environ.get("PYTHONHASHSEED", "random")
        # The order of a set of strings depends on the hash seed, which cannot be determined afterwards.
        fixed = f"PYTHONHASHSEED={hashing} " if hashing != "random" else ""
        unsure = (
            ""
            if fixed
            else " (exact unless the order of a set of strings matters: PYTHONHASHSEED is not set)"
        )
        return f"seed {self.seed}: {fixed}{os.path.basename(sys.executable)} -m pytest '{test}'{unsure}"

    def close(self) -> None:
        for node in self.nodes.values():
            if node.process is not None:
                node.kill()
        self.loop.close()
        with _ignoring_the_dead():
            for node in self.nodes.values():
                node.task = None
                for failure in node.failures:
                    _forget_frames(failure.error)
            for process in self.graves:
                process.forget()
            self.graves.clear()
            gc.collect()

    def __enter__(self) -> "World":
        self._garbage.enter_context(steady_garbage())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._garbage:
            self._close(error)

    def _close(self, error: BaseException | None) -> None:
        if error is None:
            try:
                self.close()
            except BaseException as at_the_end:
                self._explain(at_the_end)
                raise
            return
        self._explain(error)
        try:
            self.close()
        except Exception as at_the_end:  # The first error matters; this one becomes a note.
            error.add_note(f"and then, while closing: {at_the_end!r}")

    def _explain(self, error: BaseException) -> None:
        command = self.replay_command()
        if command in getattr(error, "__notes__", []):
            return
        error.add_note(command)
        for event in list(self.network.history)[-EVENTS_SHOWN:]:
            error.add_note(f"{event.at_s:.6f} s: {event.source} > {event.target}: {event.what}")


def _forget_frames(error: BaseException | None) -> None:
    """Drop the tracebacks, which keep the program's frames alive."""
    errors: list[BaseException | None] = [error]
    seen: set[int] = set()
    while errors:
        one = errors.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = None
        errors += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            errors += one.exceptions


@contextmanager
def _ignoring_the_dead() -> Iterator[None]:
    """Ignore errors and logs of killed programs: freeing them runs their cleanup code, without a loop."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        sys.unraisablehook = hook


_faults_expected: Final = ContextVar("faults expected", default=False)


@contextmanager
def expecting_faults() -> Iterator[None]:
    """Allow reports of bugs in runs started inside, because the test causes them on purpose."""
    before = _faults_expected.set(True)
    try:
        yield
    finally:
        _faults_expected.reset(before)


def run_sim(
    story: Callable[[World], Coroutine[Any, Any, T]], seed: int = 0, *, until_ms: float = UNTIL_MS
) -> T:
    """Run a story in a new world."""
    with World(seed) as world:
        return world.run(story(world), until_ms=until_ms)
