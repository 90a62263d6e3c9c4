"""Read a topic in a test: all current records, or wait for a number of records or an end offset.

The blocking functions run the async ones in a short-lived thread with its own event loop, so that they can be
called from anywhere, even where an event loop is running.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client import Consumer, EndOfPartition, Message
from barnabas.testing.errors import WaitTimedOut
from barnabas.testing.waiting import TIMEOUT_S, shown, wait_until_async

T = TypeVar("T")

SHOWN_RECORDS_MAX: Final = 10
# How long records() looks for a topic.
KNOWN_WITHIN_MS: Final = 1_000
WAIT_MS: Final = 500
RETRY_MS: Final = 5
RETRY_MAX_MS: Final = 50


def records(bootstrap: str, topic: str, *, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """Return all records of a topic, by partition and offset. UnknownTopic if it does not exist."""
    return _run_in_thread(lambda: records_async(bootstrap, topic, timeout_s=timeout_s))


async def records_async(bootstrap: str, topic: str, *, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """Like records(), for coroutines."""
    seen = _Seen(topic, "the end", timeout_s)
    async with seen.in_time(), _consumer(bootstrap, KNOWN_WITHIN_MS, wait_ms=0) as consumer:
        left = set(await consumer.assign_topic(topic))
        seen.is_topic_there = True
        while left:
            message = await anext(consumer)
            if isinstance(message, EndOfPartition):
                left.discard(message.tp)
            else:
                seen.records.append(message)
    return sorted(seen.records, key=lambda one: (one.partition, one.offset))


def wait_for_records(
    bootstrap: str, topic: str, count: int = 1, *, timeout_s: float = TIMEOUT_S
) -> list[Message]:
    """Wait for the first `count` records of a topic, from its beginning; in order within a partition.

    WaitTimedOut, with the records received, if there are fewer after `timeout_s`. Waits for a topic that does
    not exist yet, too.
    """
    return _run_in_thread(lambda: wait_for_records_async(bootstrap, topic, count, timeout_s=timeout_s))


async def wait_for_records_async(
    bootstrap: str, topic: str, count: int = 1, *, timeout_s: float = TIMEOUT_S
) -> list[Message]:
    """Like wait_for_records(), for coroutines."""
    seen = _Seen(topic, f"{count} record{'s' * (count != 1)}", timeout_s)
    async with seen.in_time(), _consumer(bootstrap, _longer_than(timeout_s)) as consumer:
        await consumer.assign_topic(topic)
        seen.is_topic_there = True
        while len(seen.records) < count:
            message = await anext(consumer)
            if not isinstance(message, EndOfPartition):
                seen.records.append(message)
    return seen.records


def wait_for_offset(
    bootstrap: str, topic: str, offset: int, *, partition: int = 0, timeout_s: float = TIMEOUT_S
) -> int:
    """Wait until the end offset of a partition is at least `offset`, and return it."""
    return _run_in_thread(
        lambda: wait_for_offset_async(bootstrap, topic, offset, partition=partition, timeout_s=timeout_s)
    )


async def wait_for_offset_async(
    bootstrap: str, topic: str, offset: int, *, partition: int = 0, timeout_s: float = TIMEOUT_S
) -> int:
    """Like wait_for_offset(), for coroutines."""
    tp = TopicPartition(topic, partition)
    what = f"{tp} to end at {offset}"
    end = -1

    async with _consumer(bootstrap, _longer_than(timeout_s)) as consumer:

        async def is_reached() -> bool:
            nonlocal end
            end = (await consumer.end_offsets([tp]))[tp]
            assert end >= offset, f"{tp} ends at {end}"
            return True

        await wait_until_async(is_reached, timeout_s=timeout_s, what=what)
    return end


class _Seen:
    """The records read so far, for the error of a timeout."""

    def __init__(self, topic: str, what: str, timeout_s: float) -> None:
        self.records: list[Message] = []
        self.is_topic_there = False
        self._what = f"{what} of {topic}"
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError:
            raise WaitTimedOut(self._what, timeout_s=self._timeout_s, seen=self._description()) from None

    def _description(self) -> str:
        if not self.is_topic_there:
            return "the topic does not exist, or no broker responded"
        lines = [
            f"\n  {one.tp}@{one.offset} key={shown(one.key)} value={shown(one.value)}"
            for one in self.records[-SHOWN_RECORDS_MAX:]
        ]
        last = f", the last {len(lines)}" if len(lines) < len(self.records) else ""
        return f"received {len(self.records) or 'none'}{last}" + (":" if lines else "") + "".join(lines)


def _consumer(bootstrap: str, patience_ms: int, *, wait_ms: int = WAIT_MS) -> Consumer:
    """Create a consumer that reads from the beginning and waits up to `patience_ms` for a topic.

    `wait_ms` is how long the broker holds an empty fetch, and thus delays the end of a partition.
    """
    return Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        enable_partition_eof=True,
        default_api_timeout_ms=patience_ms,
        fetch_max_wait_ms=wait_ms,
        # Short backoffs, because a test waits.
        retry_backoff_ms=RETRY_MS,
        retry_backoff_max_ms=RETRY_MAX_MS,
    )


def _longer_than(timeout_s: float) -> int:
    """Return a client timeout in ms that is longer than ours, because our message is better."""
    return int(timeout_s * 1000) + KNOWN_WITHIN_MS


def _run_in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a new thread with its own event loop, and wait for it."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(asyncio.run(work()))
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=run, name="barnabas-reading", daemon=True)
    thread.start()
    try:
        return answer.result()
    finally:
        if answer.done():
            thread.join()
