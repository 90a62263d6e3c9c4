"""The ranges that filters leave to be read."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from barnabas.base.ids import TopicPartition
from barnabas.spark.planning.pruning import Wanted
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.filters import narrowed

ORDERS = [OffsetRange(TopicPartition("orders", number), 0, 100) for number in range(3)]
RETURNS = OffsetRange(TopicPartition("returns", 0), 50, 60)
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOON_MS = 1_794_830_400_000


def left(*filters: Filter, since: dict[TopicPartition, int] | None = None) -> list[tuple[Any, ...]]:
    wanted = Wanted()
    for one in filters:
        wanted = narrowed(wanted, one)
    ranges = wanted.pruned([*ORDERS, RETURNS], since or {})
    return [(one.tp.topic, one.tp.partition, one.start, one.end) for one in ranges]


ALL = [("orders", 0, 0, 100), ("orders", 1, 0, 100), ("orders", 2, 0, 100), ("returns", 0, 50, 60)]


@pytest.mark.parametrize(
    ("filters", "ranges"),
    [
        ([EqualTo(("partition",), 1)], [ALL[1]]),
        ([In(("partition",), (1, 2, 7))], ALL[1:3]),
        ([In(("partition",), (1, 2)), EqualTo(("partition",), 0)], []),
        ([EqualTo(("topic",), "returns")], [ALL[3]]),
        ([EqualNullSafe(("topic",), None)], []),
        ([EqualTo(("partition",), 1), GreaterThan(("offset",), 10)], [("orders", 1, 11, 100)]),
        ([EqualTo(("partition",), 1), GreaterThanOrEqual(("offset",), 10)], [("orders", 1, 10, 100)]),
        ([EqualTo(("partition",), 1), LessThan(("offset",), 10)], [("orders", 1, 0, 10)]),
        ([EqualTo(("partition",), 1), LessThanOrEqual(("offset",), 10)], [("orders", 1, 0, 11)]),
        ([EqualTo(("partition",), 1), In(("offset",), (5, 9, 7))], [("orders", 1, 5, 10)]),
        ([In(("offset",), ())], []),
        # Unsupported filters exclude nothing.
        ([IsNotNull(("partition",))], ALL),
        ([Not(EqualTo(("partition",), 1))], ALL),
        ([EqualTo(("value",), b"x"), GreaterThan(("partition", "x"), 1)], ALL),
        # Later records may be older.
        ([LessThan(("timestamp",), NOON)], ALL),
    ],
)
def test_only_ranges_that_may_match_are_left(filters: list[Filter], ranges: list[tuple[Any, ...]]) -> None:
    assert left(*filters) == ranges


@pytest.mark.parametrize(
    ("one", "since_ms"),
    [
        (GreaterThan(("timestamp",), NOON), NOON_MS),
        (GreaterThanOrEqual(("timestamp",), NOON + timedelta(microseconds=1500)), NOON_MS + 1),
        (EqualTo(("timestamp",), NOON), NOON_MS),
        (In(("timestamp",), (NOON + timedelta(hours=1), NOON)), NOON_MS),
        (LessThan(("timestamp",), NOON), None),
        (GreaterThan(("timestamp",), datetime(1960, 1, 1, tzinfo=UTC)), 0),
    ],
)
def test_a_lower_bound_of_time_sets_the_start(one: Filter, since_ms: int | None) -> None:
    assert narrowed(Wanted(), one).since_ms == since_ms
    assert left(EqualTo(("partition",), 2), since={TopicPartition("orders", 2): 40}) == [
        ("orders", 2, 40, 100)
    ]


def test_the_latest_of_several_lower_bounds_counts() -> None:
    both = [GreaterThan(("timestamp",), NOON), GreaterThan(("timestamp",), NOON - timedelta(hours=1))]

    assert narrowed(narrowed(Wanted(), both[0]), both[1]).since_ms == NOON_MS
