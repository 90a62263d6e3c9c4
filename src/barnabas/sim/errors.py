"""Failures of simulated runs, and the positions of the waiting tasks."""

import asyncio
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final

# Maximum number of tasks in a message.
TASKS_NAMED_MAX: Final = 50


class SimulationError(Exception):
    """The simulated run cannot continue, or must not count as a success."""


class SimulationStuck(SimulationError):
    """Deadlock: tasks wait, but no event is scheduled."""


class SimulationTooLong(SimulationError):
    """The run exceeded its limit of virtual time or loop iterations."""


class SimulationFailed(SimulationError):
    """An error of a task or a callback was never retrieved."""


def waiting(tasks: Iterable[asyncio.Task[Any]]) -> str:
    """One line per unfinished task: its name and call stack."""
    lines = [f"  {task.get_name()}: {_stack_of(task)}" for task in tasks if not task.done()]
    left_out = len(lines) - TASKS_NAMED_MAX
    if left_out > 0:
        lines[TASKS_NAMED_MAX:] = [f"  and {left_out} more"]
    return "\n".join(lines) or "  no task"


def _stack_of(task: asyncio.Task[Any]) -> str:
    """The stack from the outermost coroutine to the innermost. Task.get_stack() only has the outermost."""
    calls: list[str] = []
    inner: object = task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is not None:
            file = "/".join(PurePath(frame.f_code.co_filename).parts[-2:])
            calls.append(f"{frame.f_code.co_name} ({file}:{frame.f_lineno})")
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return " > ".join(calls) or "not started"
