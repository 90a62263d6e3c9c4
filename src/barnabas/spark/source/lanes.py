"""Fetches a range with one consumer, or with several if the broker's latency is high.

A fetch starts where the previous one ended, so a consumer has one fetch in flight per partition and mostly
waits if the latency is high. Since the end of a range is known in advance, several consumers, each with its
own connection, take chunks of it in turn, of about one response each. Chunks are read in log order. Records
beyond the end of a chunk are fetched again by the next consumer.
"""

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count, islice
from math import inf
from time import monotonic
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking.consumer import Consumer
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.kept import consumer_with
from barnabas.spark.source.lane import Lane, lane_of

# Size of a chunk as a share of the offsets in a response, so that usually one response covers the chunk.
_CHUNK_SHARE: Final = 0.9
# Record sizes vary: the smallest of the last few responses counts.
_ANSWERS_SEEN: Final = 4
# One more fetch per this much latency, because a connection has only a few megabytes in flight.
_ROUND_TRIP_MS: Final = 5.0
_FETCHES_MAX: Final = 8
# A busy machine inflates the measured latency: the minimum of a few probes counts.
_TRIES: Final = 3

_known: "weakref.WeakKeyDictionary[Consumer, int]" = weakref.WeakKeyDictionary()


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

        def lanes() -> Iterator[Lane]:
            for number in count():
                consumer = stack.enter_context(consumer_with(settings, number))
                yield stack.enter_context(lane_of(consumer, wanted.tp, topic_id, timeout_ms))

        more = lanes()
        first = next(more)
        if fetches is None:
            fetches = _fetches_for(first.consumer, wanted.tp)
        if fetches == 1:
            first.begin(wanted)
            yield from _alone(first)
        else:
            # End after one offset: the response is complete whatever its size, and nothing is fetched ahead.
            first.begin(wanted._replace(end=wanted.start + 1))
            yield from _in_turn(wanted, first, islice(more, fetches - 1))


def _alone(lane: Lane) -> Iterator[pa.Table]:
    while (table := lane.next_table()) is not None:
        yield from _cut(table, lane.wanted.end)


def _in_turn(wanted: OffsetRange, first: Lane, others: Iterator[Lane]) -> Iterator[pa.Table]:
    """The first lane has started; its response shows how many offsets fit in one. Takes others on demand."""
    table, end = first.next_table(), wanted.end
    spans = deque([first.span], _ANSWERS_SEEN)
    at = first.position
    idle, busy = deque([first]), deque[Lane]()
    while True:
        # Start fetches before yielding, because the reader may take long.
        while at < wanted.end and (lane := idle.popleft() if idle else next(others, None)) is not None:
            lane.begin(OffsetRange(wanted.tp, at, min(wanted.end, at + _chunk(spans))))
            busy.append(lane)
            at = lane.wanted.end
        if table is not None:
            yield from _cut(table, end)
        if not busy:
            return
        lane = busy[0]
        table, end = lane.next_table(), lane.wanted.end
        if lane.done:
            spans.append(lane.span)
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
    if consumer not in _known:
        _known[consumer] = fetches_over(_round_trip_ms(consumer, tp))
    return _known[consumer]


def fetches_over(round_trip_ms: float) -> int:
    return min(_FETCHES_MAX, 1 + int(round_trip_ms / _ROUND_TRIP_MS))


def _round_trip_ms(consumer: Consumer, tp: TopicPartition) -> float:
    shortest = inf
    for _ in range(_TRIES):
        began = monotonic()
        consumer.beginning_offsets([tp])
        shortest = min(shortest, 1000 * (monotonic() - began))
        if fetches_over(shortest) == 1:
            break
    return shortest
