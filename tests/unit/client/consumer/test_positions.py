"""What is assigned, and what assigning anew keeps."""

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.errors import NoOffset, NotAssigned
from barnabas.client.consumer.positions import Assigned, Doubt, Positions

A, B, C = (TopicPartition("t", number) for number in range(3))
ID, OTHER_ID = Uuid(b"i" * 16), Uuid(b"o" * 16)
EARLIEST = -2


def assigned(*tps: TopicPartition) -> Positions:
    positions = Positions()
    positions.replace(dict.fromkeys(tps, ID), EARLIEST)
    return positions


def test_what_is_new_begins_where_a_reset_goes() -> None:
    one = assigned(A)[A]

    assert (one.position, one.reset_to) == (None, EARLIEST)
    assert not one.is_fetchable(0)


def test_assigning_anew_keeps_what_stays_and_tells_what_went() -> None:
    positions = assigned(A, B)
    positions[A].move_to(5)
    kept, gone = positions[A], positions[B]

    assert positions.replace({A: ID, C: ID}, EARLIEST) == [gone]
    assert positions[A] is kept
    assert kept.position == 5
    assert positions.tps == {A, C}


def test_a_partition_that_stopped_or_is_of_another_topic_begins_anew() -> None:
    positions = assigned(A, B)
    for tp in (A, B):
        positions[tp].move_to(5)
    positions[A].error = NoOffset(A, 5, 0, 0)

    positions.replace({A: ID, B: OTHER_ID}, EARLIEST)

    assert [one.position for one in positions] == [None, None]
    assert positions[B].topic_id == OTHER_ID


def test_what_is_not_assigned_is_named() -> None:
    with pytest.raises(NotAssigned, match="t-1"):
        assigned(A)[B]
    with pytest.raises(NotAssigned, match="t-1"):
        assigned(A).named([A, B])
    assert [one.tp for one in assigned(A, B).named([])] == [A, B]


def test_every_move_begins_a_generation_and_forgets_what_was_wrong() -> None:
    one = Assigned(A, ID)
    one.move_to(3, 7)
    one.error, one.failures, one.not_before_s, one.doubt = NoOffset(A, 3, 0, 0), 4, 99.0, Doubt.LEADER
    before = one.generation

    one.move_to(4)

    assert one.generation > before
    assert (one.error, one.failures, one.doubt, one.epoch) == (None, 0, None, -1)
    assert one.is_fetchable(0)


@pytest.mark.parametrize("why", ["paused", "doubt", "error", "not_before_s"])
def test_what_keeps_a_partition_from_being_fetched(why: str) -> None:
    one = Assigned(A, ID)
    one.move_to(3)
    assert one.is_fetchable(10)

    setattr(
        one,
        why,
        {"paused": True, "doubt": Doubt.RANGE, "error": NoOffset(A, 3, 0, 0), "not_before_s": 10.5}[why],
    )

    assert not one.is_fetchable(10)


def test_who_got_something_is_served_last() -> None:
    positions = assigned(A, B, C)

    positions.serve_last(positions[A])

    assert [one.tp for one in positions] == [B, C, A]
