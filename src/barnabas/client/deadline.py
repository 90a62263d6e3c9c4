"""Deadlines, backoff, and retries.

Times are those of the running event loop, so they are virtual in simulations.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeVar

from barnabas.client.errors import ClientError, RequestTimedOut, is_retriable

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Kafka's jitter: waits vary by 20 %, so that clients do not reconnect all at once.
JITTER: Final = 0.2
# Bounds the power: more doublings exceed any maximum.
_DOUBLINGS_MAX: Final = 30


# Longest delivery when a producer's block is left by Ctrl-C or cancellation. A responsive broker needs far
# less; without a broker it would take delivery.timeout.ms, two minutes.
INTERRUPTED_CLOSE_MS: Final = 5_000.0


class Deadline:
    """A point in time of the running event loop."""

    __slots__ = ("_loop", "at", "timeout_ms")

    def __init__(self, timeout_ms: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.timeout_ms = timeout_ms
        self.at = self._loop.time() + timeout_ms / 1000

    @property
    def remaining_ms(self) -> float:
        return max(0.0, (self.at - self._loop.time()) * 1000)

    @property
    def passed(self) -> bool:
        return self._loop.time() >= self.at


class Backoff:
    """Exponential backoff with a maximum and jitter (KIP-580)."""

    def __init__(self, *, first_ms: int, max_ms: int, rng: Random) -> None:
        self._first_ms = first_ms
        # As in Kafka, a first wait above the maximum is used for all waits.
        self._max_ms = max(first_ms, max_ms)
        self._rng = rng

    def wait_ms(self, failures: int) -> float:
        """Return the wait after this many consecutive failures."""
        assert failures > 0, "wait_ms() needs at least one failure"
        wait = self._first_ms * 2.0 ** min(failures - 1, _DOUBLINGS_MAX)
        return min(wait, self._max_ms) * self._rng.uniform(1 - JITTER, 1 + JITTER)


async def retry(attempt: Callable[[], Awaitable[T]], *, deadline: Deadline, backoff: Backoff, what: str) -> T:
    """Retry until success, a final error, or the deadline, where the last error is raised."""
    failures = 0
    last: ClientError | None = None
    while True:
        try:
            async with asyncio.timeout_at(deadline.at):
                return await attempt()
        except ClientError as error:
            if not is_retriable(error):
                raise
            last = error
            failures += 1
            logger.info("attempt failed what=%s error=%s", what, error, extra={"error": error})
        except TimeoutError:
            raise _out_of_time(last, deadline, what, failures) from None
        wait_ms = backoff.wait_ms(failures)
        if wait_ms >= deadline.remaining_ms:
            raise _out_of_time(last, deadline, what, failures)
        await asyncio.sleep(wait_ms / 1000)


def _out_of_time(last: ClientError | None, deadline: Deadline, what: str, failures: int) -> ClientError:
    if last is None:
        return RequestTimedOut(what, "the cluster", deadline.timeout_ms)
    last.add_note(f"{what}: gave up after {deadline.timeout_ms:.0f} ms and {failures} attempts")
    return last


def close_timeout_ms(left_by: type[BaseException] | None) -> float | None:
    """Return how long a producer may deliver at the end of its `with` block, None for as long as it takes."""
    is_interrupted = left_by is not None and not issubclass(left_by, Exception)
    return INTERRUPTED_CLOSE_MS if is_interrupted else None
