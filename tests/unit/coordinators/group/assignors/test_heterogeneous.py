"""The uniform assignor where members subscribe to different topics."""

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors import Assignment, MemberSpec, TopicSpec, assign

ORDERS, NOTES = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)
NEGATIVE = Uuid(bytes([0x80]) * 16)


def member(*topics: Uuid, owned: Assignment | None = None) -> MemberSpec:
    return MemberSpec(None, None, frozenset(topics), owned or {})


def uniform(members: dict[str, MemberSpec], **partitions: int) -> dict[str, Assignment]:
    ids = {"orders": ORDERS, "notes": NOTES, "negative": NEGATIVE}
    topics = {ids[name]: TopicSpec(count) for name, count in partitions.items()}
    return assign("uniform", members, topics, homogeneous=False)


def test_the_only_subscriber_of_a_topic_gets_fewer_other_partitions() -> None:
    members = {"a": member(ORDERS, NOTES), "b": member(NOTES), "c": member(NOTES)}

    assert uniform(members, orders=2, notes=4) == {
        "a": {ORDERS: frozenset({0, 1})},
        "b": {NOTES: frozenset({0, 2})},
        "c": {NOTES: frozenset({1, 3})},
    }


def test_topics_with_fewer_subscribers_are_assigned_first() -> None:
    members = {"a": member(ORDERS), "b": member(ORDERS, NOTES)}

    assert uniform(members, orders=2, notes=1) == {
        "a": {ORDERS: frozenset({0, 1})},
        "b": {NOTES: frozenset({0})},
    }


def test_equal_topics_are_assigned_in_the_order_of_their_ids() -> None:
    members = {"a": member(ORDERS, NEGATIVE), "b": member(ORDERS, NEGATIVE)}

    assert uniform(members, orders=1, negative=1) == {
        "a": {NEGATIVE: frozenset({0})},
        "b": {ORDERS: frozenset({0})},
    }


def test_a_member_with_two_more_partitions_gives_one_away() -> None:
    members = {"a": member(ORDERS, owned={ORDERS: frozenset({0, 1, 2})}), "b": member(ORDERS, NOTES)}

    assert uniform(members, orders=3, notes=1) == {
        "a": {ORDERS: frozenset({0, 1})},
        "b": {ORDERS: frozenset({2}), NOTES: frozenset({0})},
    }


def test_a_member_with_one_more_partition_keeps_it() -> None:
    two, one = {ORDERS: frozenset({0, 1})}, {NOTES: frozenset({0})}
    members = {"a": member(ORDERS, owned=two), "b": member(ORDERS, NOTES, owned=one)}

    assigned = uniform(members, orders=2, notes=1)

    assert assigned["a"] is two
    assert assigned["b"] is one


def test_a_topic_is_looked_at_again_when_another_has_changed() -> None:
    # Nobody shares a topic with both a and c but b: what c has too much comes to a in several rounds.
    members = {
        "a": member(ORDERS),
        "b": member(ORDERS, NOTES, owned={ORDERS: frozenset(range(4))}),
        "c": member(NOTES, owned={NOTES: frozenset(range(6))}),
    }

    assigned = uniform(members, orders=4, notes=6)

    assert {name: sum(map(len, of.values())) for name, of in assigned.items()} == {"a": 3, "b": 3, "c": 4}


def test_partitions_of_an_unsubscribed_topic_go_to_other_members() -> None:
    members = {
        "a": member(NOTES, owned={ORDERS: frozenset({0}), NOTES: frozenset({0})}),
        "b": member(ORDERS, NOTES),
    }

    assert uniform(members, orders=1, notes=1) == {
        "a": {NOTES: frozenset({0})},
        "b": {ORDERS: frozenset({0})},
    }


def test_a_member_that_changes_leaves_its_old_assignment_as_it_was() -> None:
    owned = {ORDERS: frozenset({0})}

    assigned = uniform({"a": member(ORDERS, owned=owned), "b": member()}, orders=2)

    assert assigned == {"a": {ORDERS: frozenset({0, 1})}, "b": {}}
    assert owned == {ORDERS: frozenset({0})}


def test_an_assignment_that_ends_unchanged_is_the_same_object() -> None:
    owned = {NOTES: frozenset({1, 2})}
    # a gets the fourth note first. Then c takes the order from b, and b the note from a.
    members = {
        "a": member(ORDERS, NOTES, owned=owned),
        "b": member(ORDERS, NOTES, owned={ORDERS: frozenset({0}), NOTES: frozenset({0})}),
        "c": member(ORDERS),
    }

    assigned = uniform(members, orders=1, notes=4)

    assert assigned["a"] is owned
    assert assigned["b"] == {NOTES: frozenset({0, 3})}
    assert assigned["c"] == {ORDERS: frozenset({0})}
