"""Log unexpected exceptions, with rate-limited stack traces.

A bug that a client can trigger must not fill the disk with stack traces. The first fault at a code location
is logged with its stack. Later ones within a minute are only counted, and the next log line has the count.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import PurePath
from traceback import extract_tb
from typing import Final

# For this long after a logged fault, others at the same location are only counted.
QUIET_S: Final = 60.0
# Maximum number of remembered locations; far fewer can fail.
PLACES_MAX: Final = 256


class FaultReports:
    """The code locations that have failed, and when that was last logged."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or _now
        # The number of faults, and a description of the last one.
        self.total = 0
        self.latest = ""
        # For each location, the time of its last log line and the number of faults since then.
        self._places: dict[tuple[str, str, str], tuple[float, int]] = {}

    def report(self, logger: logging.Logger, error: BaseException, event: str, *args: object) -> None:
        """Log a fault. `event` is a log template that says what failed."""
        where, now = place_of(error), self._now()
        if not isinstance(error, OSError):
            # A disk or network failure is not a bug.
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
        # The message of an OSError is enough, without a stack trace.
        stack = None if isinstance(error, OSError) else error
        logger.error(template, *args, where, error, left_out, exc_info=stack)


def place_of(error: BaseException) -> str:
    """FILE:LINE of the innermost frame."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}"


def _now() -> float:
    """The event loop's time, which is simulated in a simulation."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


# The reports of this process.
REPORTS: Final = FaultReports()


def report_fault(logger: logging.Logger, error: BaseException, event: str, *args: object) -> None:
    """Report to the log of this process."""
    REPORTS.report(logger, error, event, *args)
