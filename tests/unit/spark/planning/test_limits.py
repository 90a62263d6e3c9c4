"""The end of a micro-batch: fair to small partitions, never past the end, with a bounded wait."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.spark.planning.limits import Waiting, limited

A, B, C = (TopicPartition("orders", number) for number in range(3))
HUGE = (1 << 63) - 1


def test_the_limit_is_shared_by_backlog() -> None:
    assert limited({A: 0, B: 100}, {A: 900, B: 200}, 100) == {A: 90, B: 110}


def test_a_share_is_computed_in_sparks_order_of_operations() -> None:
    # 29 / 100 is a little less than 0.29 as a double, and 100 times that is less than 29.
    assert limited({A: 0, B: 0}, {A: 29, B: 71}, 100) == {A: 28, B: 71}


def test_a_small_partition_does_not_starve() -> None:
    assert limited({A: 0, B: 0}, {A: 10_000, B: 1}, 10) == {A: 9, B: 1}


def test_a_limit_above_the_backlog_has_no_effect() -> None:
    assert limited({A: 3, B: 0}, {A: 7, B: 2}, 1000) == {A: 7, B: 2}
    assert limited({A: 3}, {A: 3}, 1) == {A: 3}
    assert limited({A: 0}, {A: HUGE}, HUGE) == {A: HUGE}


def test_a_truncated_partition_ends_at_its_end() -> None:
    # What that means is decided elsewhere; the others have the limit for themselves.
    assert limited({A: 10, B: 0}, {A: 4, B: 100}, 50) == {A: 4, B: 50}


@given(
    st.dictionaries(
        st.integers(0, 30), st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 30)), min_size=1
    ),
    st.integers(1, 1 << 32),
)
def test_a_limit_is_shared_among_all_partitions_with_a_backlog(
    spans: dict[int, tuple[int, int]], most: int
) -> None:
    start = {TopicPartition("t", p): at for p, (at, _) in spans.items()}
    end = {TopicPartition("t", p): at + size for p, (at, size) in spans.items()}

    reached = limited(start, end, most)

    assert all(start[tp] <= reached[tp] <= end[tp] for tp in end)
    assert all(reached[tp] > start[tp] for tp in end if end[tp] > start[tp])
    # One for each that would have got less than one.
    assert sum(reached[tp] - start[tp] for tp in end) <= most + len(end)


def test_the_first_batch_does_not_wait() -> None:
    assert not Waiting(100, 60_000).must_wait({A: 0}, {A: 1}, now_ms=5)


def test_a_batch_waits_for_enough_records() -> None:
    waiting = Waiting(100, 60_000)
    waiting.must_wait({A: 0}, {A: 1}, now_ms=0)

    assert waiting.must_wait({A: 1, B: 0}, {A: 50, B: 50}, now_ms=10)
    assert not waiting.must_wait({A: 1, B: 0}, {A: 51, B: 50}, now_ms=20)


def test_a_batch_waits_at_most_the_delay_since_the_last_one() -> None:
    waiting = Waiting(100, 60_000)
    waiting.must_wait({A: 0}, {A: 1}, now_ms=1_000)

    assert waiting.must_wait({A: 1}, {A: 2}, now_ms=60_999)
    assert not waiting.must_wait({A: 1}, {A: 2}, now_ms=61_000)
    assert waiting.must_wait({A: 2}, {A: 3}, now_ms=120_999)


def test_a_truncated_partition_does_not_hide_the_backlog_of_others() -> None:
    waiting = Waiting(10, 60_000)
    waiting.must_wait({A: 0}, {A: 1}, now_ms=0)

    assert not waiting.must_wait({A: 1000, B: 0}, {A: 0, B: 10}, now_ms=1)
