"""Incremental assignments equal those of homogeneous.py; inconsistent counts are left to it."""

from random import Random

import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.homogeneous import changed_members, owned_by, share_evenly
from barnabas.coordinators.group.assignors.shares import Shares
from barnabas.coordinators.group.assignors.spec import Assignment, TopicSpec

pytestmark = pytest.mark.kernel

ORDERS, NOTES = Uuid(bytes([1]) * 16), Uuid(bytes([0x80]) * 16)


def orders(*partitions: int) -> Assignment:
    return {ORDERS: frozenset(partitions)}


class Dealt:
    """A group whose members and targets change, with shares that follow."""

    def __init__(self, **topics: int) -> None:
        ids = {"orders": ORDERS, "notes": NOTES}
        self.topics = {ids[name]: TopicSpec(count) for name, count in topics.items()}
        self.members: dict[str, None] = {}
        self.targets: dict[str, Assignment] = {}
        self.shares = Shares(self.members, self.targets)

    @property
    def subscribed(self) -> frozenset[Uuid]:
        return frozenset(self.topics)

    def expected(self, joining: str) -> dict[str, Assignment]:
        owned = owned_by({**self.members, joining: None}, self.targets)
        found = share_evenly(owned, self.subscribed, self.topics)
        return {member_id: found[member_id] for member_id in changed_members(found, self.targets)}

    def joins(self, member_id: str) -> dict[str, Assignment]:
        dealt = self.shares.deal(member_id, self.subscribed, self.topics)
        assert dealt is not None, "it does not add up"
        assert list(dealt.items()) == list(self.expected(member_id).items())
        self.adds(member_id)
        for one, target in dealt.items():
            self.puts(one, target)
        return dealt

    def adds(self, member_id: str) -> None:
        if member_id not in self.members:
            self.members[member_id] = None
            self.shares.add(member_id)

    def puts(self, member_id: str, target: Assignment | None) -> bool:
        had = self.targets.pop(member_id, None) if target is None else self.targets.get(member_id)
        if target is not None:
            self.targets[member_id] = target
        return self.shares.put(member_id, had, target)

    def leaves(self, member_id: str) -> None:
        self.puts(member_id, None)
        del self.members[member_id]
        assert self.shares.remove(member_id)


def test_a_new_member_gets_the_excess_of_the_others() -> None:
    group = Dealt(orders=6)

    assert group.joins("a") == {"a": orders(0, 1, 2, 3, 4, 5)}
    assert group.joins("b") == {"a": orders(0, 1, 2), "b": orders(3, 4, 5)}
    assert group.joins("c") == {"a": orders(0, 1), "b": orders(3, 4), "c": orders(2, 5)}


def test_a_rejoin_of_a_current_member_changes_nothing() -> None:
    group = Dealt(orders=6)
    group.joins("a")
    group.joins("b")

    assert group.joins("a") == {}


def test_members_without_a_target_get_one_with_the_next_assignment() -> None:
    group = Dealt(orders=4)
    group.joins("a")
    group.adds("b")
    group.adds("c")

    assert list(group.joins("d")) == ["a", "b", "c", "d"]


def test_a_surplus_member_gets_an_empty_target() -> None:
    group = Dealt(orders=1)
    group.joins("a")

    assert group.joins("b") == {"b": {}}


def test_new_and_abandoned_partitions_are_assigned() -> None:
    group = Dealt(orders=4)
    for name in "abcd":
        group.joins(name)
    group.leaves("b")
    group.topics = {ORDERS: TopicSpec(6), NOTES: TopicSpec(3)}

    group.joins("e")

    given = [
        (topic, number)
        for target in group.targets.values()
        for topic, numbers in target.items()
        for number in numbers
    ]
    assert sorted(given) == [(ORDERS, number) for number in range(6)] + [(NOTES, n) for n in range(3)]


def test_remaining_members_keep_their_order() -> None:
    group = Dealt(orders=40)
    for number in range(40):
        group.joins(f"m-{number}")
    for number in range(40):
        if number % 10:
            group.leaves(f"m-{number}")

    assert list(group.joins("late")) == ["m-0", "m-10", "m-20", "m-30", "late"]
    assert group.joins("m-10") == {}


@pytest.mark.parametrize("seed", range(60))
def test_an_incremental_assignment_equals_a_full_one(seed: int) -> None:
    rng = Random(seed)
    group = Dealt(orders=rng.randrange(1, 40), notes=rng.randrange(0, 20))
    for number in range(60):
        what = rng.random()
        if what < 0.6 or not group.members:
            group.joins(f"m-{number}")
        elif what < 0.85:
            group.leaves(rng.choice(list(group.members)))
        elif what < 0.95:
            group.joins(rng.choice(list(group.members)))
        else:
            group.topics = {topic: TopicSpec(spec.partitions + 1) for topic, spec in group.topics.items()}
        if rng.random() < 0.1:
            group.shares = Shares(group.members, group.targets)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"a": orders(0, 1), "b": orders(1)}, id="a partition has two owners"),
        pytest.param({"a": orders(0, 4)}, id="a partition does not exist"),
        pytest.param({"a": {**orders(0), NOTES: frozenset({0})}}, id="nobody subscribes to the topic"),
    ],
)
def test_inconsistent_counts_are_not_used(odd: dict[str, Assignment]) -> None:
    shares = Shares(odd, odd)

    assert shares.deal("c", frozenset({ORDERS}), {ORDERS: TopicSpec(4)}) is None


def test_a_partition_that_goes_from_hand_to_hand_has_one_owner_in_the_end() -> None:
    group = Dealt(orders=2)
    group.joins("a")
    group.joins("b")

    group.puts("a", orders(0, 1))
    assert group.shares.deal("c", group.subscribed, group.topics) is None
    group.puts("b", {})

    assert list(group.joins("c")) == ["a", "c"]


def test_targets_without_a_member_are_reported_as_inconsistent() -> None:
    group = Dealt(orders=2)
    group.joins("a")

    assert not group.puts("stranger", orders(1))
    assert not group.shares.remove("a")
