"""A simulated machine: host name, clock, disk and at most one running program, which can die in every way.

    node = world.add_node("n1")
    node.start(program)     # async def program(node): ...
    node.kill()             # kill -9: no cleanup code runs; the page cache survives
    node.power_off()        # unsynced writes are lost, and peers are not notified
    node.start(program)     # the next incarnation, with what is left on the disk

A program gets its node, and takes clock, disk, executor and random numbers from it. Unhandled
errors end up in `failures`; they never fail the simulation.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal

from barnabas.sim.clock import SimClock
from barnabas.sim.disk import SimDisk
from barnabas.sim.executor import SimExecutor
from barnabas.sim.process import CURRENT, Failure, Process

if TYPE_CHECKING:
    from barnabas.sim.world import World

Program = Callable[["Node"], Awaitable[None]]
State = Literal["off", "running", "paused"]


class Node:
    """Created by World.add_node()."""

    def __init__(self, world: "World", name: str) -> None:
        self.world: Final = world
        self.name: Final = name
        self.clock: Final = SimClock(world.loop)
        self.disk = world.new_disk(f"{name}/disk", clock=self.clock)
        self.process: Process | None = None
        self.task: asyncio.Task[None] | None = None
        self.has_power = True
        self.incarnations = 0
        # Whether the last program has ended without being killed.
        self.ended_by_itself = False
        # Errors that programs did not handle, of all incarnations.
        self.failures: list[Failure] = []
        self._older: SimDisk | None = None
        world.network.add_host(name)

    def __repr__(self) -> str:
        return f"{self.name} ({self.state})"

    @property
    def state(self) -> State:
        if self.process is None:
            return "off"
        return "paused" if self.process.is_paused else "running"

    # The interface for programs

    @property
    def executor(self) -> SimExecutor:
        process = self._running()
        assert process.executor is not None
        return process.executor

    def dice(self, name: str) -> Random:
        """Random numbers for this incarnation."""
        return self.world.dice(f"{self.name}/{self.incarnations}/{name}")

    # Life

    def start(self, program: Program) -> None:
        """Switch the machine on if necessary, and start a program."""
        if self.process is not None:
            raise ValueError(f"{self.name} is {self.state}, cannot start another program")
        world = self.world
        if not self.has_power:
            self.has_power = True
            world.network.power_restored(self.name, world.is_on)
        self.incarnations += 1
        self.ended_by_itself = False
        process = Process(self.name, self.incarnations, self.clock, self.dice("cpu"))
        process.failures = self.failures
        process.executor = SimExecutor(world.loop, self.dice("executor"))
        self.process = process
        world.loop.add_process(process)
        context = copy_context()
        context.run(self._enter, process)
        coroutine = self._main(program)
        self.task = context.run(lambda: world.loop.create_task(coroutine, name=repr(process)))
        self.task.add_done_callback(self._exited, context=world.outside)
        world.history.event(self.name, "started", number=self.incarnations)

    def kill(self) -> None:
        """End the program at once, as kill -9 does. The machine and its page cache stay."""
        if not self._defers(self.kill):
            self._end("killed")

    def power_off(self) -> None:
        """Switch the machine off: writes that were not synced may be lost."""
        if not self.has_power or self._defers(self.power_off):
            return
        process = self.process
        if process is not None:
            self._bury(process)
        self.has_power = False
        self.world.network.power_failed(process, self.name)
        lost = self.disk.crash(self.dice("power"))
        self.world.history.event(self.name, "lost power", lost=lost)

    def pause(self, *, suspended: bool = False) -> None:
        """Stop the program as SIGSTOP does; with `suspended` the monotonic clock stops, too."""
        process = self._running()
        process.is_paused = True
        if suspended:
            self.clock.suspend()
        self.world.history.event(self.name, "suspended" if suspended else "paused")

    def resume(self) -> None:
        process = self._running()
        process.is_paused = False
        self.clock.resume()
        process.clock_changed()
        self.world.history.event(self.name, "resumed")

    def drift(self, ppm: int) -> None:
        """Let the machine's clocks run fast or slow."""
        self.clock.drift(ppm)
        if self.process is not None:
            self.process.clock_changed()
        self.world.history.event(self.name, "clock drifts", ppm=ppm)

    def terminate(self) -> None:
        """Ask the program to end, as SIGTERM does: its main task is cancelled."""
        self._running()
        assert self.task is not None
        self.task.cancel()

    # Disks

    def back_up_disk(self) -> None:
        """Remember the disk's current durable content for restore_disk()."""
        self._older = self.disk.branch(self.dice("backup"))
        self._older.crash(self.dice("backup"))

    def restore_disk(self) -> None:
        """Replace the disk by its backup, as an operator does with an old image."""
        self._need_off()
        assert self._older is not None, f"{self.name} has no backup"
        self.disk, self._older = self._older, None
        self.world.history.event(self.name, "got an old disk")

    def replace_disk(self) -> None:
        """Replace the disk by an empty one."""
        self._need_off()
        self.disk = self.world.new_disk(f"{self.name}/disk {self.incarnations}", clock=self.clock)
        self.world.history.event(self.name, "got an empty disk")

    # Internal

    def _enter(self, process: Process) -> None:
        CURRENT.set(process)
        self.world.network.hosts.enter(self.name)

    async def _main(self, program: Program) -> None:
        await program(self)

    def _defers(self, end: Callable[[], None]) -> bool:
        """Whether the program itself is running, so that it can only end at its next await."""
        process = self.process
        if process is None or CURRENT.get() is not process:
            return False
        process.is_paused = True
        self.world.loop.call_outside(0, self._end_later, process, end)
        return True

    def _end_later(self, process: Process, end: Callable[[], None]) -> None:
        if self.process is process:
            end()

    def _exited(self, task: asyncio.Task[Any]) -> None:
        """The main task has ended: the process exits, and leaves the rest of its tasks behind."""
        if task is not self.task or self.process is None:
            return
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.failures.append(Failure(self.world.loop.time_ns(), f"{task.get_name()} exited", error))
        self.ended_by_itself = True
        self._end("exited" if error is None else f"exited with {type(error).__name__}")

    def _end(self, how: str) -> None:
        process = self._running()
        under_way = self._bury(process)
        self.disk.process_ended(under_way, self.dice("end"))
        self.world.network.process_ended(process)
        self.world.history.event(self.name, how)

    def _bury(self, process: Process) -> list[Callable[[], object]]:
        assert process.executor is not None
        under_way = process.executor.kill()
        self.world.loop.kill_process(process)
        self.world.graves.append(process)
        self.clock.resume()
        self.process = None
        return under_way

    def _running(self) -> Process:
        if self.process is None:
            raise ValueError(f"{self.name} runs no program")
        return self.process

    def _need_off(self) -> None:
        if self.process is not None:
            raise ValueError(f"{self.name} is {self.state}; its disk can only be replaced when it is off")
