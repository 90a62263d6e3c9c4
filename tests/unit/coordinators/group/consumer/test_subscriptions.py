"""Counting who subscribes to what."""

from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.consumer.subscriptions import ResolvedRegex, Subscriptions


def _member(*topics: str, regex: str = "") -> ConsumerMember:
    return ConsumerMember(id="m", topics=topics, regex=regex)


def _of(*members: ConsumerMember, **resolved: set[str]) -> Subscriptions:
    subscriptions = Subscriptions()
    for member in members:
        subscriptions.replace(None, member)
    for regex, topics in resolved.items():
        subscriptions.resolve(regex, ResolvedRegex(frozenset(topics), 0, 0))
    return subscriptions


def test_only_the_first_and_last_subscriber_change_the_topics_of_a_group() -> None:
    subscriptions = Subscriptions()

    assert subscriptions.replace(None, _member("a", "b")) == {"a", "b"}
    assert subscriptions.replace(None, _member("b", "c")) == {"c"}
    assert subscriptions.replace(_member("b", "c"), _member("b")) == {"c"}
    assert subscriptions.replace(_member("b"), None) == set()
    assert subscriptions.replace(_member("a", "b"), None) == {"a", "b"}
    assert list(subscriptions) == []


def test_a_topic_that_is_named_and_matched_is_there_once() -> None:
    subscriptions = _of(_member("a"), _member(regex="r"), r={"a", "b"})

    assert sorted(subscriptions) == ["a", "b"]
    assert subscriptions.resolve("r", None) == {"a", "b"}
    assert list(subscriptions) == ["a"]


def test_members_with_the_same_topics_are_homogeneous() -> None:
    assert _of().homogeneous(1)
    assert _of(_member("a", "b"), _member("a", "b")).homogeneous(2)
    assert not _of(_member("a", "b"), _member("a")).homogeneous(2)
    assert not _of(_member("a")).homogeneous(2)


def test_members_with_one_expression_are_homogeneous() -> None:
    both = _member(regex="r"), _member(regex="r")

    assert _of(*both, r={"a", "b"}).homogeneous(2)
    assert not _of(*both, r={"a", "b"}).homogeneous(3)
    assert not _of(_member(regex="r"), _member(regex="s"), r={"a"}, s={"b"}).homogeneous(2)


def test_a_name_beside_the_expression_may_be_of_one_member_only() -> None:
    assert not _of(_member("c", regex="r"), _member(regex="r"), r={"a"}).homogeneous(2)


def test_a_member_subscribes_to_its_topics_and_the_matches_of_its_expression() -> None:
    subscriptions = _of(_member("c", regex="r"), r={"a"})

    assert subscriptions.topics_of(_member("c", regex="r")) == {"a", "c"}
    assert subscriptions.topics_of(_member(regex="r")) == {"a"}
    assert subscriptions.topics_of(_member("c")) == {"c"}
    assert subscriptions.topics_of(_member("c", regex="unresolved")) == {"c"}
