"""Offsets that are committed in transactions: who sees what, and when."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.control import ControlType, build_control_batch
from unit.coordinators.group.offsets.offset_world import World, batch_of, record

pytestmark = pytest.mark.kernel

PRODUCERS = (1, 2, 3)
PARTITIONS = (0, 1)


def test_an_offset_is_seen_when_its_transaction_is_committed() -> None:
    world = World()
    world.pend(1, [record("g", "t", 0, 7)])
    assert world.committed("g", "t", 0) == (-1, ErrorCode.NONE)

    world.offsets.end_transaction(1, commit=True)

    assert world.committed("g", "t", 0, stable=True) == (7, ErrorCode.NONE)
    assert list(world.context.groups) == ["g"]


def test_an_offset_of_an_aborted_transaction_is_never_seen() -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 5))
    world.pend(1, [record("g", "t", 0, 7)])

    world.offsets.end_transaction(1, commit=False)

    assert world.committed("g", "t", 0, stable=True) == (5, ErrorCode.NONE)


def test_the_last_that_was_written_wins_whichever_transaction_ends_last() -> None:
    world = World()
    world.pend(1, [record("g", "t", 0, 10)])
    world.pend(2, [record("g", "t", 0, 20)])

    world.offsets.end_transaction(2, commit=True)
    assert world.committed("g", "t", 0, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    world.offsets.end_transaction(1, commit=True)

    assert world.committed("g", "t", 0, stable=True) == (20, ErrorCode.NONE)


def test_a_producer_that_commits_again_in_its_transaction_is_the_last() -> None:
    world = World()
    world.pend(1, [record("g", "t", 0, 10)])
    world.pend(2, [record("g", "t", 0, 20)])
    world.pend(1, [record("g", "t", 0, 30)])

    world.offsets.end_transaction(1, commit=True)
    world.offsets.end_transaction(2, commit=True)

    assert world.committed("g", "t", 0, stable=True) == (30, ErrorCode.NONE)


def test_a_plain_commit_after_a_pending_one_wins() -> None:
    world = World()
    world.pend(1, [record("g", "t", 0, 10)])

    world.offsets.apply(record("g", "t", 0, 20))
    world.offsets.end_transaction(1, commit=True)

    assert world.committed("g", "t", 0) == (20, ErrorCode.NONE)


def test_a_tombstone_in_a_transaction_does_not_wait() -> None:
    world = World()
    world.offsets.apply(record("g", "t", 0, 5))

    world.pend(1, [record("g", "t", 0, None)])

    assert world.committed("g", "t", 0, stable=True) == (-1, ErrorCode.NONE)


class Step(NamedTuple):
    """What one batch of a log says: a commit or a tombstone, plain or of a producer, or a marker."""

    producer: int | None
    partition: int
    offset: int | None
    marker: ControlType | None


STEPS = st.lists(
    st.one_of(
        st.builds(
            Step,
            st.none() | st.sampled_from(PRODUCERS),
            st.sampled_from(PARTITIONS),
            st.none() | st.integers(0, 100),
            st.none(),
        ),
        st.builds(
            Step,
            st.sampled_from(PRODUCERS),
            st.just(0),
            st.none(),
            st.sampled_from([ControlType.COMMIT, ControlType.ABORT]),
        ),
    )
)


class Model:
    """The rule with the positions of records: a pending one counts if nothing later has been committed."""

    def __init__(self) -> None:
        self.committed: dict[int, tuple[int, int]] = {}
        self.pending: dict[int, dict[int, tuple[int, int]]] = {}

    def take(self, position: int, step: Step) -> None:
        if step.marker is not None:
            ended = self.pending.pop(step.producer or 0, {})
            for partition, found in ended.items():
                if step.marker == ControlType.COMMIT and found > self.committed.get(partition, (-1, 0)):
                    self.committed[partition] = found
        elif step.offset is None:
            self.committed.pop(step.partition, None)
            for places in self.pending.values():
                places.pop(step.partition, None)
        elif step.producer is None:
            self.committed[step.partition] = (position, step.offset)
        else:
            self.pending.setdefault(step.producer, {})[step.partition] = (position, step.offset)

    def read(self, partition: int, *, stable: bool) -> tuple[int, int]:
        if stable and any(partition in places for places in self.pending.values()):
            return -1, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return self.committed.get(partition, (0, -1))[1], ErrorCode.NONE


def take(world: World, step: Step) -> None:
    if step.marker is not None:
        world.offsets.end_transaction(step.producer or 0, commit=step.marker == ControlType.COMMIT)
    elif step.producer is None:
        world.offsets.apply(record("g", "t", step.partition, step.offset))
    else:
        world.pend(step.producer, [record("g", "t", step.partition, step.offset)])


def as_batch(step: Step) -> bytes:
    if step.marker is not None:
        return build_control_batch(
            step.marker,
            b"\x00\x00\x00\x00\x00\x00",
            timestamp=1,
            leader_epoch=0,
            producer_id=step.producer or 0,
            producer_epoch=0,
        )
    written = [record("g", "t", step.partition, step.offset)]
    if step.producer is None:
        return batch_of(written)
    return batch_of(written, producer_id=step.producer, producer_epoch=0, base_sequence=0, transactional=True)


@given(STEPS)
def test_offsets_follow_the_log_and_are_equal_after_a_replay(steps: list[Step]) -> None:
    live, replayed, model = World(), World(), Model()

    for position, step in enumerate(steps):
        model.take(position, step)
        take(live, step)
        assert replayed.offsets.replay(as_batch(step)) == []

    replayed.offsets.loaded()
    assert replayed.offsets.durable() == live.offsets.durable()
    for world in (live, replayed):
        for partition in PARTITIONS:
            for stable in (False, True):
                assert world.committed("g", "t", partition, stable=stable) == model.read(
                    partition, stable=stable
                )


@given(STEPS)
def test_nothing_is_kept_of_transactions_that_have_ended(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        take(world, step)

    for producer in PRODUCERS:
        world.offsets.end_transaction(producer, commit=False)

    committed, pending = world.offsets.durable()  # type: ignore[misc]
    assert pending == []
    assert sum(len(offsets) for offsets in committed.values()) == world.offsets.count
    assert not world.offsets._pending._by_producer
