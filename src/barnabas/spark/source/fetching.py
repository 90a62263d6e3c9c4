"""Fetches a range with one consumer, or with several if the broker's latency is high.

A fetch starts where the previous one ended, so a consumer has one fetch in flight per partition and mostly
waits if the latency is high. Since the end of a range is known in advance, several consumers, each with its
own connection, take chunks of it in turn, of about one response each. Chunks are read in log order. Records
beyond the end of a chunk are fetched again by the next consumer.
"""

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from itertools import count, islice
from math import inf
from time import monotonic
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking.consumer import Consumer
from barnabas.client.consumer.errors import NoOffset
from barnabas.client.consumer.message import EndOfPartition
from barnabas.client.errors import RequestTimedOut
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.consumer_cache import cached_consumer

# Size of a chunk as a share of the offsets in a response, so that usually one response covers the chunk.
_CHUNK_SHARE: Final = 0.9
# Record sizes vary: the smallest of the last few responses counts.
_RESPONSES_SEEN: Final = 4
# One more fetch per this much latency, because a connection has only a few megabytes in flight.
_ROUND_TRIP_MS: Final = 5.0
_FETCHES_MAX: Final = 8
# A busy machine inflates the measured latency: the minimum of a few probes counts.
_PROBES: Final = 3

_fetches_by_consumer: "weakref.WeakKeyDictionary[Consumer, int]" = weakref.WeakKeyDictionary()


class Fetcher:
    """Fetches the range given to begin() in the background, with one consumer of one partition."""

    def __init__(
        self, consumer: Consumer, tp: TopicPartition, tables: "Iterator[pa.Table | EndOfPartition]"
    ) -> None:
        self.consumer = consumer
        self.wanted = OffsetRange(tp, 0, 0)
        # The offset after the last row of a response, or after a gap behind it.
        self.position = 0
        # Number of offsets in the first response; 0 before there is one.
        self.span = 0
        self._tables = tables
        self._ended_at: int | None = None

    def begin(self, wanted: OffsetRange) -> None:
        self.consumer.seek(wanted.tp, wanted.start, until=wanted.end)
        self.wanted, self.position, self.span, self._ended_at = wanted, wanted.start, 0, None

    @property
    def done(self) -> bool:
        return self.position >= self.wanted.end

    def next_table(self) -> pa.Table | None:
        """Return a whole response, whose last rows may be beyond the range. None if the range is complete.

        An end of the log before the end of the range may be temporary: a new leader or a follower can lag
        behind the end that was planned with. So fetching continues until the task's timeout. Raises NoOffset
        if the log still ends there, or begins after the position.
        """
        while not self.done:
            try:
                found = next(self._tables)
            except RequestTimedOut:
                if self._ended_at is not None:
                    self._check_there(self._ended_at)
                raise
            if not isinstance(found, EndOfPartition):
                self._advance(found["offset"][-1].as_py() + 1)
                return found
            if found.offset >= self.wanted.end:
                self._advance(found.offset)
            else:
                self._ended_at = found.offset
        return None

    def _advance(self, position: int) -> None:
        self.position = position
        self.span = self.span or position - self.wanted.start

    def _check_there(self, offset: int) -> None:
        tp, consumer = self.wanted.tp, self.consumer
        [first], [last] = (ends([tp]).values() for ends in (consumer.beginning_offsets, consumer.end_offsets))
        if last <= offset:
            raise NoOffset(tp, offset, first, last)


@contextmanager
def fetcher_of(
    consumer: Consumer, tp: TopicPartition, topic_id: Uuid | None, timeout_ms: float
) -> Iterator[Fetcher]:
    consumer.assign([tp], topic_ids={} if topic_id is None else {tp.topic: topic_id})
    # max_rows=1 returns one response at a time.
    with closing(consumer.arrow(max_rows=1, views=True, timeout_ms=timeout_ms)) as tables:
        yield Fetcher(consumer, tp, tables)


def tables_of(
    wanted: OffsetRange,
    topic_id: Uuid | None,
    settings: Mapping[str, str],
    *,
    timeout_ms: float,
    fetches: int | None,
) -> Iterator[pa.Table]:
    """Yield the records of the range. Without `fetches` their number is chosen by the latency of the leader.

    Raises NoOffset if the log begins after the start of the range or still ends before its end.
    """
    with ExitStack() as stack:

        def fetchers() -> Iterator[Fetcher]:
            for number in count():
                consumer = stack.enter_context(cached_consumer(settings, number))
                yield stack.enter_context(fetcher_of(consumer, wanted.tp, topic_id, timeout_ms))

        more = fetchers()
        first = next(more)
        if fetches is None:
            fetches = _fetches_for(first.consumer, wanted.tp)
        if fetches == 1:
            first.begin(wanted)
            yield from _fetch_alone(first)
        else:
            # End after one offset: the response is complete whatever its size, and nothing is fetched ahead.
            first.begin(wanted._replace(end=wanted.start + 1))
            yield from _fetch_in_turn(wanted, first, islice(more, fetches - 1))


def _fetch_alone(fetcher: Fetcher) -> Iterator[pa.Table]:
    while (table := fetcher.next_table()) is not None:
        yield from _cut(table, fetcher.wanted.end)


def _fetch_in_turn(wanted: OffsetRange, first: Fetcher, others: Iterator[Fetcher]) -> Iterator[pa.Table]:
    """Fetch chunks with several fetchers. The first has started; its response shows how large a chunk is."""
    table, end = first.next_table(), wanted.end
    spans = deque([first.span], _RESPONSES_SEEN)
    at = first.position
    idle, busy = deque([first]), deque[Fetcher]()
    while True:
        # Start fetches before yielding, because the reader may take long.
        while at < wanted.end and (fetcher := idle.popleft() if idle else next(others, None)) is not None:
            fetcher.begin(OffsetRange(wanted.tp, at, min(wanted.end, at + _chunk(spans))))
            busy.append(fetcher)
            at = fetcher.wanted.end
        if table is not None:
            yield from _cut(table, end)
        if not busy:
            return
        fetcher = busy[0]
        table, end = fetcher.next_table(), fetcher.wanted.end
        if fetcher.done:
            spans.append(fetcher.span)
            idle.append(busy.popleft())


def _chunk(spans: Iterable[int]) -> int:
    return max(1, int(min(spans) * _CHUNK_SHARE))


def _cut(table: pa.Table, end: int) -> Iterator[pa.Table]:
    """Yield the table without rows at or after `end`; nothing if no row is left."""
    if table["offset"][-1].as_py() < end:
        yield table
        return
    rows = pc.index(pc.greater_equal(table["offset"], end), True).as_py()
    if rows > 0:
        yield table.slice(0, rows)


def _fetches_for(consumer: Consumer, tp: TopicPartition) -> int:
    """Choose the number of fetches by the leader's latency, which is measured once per consumer."""
    if consumer not in _fetches_by_consumer:
        _fetches_by_consumer[consumer] = fetches_over(_round_trip_ms(consumer, tp))
    return _fetches_by_consumer[consumer]


def fetches_over(round_trip_ms: float) -> int:
    return min(_FETCHES_MAX, 1 + int(round_trip_ms / _ROUND_TRIP_MS))


def _round_trip_ms(consumer: Consumer, tp: TopicPartition) -> float:
    shortest = inf
    for _ in range(_PROBES):
        began = monotonic()
        consumer.beginning_offsets([tp])
        shortest = min(shortest, 1000 * (monotonic() - began))
        if fetches_over(shortest) == 1:
            break
    return shortest
