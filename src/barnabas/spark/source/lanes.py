"""How a range is fetched: by one consumer, which fetches ahead, or by several where brokers are far away.

A fetch can only begin where the one before it ended, so a consumer has one under way for a partition, and on
a long way it mostly waits. But where a range ends is known from the beginning: so several consumers, each
with a connection, take chunks of it in turn, of about what one answer brings. They are read in the order of
the log. What an answer has beyond the end of its chunk is fetched once more, by the next consumer.
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

# Of the offsets that an answer went over, so many are a chunk, so that mostly one answer brings all of it.
_CHUNK_SHARE: Final = 0.9
# Some answers have larger records than others: the smallest of so many counts.
_ANSWERS_SEEN: Final = 4
# One fetch more for so much of a round trip, since a connection has only a few megabytes under way.
_ROUND_TRIP_MS: Final = 5.0
_FETCHES_MAX: Final = 8
# A busy machine makes a way look long: the shortest of so many counts.
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
    """What the log has of the range. NoOffset if it begins after its start, or stays too short.

    Without a number of `fetches` there are as many as the way to the leader asks for.
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
            # Whatever its size, the answer that has the first record comes whole, and nothing after it.
            first.begin(wanted._replace(end=wanted.start + 1))
            yield from _in_turn(wanted, first, islice(more, fetches - 1))


def _alone(lane: Lane) -> Iterator[pa.Table]:
    while (table := lane.next_table()) is not None:
        yield from _cut(table, lane.wanted.end)


def _in_turn(wanted: OffsetRange, first: Lane, others: Iterator[Lane]) -> Iterator[pa.Table]:
    """The first lane has begun: its answer tells how far one goes. Others are made when there is more."""
    table, end = first.next_table(), wanted.end
    spans = deque([first.span], _ANSWERS_SEEN)
    at = first.position
    idle, busy = deque([first]), deque[Lane]()
    while True:
        # Before the reader is given anything, which may keep it long.
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
    """Without what is beyond the end; nothing if that is all."""
    if table["offset"][-1].as_py() < end:
        yield table
        return
    rows = pc.index(pc.greater_equal(table["offset"], end), True).as_py()
    if rows > 0:
        yield table.slice(0, rows)


def _fetches_for(consumer: Consumer, tp: TopicPartition) -> int:
    """How many should be under way, by the time that the leader takes for an answer. Found out once."""
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
