"""The range assignor cuts topics into ranges, the same for members that subscribe to the same."""

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors import Assignment, MemberSpec, TopicSpec, assign

ORDERS, CUSTOMERS, NOTES = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))


def member(*topics: Uuid, instance: str | None = None, owned: Assignment | None = None) -> MemberSpec:
    return MemberSpec(instance, None, frozenset(topics), owned or {})


def ranges(members: dict[str, MemberSpec], **partitions: int) -> dict[str, Assignment]:
    ids = {"orders": ORDERS, "customers": CUSTOMERS, "notes": NOTES}
    topics = {ids[name]: TopicSpec(count) for name, count in partitions.items()}
    return assign("range", members, topics, homogeneous=len({one.topics for one in members.values()}) == 1)


def test_the_first_members_get_the_longer_ranges() -> None:
    members = {"c": member(ORDERS), "a": member(ORDERS), "b": member(ORDERS)}

    assert ranges(members, orders=8) == {
        "a": {ORDERS: frozenset({0, 1, 2})},
        "b": {ORDERS: frozenset({3, 4, 5})},
        "c": {ORDERS: frozenset({6, 7})},
    }


def test_members_beyond_the_last_partition_get_nothing() -> None:
    members = {"a": member(ORDERS), "b": member(ORDERS), "c": member(ORDERS)}

    assert ranges(members, orders=2) == {
        "a": {ORDERS: frozenset({0})},
        "b": {ORDERS: frozenset({1})},
        "c": {},
    }


def test_equal_keys_of_two_topics_meet_in_one_member() -> None:
    members = {"a": member(ORDERS, CUSTOMERS), "b": member(ORDERS, CUSTOMERS)}

    assigned = ranges(members, orders=5, customers=5)

    assert assigned["a"] == {ORDERS: frozenset({0, 1, 2}), CUSTOMERS: frozenset({0, 1, 2})}
    assert assigned["b"] == {ORDERS: frozenset({3, 4}), CUSTOMERS: frozenset({3, 4})}


def test_a_topic_is_cut_for_its_own_subscribers() -> None:
    members = {"a": member(ORDERS, NOTES), "b": member(ORDERS), "c": member(NOTES)}

    assert ranges(members, orders=4, notes=3) == {
        "a": {ORDERS: frozenset({0, 1}), NOTES: frozenset({0, 1})},
        "b": {ORDERS: frozenset({2, 3})},
        "c": {NOTES: frozenset({2})},
    }


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    members = {"a": member(ORDERS), "x": member(ORDERS, instance="2"), "y": member(ORDERS, instance="1")}

    assert ranges(members, orders=3) == {
        "y": {ORDERS: frozenset({0})},
        "x": {ORDERS: frozenset({1})},
        "a": {ORDERS: frozenset({2})},
    }


def test_a_returning_static_member_moves_no_partition() -> None:
    before = ranges({"z": member(ORDERS, instance="1"), "b": member(ORDERS, instance="2")}, orders=4)

    after = ranges({"b": member(ORDERS, instance="2"), "a": member(ORDERS, instance="1")}, orders=4)

    assert after == {"a": before["z"], "b": before["b"]}


def test_ids_are_in_the_order_that_java_has_for_them() -> None:
    fullwidth_a, castle = "\uff21", "\U0001f3f0"

    assigned = ranges({fullwidth_a: member(ORDERS), castle: member(ORDERS)}, orders=2)

    assert assigned == {castle: {ORDERS: frozenset({0})}, fullwidth_a: {ORDERS: frozenset({1})}}


def test_a_member_that_keeps_its_ranges_gets_the_same_object_back() -> None:
    kept = {ORDERS: frozenset({0, 1})}
    changed = {ORDERS: frozenset({2, 3, 4})}

    assigned = ranges({"a": member(ORDERS, owned=kept), "b": member(ORDERS, owned=changed)}, orders=4)

    assert assigned["a"] is kept
    assert assigned["b"] == {ORDERS: frozenset({2, 3})}


def test_without_subscriptions_no_member_gets_partitions() -> None:
    owned = {ORDERS: frozenset({0})}

    assert ranges({"a": member(owned=owned), "b": member()}, orders=4) == {"a": {}, "b": {}}


def test_a_group_without_members_has_no_assignment() -> None:
    assert assign("range", {}, {}, homogeneous=True) == {}
    assert assign("uniform", {}, {}, homogeneous=True) == {}
