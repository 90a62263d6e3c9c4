"""Reports of exceptions that nobody foresaw: one line each, with the stack only now and then.

A mistake of ours that a client can provoke must not fill the disk with stacks. The first fault of a place in
the code is logged with its stack, later ones within a minute are counted, and the next line tells the count.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import PurePath
from traceback import extract_tb
from typing import Final

# How long after a fault others of the same place are only counted.
QUIET_S: Final = 60.0
# Places that are remembered. There are far fewer that can fail.
PLACES_MAX: Final = 256


class FaultReports:
    """Which places have failed, and when that was logged."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or _now
        # How many there were, and the last one in words.
        self.total = 0
        self.latest = ""
        # When the last line of a place was written, and how many faults were left out since.
        self._places: dict[tuple[str, str, str], tuple[float, int]] = {}

    def report(self, logger: logging.Logger, error: BaseException, event: str, *args: object) -> None:
        """`event` is what failed, a template as for any line of the log."""
        where, now = place_of(error), self._now()
        if not isinstance(error, OSError):
            # A disk or a network that fails is no mistake in the program.
            self.total += 1
            self.latest = f"{event} where={where} error={error!r}"
        key = (event, type(error).__name__, where)
        last, left_out = self._places.pop(key, (None, 0))
        if last is not None and 0 <= now - last < QUIET_S:
            self._places[key] = (last, left_out + 1)
            return
        if len(self._places) >= PLACES_MAX:
            del self._places[next(iter(self._places))]
        self._places[key] = (now, 0)
        template = f"{event} where=%s error=%r repeated=%d"
        # An error of the system says itself what is wrong.
        stack = None if isinstance(error, OSError) else error
        logger.error(template, *args, where, error, left_out, exc_info=stack)


def place_of(error: BaseException) -> str:
    """FILE:LINE of the innermost frame."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}"


def _now() -> float:
    """The loop's time, which is the simulation's in a simulation."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


# Of this process.
REPORTS: Final = FaultReports()


def report_fault(logger: logging.Logger, error: BaseException, event: str, *args: object) -> None:
    """Report to the log of this process."""
    REPORTS.report(logger, error, event, *args)
