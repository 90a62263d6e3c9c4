"""What is in a topic, for tests: all of it now, or so many records as soon as there are so many.

The functions for plain code run those for coroutines in a short-lived thread with a loop of its own, so that
they can be called from anywhere, also where a loop is running already.
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
# How long a topic is looked for by who reads what is there now.
KNOWN_WITHIN_MS: Final = 1_000
WAIT_MS: Final = 500
RETRY_MS: Final = 5
RETRY_MAX_MS: Final = 50


def records(bootstrap: str, topic: str, *, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """Everything that is in a topic now, in the order of partitions and offsets; or UnknownTopic."""
    return _apart(lambda: records_async(bootstrap, topic, timeout_s=timeout_s))


async def records_async(bootstrap: str, topic: str, *, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """The same in a coroutine."""
    seen = _Seen(topic, "its end", timeout_s)
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
    """The first `count` records that come from a topic, read from its beginning; in order in a partition.

    WaitTimedOut if there are fewer after `timeout_s`, with those that there are. A topic that is not there
    yet is waited for, too.
    """
    return _apart(lambda: wait_for_records_async(bootstrap, topic, count, timeout_s=timeout_s))


async def wait_for_records_async(
    bootstrap: str, topic: str, count: int = 1, *, timeout_s: float = TIMEOUT_S
) -> list[Message]:
    """The same in a coroutine."""
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
    """Until the end of a partition is at `offset` or later: where it is. WaitTimedOut says how far it got."""
    return _apart(
        lambda: wait_for_offset_async(bootstrap, topic, offset, partition=partition, timeout_s=timeout_s)
    )


async def wait_for_offset_async(
    bootstrap: str, topic: str, offset: int, *, partition: int = 0, timeout_s: float = TIMEOUT_S
) -> int:
    """The same in a coroutine."""
    tp = TopicPartition(topic, partition)
    what = f"{tp} to end at {offset}"
    end = -1

    async with _consumer(bootstrap, _longer_than(timeout_s)) as consumer:

        async def is_there() -> bool:
            nonlocal end
            end = (await consumer.end_offsets([tp]))[tp]
            assert end >= offset, f"it ends at {end}"
            return True

        await wait_until_async(is_there, timeout_s=timeout_s, what=what)
    return end


class _Seen:
    """What was read so far, for the error if it is not enough."""

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
            raise WaitTimedOut(self._what, timeout_s=self._timeout_s, seen=self._told()) from None

    def _told(self) -> str:
        if not self.is_topic_there:
            return "there is no such topic, or nobody who could tell"
        lines = [
            f"\n  {one.tp}@{one.offset} key={shown(one.key)} value={shown(one.value)}"
            for one in self.records[-SHOWN_RECORDS_MAX:]
        ]
        last = f", the last {len(lines)}" if len(lines) < len(self.records) else ""
        return f"{len(self.records) or 'none'} came{last}" + (":" if lines else "") + "".join(lines)


def _consumer(bootstrap: str, patience_ms: int, *, wait_ms: int = WAIT_MS) -> Consumer:
    """One that reads everything from the beginning, and looks for a topic that is not there so long.

    `wait_ms` is how long the broker holds a fetch that finds nothing, and so the end of a partition.
    """
    return Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        enable_partition_eof=True,
        default_api_timeout_ms=patience_ms,
        fetch_max_wait_ms=wait_ms,
        # A test that waits is in a hurry.
        retry_backoff_ms=RETRY_MS,
        retry_backoff_max_ms=RETRY_MAX_MS,
    )


def _longer_than(timeout_s: float) -> int:
    """Milliseconds after which the client would give up by itself; ours is the better message."""
    return int(timeout_s * 1000) + KNOWN_WITHIN_MS


def _apart(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it in a thread of its own, and wait."""
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
