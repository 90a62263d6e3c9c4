"""The uniform assignor gives everybody as much, and moves nothing without need."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors import Assignment, MemberSpec, TopicSpec, assign

pytestmark = pytest.mark.kernel

ORDERS, NOTES = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)
# In Kafka's order of ids a set first bit is a sign.
NEGATIVE = Uuid(bytes([0x80]) * 16)


def member(*topics: Uuid, owned: Assignment | None = None) -> MemberSpec:
    return MemberSpec(None, None, frozenset(topics), owned or {})


def orders(*partitions: int) -> Assignment:
    return {ORDERS: frozenset(partitions)}


def uniform(members: dict[str, MemberSpec], **partitions: int) -> dict[str, Assignment]:
    ids = {"orders": ORDERS, "notes": NOTES, "negative": NEGATIVE}
    topics = {ids[name]: TopicSpec(count) for name, count in partitions.items()}
    return assign("uniform", members, topics, homogeneous=True)


def test_a_new_group_shares_evenly() -> None:
    assert uniform({"a": member(ORDERS), "b": member(ORDERS), "c": member(ORDERS)}, orders=5) == {
        "a": orders(0),
        "b": orders(1, 2),
        "c": orders(3, 4),
    }


def test_topics_are_given_out_in_the_order_of_their_ids() -> None:
    both = member(NEGATIVE, ORDERS)

    assert uniform({"a": both, "b": both}, orders=2, negative=2) == {
        "a": {NEGATIVE: frozenset({0, 1})},
        "b": {ORDERS: frozenset({0, 1})},
    }


def test_a_new_member_gets_the_excess_of_the_others() -> None:
    members = {
        "a": member(ORDERS, owned=orders(0, 1, 2)),
        "b": member(ORDERS, owned=orders(3, 4, 5)),
        "c": member(ORDERS),
    }

    assert uniform(members, orders=6) == {"a": orders(0, 1), "b": orders(3, 4), "c": orders(2, 5)}


def test_only_the_partitions_of_a_leaving_member_move() -> None:
    members = {"a": member(ORDERS, owned=orders(0, 3)), "c": member(ORDERS, owned=orders(2, 5))}

    assert uniform(members, orders=6) == {"a": orders(0, 1, 3), "c": orders(2, 4, 5)}


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_a_member_keeps_one_more_partition_in_any_order_of_members(order: str) -> None:
    owned = {"a": orders(0), "b": orders(1, 2), "c": orders(3)}
    members = {name: member(ORDERS, owned=owned[name]) for name in order}

    assigned = uniform(members, orders=4)

    assert all(assigned[name] is owned[name] for name in order)


def test_new_partitions_go_to_members_with_the_fewest() -> None:
    members = {"a": member(ORDERS, owned=orders(0, 1)), "b": member(ORDERS, owned=orders(2))}

    assert uniform(members, orders=4) == {"a": orders(0, 1), "b": orders(2, 3)}


def test_a_topic_without_subscribers_is_unassigned() -> None:
    owned = {ORDERS: frozenset({0}), NOTES: frozenset({0})}

    assert uniform({"a": member(ORDERS, owned=owned)}, orders=1) == {"a": orders(0)}


def test_a_member_that_changes_leaves_its_old_assignment_as_it_was() -> None:
    owned = orders(0)

    assert uniform({"a": member(ORDERS, owned=owned)}, orders=2) == {"a": orders(0, 1)}

    assert owned == orders(0)


def test_members_that_subscribe_to_nothing_get_nothing() -> None:
    nothing: Assignment = {}

    assigned = uniform({"a": member(owned=nothing), "b": member(owned=orders(0))}, orders=1)

    assert assigned == {"a": {}, "b": {}}


@pytest.mark.parametrize("homogeneous", [True, False])
def test_of_two_owners_of_a_partition_the_first_keeps_it(homogeneous: bool) -> None:
    members = {"a": member(ORDERS, owned=orders(0, 1)), "b": member(ORDERS, owned=orders(1))}

    assigned = assign("uniform", members, {ORDERS: TopicSpec(3)}, homogeneous=homogeneous)

    assert assigned == {"a": orders(0, 1), "b": orders(2)}


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("unknown", [2, 7])
def test_an_unknown_partition_does_not_count(homogeneous: bool, unknown: int) -> None:
    members = {"a": member(ORDERS, owned=orders(0, unknown)), "b": member(ORDERS)}

    assigned = assign("uniform", members, {ORDERS: TopicSpec(2)}, homogeneous=homogeneous)

    assert assigned == {"a": orders(0), "b": orders(1)}
