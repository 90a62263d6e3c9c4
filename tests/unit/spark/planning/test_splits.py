"""Ranges of offsets become tasks: every offset is in exactly one of them."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.spark.planning.splits import OffsetRange, ranges_between, split

A, B, C = (TopicPartition("orders", number) for number in range(3))


def sizes(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(one.tp.partition, one.size) for one in ranges]


def test_each_partition_is_one_range_and_empty_ranges_are_omitted() -> None:
    between = ranges_between({A: 5, B: 7, C: 9}, {C: 12, B: 7, A: 6})

    assert between == [OffsetRange(A, 5, 6), OffsetRange(C, 9, 12)]


def test_without_limits_a_partition_is_one_task() -> None:
    ranges = [OffsetRange(A, 0, 1000), OffsetRange(B, 5, 6)]

    assert split(ranges) == ranges
    assert split(ranges, min_partitions=2) == ranges


def test_one_partition_is_split_evenly() -> None:
    assert split([OffsetRange(A, 10, 20)], min_partitions=3) == [
        OffsetRange(A, 10, 13),
        OffsetRange(A, 13, 16),
        OffsetRange(A, 16, 20),
    ]


def test_a_large_partition_gets_the_tasks_that_small_ones_do_not_need() -> None:
    # A has all but a little of it: the other stays whole, and A is split into what is left.
    assert sizes(split([OffsetRange(A, 0, 10000), OffsetRange(B, 0, 1)], min_partitions=4)) == [
        (0, 3333),
        (0, 3333),
        (0, 3334),
        (1, 1),
    ]


def test_a_range_is_never_split_into_more_tasks_than_it_has_offsets() -> None:
    assert sizes(split([OffsetRange(A, 0, 2)], min_partitions=10)) == [(0, 1), (0, 1)]


def test_max_records_limits_the_offsets_of_a_task() -> None:
    assert sizes(split([OffsetRange(A, 0, 10), OffsetRange(B, 0, 3)], records_max=4)) == [
        (0, 3),
        (0, 3),
        (0, 4),
        (1, 3),
    ]


def test_both_limits_together_give_the_smaller_tasks() -> None:
    assert sizes(split([OffsetRange(A, 0, 8)], min_partitions=2, records_max=2)) == [(0, 2)] * 4
    assert sizes(split([OffsetRange(A, 0, 8)], min_partitions=8, records_max=4)) == [(0, 1)] * 8


@given(
    st.dictionaries(
        st.integers(0, 20), st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 22)), max_size=8
    ),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1 << 16, 1 << 40),
)
def test_every_offset_is_in_exactly_one_task(
    spans: dict[int, tuple[int, int]], min_partitions: int | None, records_max: int | None
) -> None:
    ranges = [OffsetRange(TopicPartition("t", p), at, at + size) for p, (at, size) in spans.items()]

    tasks = split(ranges, min_partitions=min_partitions, records_max=records_max)

    assert all(task.size > 0 for task in tasks)
    if records_max is not None:
        assert all(task.size <= records_max for task in tasks)
    for one in ranges:
        mine = [task for task in tasks if task.tp == one.tp]
        at = one.start
        for task in mine:
            assert task.start == at
            at = task.end
        assert at == one.end
