"""Wait for a condition in a test instead of sleeping.

The condition is checked repeatedly, at growing intervals. A timeout error contains the last value or the last
failed assertion. Functions that wait for records are in reading.py.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import Any, Final, TypeVar, overload

from barnabas.testing.errors import WaitTimedOut

T = TypeVar("T")

TIMEOUT_S: Final = 10.0
FIRST_PAUSE_S: Final = 0.001
PAUSE_MAX_S: Final = 0.05
SHOWN_CHARS_MAX: Final = 500


def wait_until(
    condition: Callable[[], T],
    *,
    timeout_s: float = TIMEOUT_S,
    what: str | None = None,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> T:
    """Return the value of `condition()` as soon as it is true. An AssertionError in it counts as false.

    WaitTimedOut after `timeout_s`, with the last value or assertion. Other errors are raised at once.
    """
    checks = _Checks(condition, what, timeout_s)
    for left_s in _pauses(timeout_s, now):
        try:
            value = condition()
            if checks.is_true(value):
                return value
        except AssertionError as failed:
            checks.failed(failed)
        pause(left_s)
    raise checks.timed_out()


@overload
async def wait_until_async(
    condition: Callable[[], Awaitable[T]], *, timeout_s: float = TIMEOUT_S, what: str | None = None
) -> T: ...
@overload
async def wait_until_async(
    condition: Callable[[], T], *, timeout_s: float = TIMEOUT_S, what: str | None = None
) -> T: ...
async def wait_until_async(
    condition: Callable[[], Any], *, timeout_s: float = TIMEOUT_S, what: str | None = None
) -> Any:
    """Like wait_until(), for coroutines. `condition` may be async, too."""
    checks = _Checks(condition, what, timeout_s)
    for left_s in _pauses(timeout_s, asyncio.get_running_loop().time):
        try:
            found = condition()
            value = await found if isawaitable(found) else found
            if checks.is_true(value):
                return value
        except AssertionError as failed:
            checks.failed(failed)
        await asyncio.sleep(left_s)
    raise checks.timed_out()


def _pauses(timeout_s: float, now: Callable[[], float]) -> Iterator[float]:
    """Yield the pause after each check. The last check is at the deadline or later."""
    deadline, pause_s = now() + timeout_s, FIRST_PAUSE_S
    while (left_s := deadline - now()) > 0:
        yield min(pause_s, left_s)
        pause_s = min(pause_s * 2, PAUSE_MAX_S)
    yield 0.0


class _Checks:
    """The result of the last check, for the error of a timeout."""

    def __init__(self, condition: object, what: str | None, timeout_s: float) -> None:
        self._what: str = what or str(getattr(condition, "__name__", condition))
        self._timeout_s = timeout_s
        self._seen = "the condition was never checked"
        self._cause: AssertionError | None = None

    def is_true(self, value: object) -> bool:
        self._seen, self._cause = f"last value: {shown(value)}", None
        return bool(value)

    def failed(self, failed: AssertionError) -> None:
        self._seen, self._cause = f"last failed assertion: {shown(failed, str)}", failed

    def timed_out(self) -> WaitTimedOut:
        error = WaitTimedOut(self._what, timeout_s=self._timeout_s, seen=self._seen)
        error.__cause__ = self._cause
        return error


def shown(value: object, how: Callable[[object], str] = repr) -> str:
    text = how(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}... ({len(text)} characters)"
