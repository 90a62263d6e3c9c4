"""Assigned partitions, and what reassignment keeps."""

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.errors import NoOffset, NotAssigned
from barnabas.client.consumer.positions import PartitionState, PositionCheck, Positions

A, B, C = (TopicPartition("t", number) for number in range(3))
ID, OTHER_ID = Uuid(b"i" * 16), Uuid(b"o" * 16)
EARLIEST = -2


def assigned(*tps: TopicPartition) -> Positions:
    positions = Positions()
    positions.replace(dict.fromkeys(tps, ID), EARLIEST)
    return positions


def test_new_partitions_start_at_the_reset_position() -> None:
    one = assigned(A)[A]

    assert (one.position, one.reset_to) == (None, EARLIEST)
    assert not one.is_fetchable(0)


def test_reassignment_keeps_positions_and_returns_removed_partitions() -> None:
    positions = assigned(A, B)
    positions[A].move_to(5)
    kept, gone = positions[A], positions[B]

    assert positions.replace({A: ID, C: ID}, EARLIEST) == [gone]
    assert positions[A] is kept
    assert kept.position == 5
    assert positions.tps == {A, C}


def test_a_stopped_or_recreated_partition_starts_again() -> None:
    positions = assigned(A, B)
    for tp in (A, B):
        positions[tp].move_to(5)
    positions[A].error = NoOffset(A, 5, 0, 0)

    positions.replace({A: ID, B: OTHER_ID}, EARLIEST)

    assert [one.position for one in positions] == [None, None]
    assert positions[B].topic_id == OTHER_ID


def test_not_assigned_names_the_partition() -> None:
    with pytest.raises(NotAssigned, match="t-1"):
        assigned(A)[B]
    with pytest.raises(NotAssigned, match="t-1"):
        assigned(A).named([A, B])
    assert [one.tp for one in assigned(A, B).named([])] == [A, B]


def test_every_move_starts_a_generation_and_clears_errors() -> None:
    one = PartitionState(A, ID)
    one.move_to(3, 7)
    one.error, one.failures, one.retry_at_s, one.pending_check = (
        NoOffset(A, 3, 0, 0),
        4,
        99.0,
        PositionCheck.LEADER,
    )
    before = one.generation

    one.move_to(4)

    assert one.generation > before
    assert (one.error, one.failures, one.pending_check, one.epoch) == (None, 0, None, -1)
    assert one.is_fetchable(0)


@pytest.mark.parametrize("why", ["paused", "pending_check", "error", "retry_at_s"])
def test_states_in_which_a_partition_is_not_fetched(why: str) -> None:
    one = PartitionState(A, ID)
    one.move_to(3)
    assert one.is_fetchable(10)

    setattr(
        one,
        why,
        {
            "paused": True,
            "pending_check": PositionCheck.RANGE,
            "error": NoOffset(A, 3, 0, 0),
            "retry_at_s": 10.5,
        }[why],
    )

    assert not one.is_fetchable(10)


def test_a_served_partition_goes_to_the_end_of_the_order() -> None:
    positions = assigned(A, B, C)

    positions.move_to_end(positions[A])

    assert [one.tp for one in positions] == [B, C, A]
