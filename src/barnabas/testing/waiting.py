"""Waiting for what a test expects, and not for time to pass.

The condition is looked at again and again, soon at first and then less often. What it returned last, or the
assertion that it failed by, is what the error tells. Waiting for records is in reading.py.
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
    """Return what `condition()` returns as soon as that is true. A failed assertion in it means: not yet.

    WaitTimedOut after `timeout_s`, with what was seen last. Other errors are raised at once.
    """
    look = _Look(condition, what, timeout_s)
    for left_s in _pauses(timeout_s, now):
        try:
            value = condition()
            if look.is_it(value):
                return value
        except AssertionError as failed:
            look.failed(failed)
        pause(left_s)
    raise look.timed_out()


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
    """The same in a coroutine. `condition` may be one, too."""
    look = _Look(condition, what, timeout_s)
    for left_s in _pauses(timeout_s, asyncio.get_running_loop().time):
        try:
            found = condition()
            value = await found if isawaitable(found) else found
            if look.is_it(value):
                return value
        except AssertionError as failed:
            look.failed(failed)
        await asyncio.sleep(left_s)
    raise look.timed_out()


def _pauses(timeout_s: float, now: Callable[[], float]) -> Iterator[float]:
    """How long to wait after each look. The last look is at the deadline, however late it has become."""
    deadline, pause_s = now() + timeout_s, FIRST_PAUSE_S
    while (left_s := deadline - now()) > 0:
        yield min(pause_s, left_s)
        pause_s = min(pause_s * 2, PAUSE_MAX_S)
    yield 0.0


class _Look:
    """What was seen so far."""

    def __init__(self, condition: object, what: str | None, timeout_s: float) -> None:
        self._what: str = what or str(getattr(condition, "__name__", condition))
        self._timeout_s = timeout_s
        self._seen = "it was never looked at"
        self._cause: AssertionError | None = None

    def is_it(self, value: object) -> bool:
        self._seen, self._cause = f"the last that was seen: {shown(value)}", None
        return bool(value)

    def failed(self, failed: AssertionError) -> None:
        self._seen, self._cause = f"the last assertion that failed: {shown(failed, str)}", failed

    def timed_out(self) -> WaitTimedOut:
        error = WaitTimedOut(self._what, timeout_s=self._timeout_s, seen=self._seen)
        error.__cause__ = self._cause
        return error


def shown(value: object, how: Callable[[object], str] = repr) -> str:
    text = how(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}... ({len(text)} characters)"
