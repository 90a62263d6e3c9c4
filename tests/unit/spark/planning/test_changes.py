"""What has changed since a query was where it is."""

from barnabas.base.ids import TopicPartition
from barnabas.spark.planning.changes import resume

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_query_goes_on_where_it_is() -> None:
    assert resume({A: 5, B: 0}, {A: 0, B: 0}, {A: 9, B: 0}) == ({A: 5, B: 0}, [])
    assert resume({A: 5}, {A: 5}, {A: 5}) == ({A: 5}, [])


def test_a_new_partition_is_read_from_its_beginning() -> None:
    assert resume({A: 5}, {A: 0, B: 0}, {A: 9, B: 4}) == ({A: 5, B: 0}, [])


def test_a_new_partition_whose_beginning_is_gone_has_lost_it() -> None:
    start, [loss] = resume({}, {A: 3}, {A: 9})

    assert start == {A: 3}
    assert "new" in loss
    assert "3 offsets are lost" in loss


def test_what_went_away_before_it_was_read_is_lost() -> None:
    start, [loss] = resume({A: 5}, {A: 7}, {A: 9})

    assert start == {A: 7}
    assert "2 offsets are lost" in loss


def test_a_partition_that_ends_before_the_query_is_another_one() -> None:
    start, [loss] = resume({A: 5}, {A: 0}, {A: 4})

    assert start == {A: 0}
    assert "not the same" in loss


def test_a_partition_that_is_gone_is_not_read_on() -> None:
    start, [loss] = resume({A: 5, B: 7}, {A: 0}, {A: 9})

    assert start == {A: 5}
    assert "orders-1 is gone" in loss
