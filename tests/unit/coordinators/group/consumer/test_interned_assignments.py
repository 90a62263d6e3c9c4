"""Interning: equal assignments share one object, different ones do not."""

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.consumer.member import INTERNED_MAX, SWEEP_MIN, InternedAssignments
from barnabas.protocol.stored.consumer_groups import TopicPartition, TopicPartitions

ORDERS, NOTES = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)


def target(topic: Uuid, *partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic_id=topic, partitions=list(partitions))]


def held(topic: Uuid, partitions: list[int], epochs: list[int] | None) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic, partitions=partitions, assignment_epochs=epochs)]


def test_equal_targets_share_one_object() -> None:
    kept = InternedAssignments()

    first = kept.read_target(target(ORDERS, 0, 1))

    assert first == {ORDERS: frozenset((0, 1))}
    assert kept.read_target(target(ORDERS, 0, 1)) is first
    assert kept.read_target(target(ORDERS, 0)) == {ORDERS: frozenset((0,))}
    assert kept.read_target(target(NOTES, 0, 1)) == {NOTES: frozenset((0, 1))}


def test_held_partitions_are_shared_only_with_equal_epochs() -> None:
    kept = InternedAssignments()

    first = kept.read_held(held(ORDERS, [0, 1], [3, 4]), 5)

    assert first == {ORDERS: {0: 3, 1: 4}}
    assert kept.read_held(held(ORDERS, [0, 1], [3, 4]), 9) is first
    assert kept.read_held(held(ORDERS, [0, 1], [3, 3]), 5) == {ORDERS: {0: 3, 1: 3}}
    assert kept.read_held([], 5) == {}


def test_without_epochs_of_partitions_the_members_own_counts() -> None:
    kept = InternedAssignments()

    assert kept.read_held(held(ORDERS, [0], None), 5) == {ORDERS: {0: 5}}
    assert kept.read_held(held(ORDERS, [0], None), 6) == {ORDERS: {0: 6}}


def test_as_many_epochs_as_partitions_or_the_members_own_counts() -> None:
    kept = InternedAssignments()

    assert kept.read_held(held(ORDERS, [0, 1], [3]), 5) == {ORDERS: {0: 5, 1: 5}}
    assert kept.read_held(held(ORDERS, [0, 1], [3]), 6) == {ORDERS: {0: 6, 1: 6}}


def test_partitions_of_two_topics_are_not_those_of_one() -> None:
    kept = InternedAssignments()
    two = [*target(ORDERS, 0), *target(NOTES, 0)]

    assert kept.read_target(two) == {ORDERS: frozenset((0,)), NOTES: frozenset((0,))}
    assert kept.read_target(target(ORDERS, 0, 1)) is not kept.read_target(target(ORDERS, 0))


def test_unused_assignments_are_dropped_and_used_ones_stay() -> None:
    kept = InternedAssignments()
    has = [kept.read_target(target(ORDERS, number)) for number in range(100)]
    holds = [kept.read_held(held(ORDERS, [number], [1]), 1) for number in range(100)]

    for number in range(10 * SWEEP_MIN):
        kept.read_target(target(NOTES, number))
        kept.read_held(held(NOTES, [number], [1]), 1)

    assert len(kept._targets) <= SWEEP_MIN
    assert len(kept._held) <= SWEEP_MIN
    assert all(kept.read_target(target(ORDERS, number)) is has[number] for number in range(100))
    assert all(kept.read_held(held(ORDERS, [number], [1]), 1) is holds[number] for number in range(100))


def test_the_number_of_interned_assignments_is_bounded() -> None:
    kept = InternedAssignments()
    first = kept.read_target(target(ORDERS, 0))
    # All of them are in use.
    used: list[object] = []

    for number in range(INTERNED_MAX + 10):
        used.append(kept.read_target(target(NOTES, number)))
        used.append(kept.read_held(held(NOTES, [number], [1]), 1))
        assert used[-2:] == [{NOTES: frozenset((number,))}, {NOTES: {number: 1}}]

    assert kept.read_target(target(ORDERS, 0)) == first
    assert len(kept._targets) <= INTERNED_MAX
    assert len(kept._held) <= INTERNED_MAX
