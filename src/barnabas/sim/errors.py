"""How a simulated run ends when it does not end well, and where its tasks were waiting then."""

import asyncio
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final

# A message that names every task of a large cluster helps nobody.
TASKS_NAMED_MAX: Final = 50


class SimulationError(Exception):
    """The simulated run cannot go on, or must not count as a success."""


class SimulationStuck(SimulationError):
    """Somebody waits, and nothing is left that could ever happen."""


class SimulationTooLong(SimulationError):
    """The run took more virtual time, or more turns of the loop, than it was given."""


class SimulationFailed(SimulationError):
    """A task or a callback failed, and nobody looked."""


def waiting(tasks: Iterable[asyncio.Task[Any]]) -> str:
    """One line for each task that is not done: its name, and the calls it is in the middle of."""
    lines = [f"  {task.get_name()}: {_where(task)}" for task in tasks if not task.done()]
    left_out = len(lines) - TASKS_NAMED_MAX
    if left_out > 0:
        lines[TASKS_NAMED_MAX:] = [f"  and {left_out} more"]
    return "\n".join(lines) or "  no task"


def _where(task: asyncio.Task[Any]) -> str:
    """From the outermost coroutine to the innermost. Task.get_stack() knows the outermost only."""
    calls: list[str] = []
    inner: object = task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is not None:
            file = "/".join(PurePath(frame.f_code.co_filename).parts[-2:])
            calls.append(f"{frame.f_code.co_name} ({file}:{frame.f_lineno})")
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return " > ".join(calls) or "not started"
