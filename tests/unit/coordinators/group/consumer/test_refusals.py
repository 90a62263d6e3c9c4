"""Heartbeats that are refused: the code that Kafka gives, and nothing changes."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.coordinators.group.consumer.patterns import Found
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import ConsumerGroupHeartbeatTopicPartitions
from support.group.consumer_stories import AT_ONCE, Consumer, ConsumerStory, topic_id

SOMETHING = ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id("orders"), partitions=[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_id": ""},
        {"member_id": " "},
        {"group_id": ""},
        {"group_id": "  "},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [SOMETHING]},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
    ],
)
def test_a_join_that_is_not_whole_is_an_invalid_request(wrong: dict[str, Any]) -> None:
    story = ConsumerStory()

    answer = story.asks_to_join(Consumer("a"), **wrong)

    assert story.error(answer) is ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert not story.context.groups


def test_version_0_is_given_an_id_when_it_joins() -> None:
    story = ConsumerStory()

    answer = story.asks_to_join(Consumer(""), version=0)

    assert answer.error_code == 0
    assert answer.member_id is not None
    assert len(answer.member_id) == 22
    assert list(story.group.members) == [answer.member_id]


def test_version_0_needs_a_member_id_to_leave() -> None:
    story = ConsumerStory()
    story.joins("a")

    answer = story.asks(Consumer(""), version=0, member_epoch=-1)

    assert story.error(answer) is ErrorCode.INVALID_REQUEST


def test_an_unknown_assignor_is_refused_with_the_supported_ones() -> None:
    story = ConsumerStory()

    answer = story.asks_to_join(Consumer("a", assignor="sticky"))

    assert story.error(answer) is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in (answer.error_message or "")


@pytest.mark.parametrize("epoch", [1, -1])
def test_an_unknown_group_is_not_found(epoch: int) -> None:
    story = ConsumerStory()

    answer = story.asks(Consumer("a"), member_epoch=epoch)

    assert story.error(answer) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, -1])
def test_an_unknown_member_is_refused(epoch: int) -> None:
    story = ConsumerStory()
    story.joins("a")

    answer = story.asks(Consumer("b"), member_epoch=epoch)

    assert story.error(answer) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_epoch_of_the_future_is_fenced() -> None:
    story = ConsumerStory()
    member = story.joins("a")

    answer = story.asks(member, member_epoch=member.epoch + 1)

    assert story.error(answer) is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_epoch_of_before_the_last_is_fenced() -> None:
    story = ConsumerStory()
    member, other = story.is_stable_with("a", "b")
    story.leaves(other)
    story.beats(member)

    answer = story.asks(member, member_epoch=2, topic_partitions=member.says())

    assert story.error(answer) is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_fenced_with_unassigned_partitions() -> None:
    story = ConsumerStory()
    member, other = story.is_stable_with("a", "b")
    story.leaves(other)
    owned = member.says()
    story.beats(member)
    previous = story.group.members["a"].previous_epoch
    foreign = ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id("orders"), partitions=[77])

    assert story.asks(member, member_epoch=previous, topic_partitions=owned).error_code == 0
    for said in ([foreign], [ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id("x"))], None):
        answer = story.asks(member, member_epoch=previous, topic_partitions=said)
        assert story.error(answer) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_full_group_accepts_only_its_members() -> None:
    story = ConsumerStory(replace(AT_ONCE, consumer_size_max=2))
    first, second = story.is_stable_with("a", "b")
    before = len(story.stage.records)

    answer = story.asks_to_join(Consumer("c"))

    assert story.error(answer) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert story.stage.records[before:] == []
    assert story.asks_to_join(first).error_code == 0
    story.leaves(second)
    assert story.asks_to_join(Consumer("c")).error_code == 0


def test_an_invalid_regular_expression_is_rejected() -> None:
    story = ConsumerStory()
    member = story.joins("a")
    before = len(story.stage.records)

    answer = story.asks(member, subscribed_topic_regex="ord(ers", topic_partitions=member.says())

    assert story.error(answer) is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "ord(ers" in (answer.error_message or "")
    assert story.stage.records[before:] == []
    story.beats(member)
    assert member.partitions() == {0, 1, 2, 3, 4, 5}


def test_a_state_of_a_later_release_is_fenced_until_the_member_has_nothing() -> None:
    story = ConsumerStory()
    member = story.joins("a")
    group = story.group
    group.put_member(replace(group.members["a"], state=type(group.members["a"].state)(99)))

    answer = story.asks(member, topic_partitions=member.says())

    assert story.error(answer) is ErrorCode.FENCED_MEMBER_EPOCH
    assert story.joins(Consumer("a")).partitions() == {0, 1, 2, 3, 4, 5}


def test_an_instance_id_that_a_dynamic_member_makes_up_is_unknown() -> None:
    story = ConsumerStory()
    member = story.joins("a")
    story.beats(member)

    answer = story.asks(member, instance_id="made up")

    assert story.error(answer) is ErrorCode.UNKNOWN_MEMBER_ID


# What the log would not take

LOG_BYTES_MAX = 100_000


def test_a_subscription_too_large_for_the_log_is_rejected() -> None:
    story = ConsumerStory(batch_bytes_max=LOG_BYTES_MAX)
    first = story.joins("first")
    before = story.shard.durable()

    answer = story.asks_to_join(Consumer("second", topics=[f"{n:0200}" for n in range(600)]))

    assert story.error(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "but the limit is" in (answer.error_message or "")
    assert story.shard.durable() == before
    assert list(story.group.members) == ["first"]
    story.settles(first)
    assert len(first.partitions()) == 6


def test_a_large_subscription_that_fits_is_accepted() -> None:
    story = ConsumerStory(batch_bytes_max=LOG_BYTES_MAX)

    story.joins("first", topics=[f"{n:0200}" for n in range(400)])

    assert len(story.group.members["first"].topics) == 400


def test_an_expression_for_more_topics_than_the_log_takes_is_refused() -> None:
    story = ConsumerStory(batch_bytes_max=LOG_BYTES_MAX, topics={f"{n:0200}": 1 for n in range(600)})
    story.context.patterns.put(".*", Found(frozenset(story.topics), 1))

    answer = story.asks_to_join(Consumer("a", topics=None, regex=".*"))

    assert story.error(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not story.context.groups


def test_more_partitions_than_the_log_takes_are_not_assigned() -> None:
    story = ConsumerStory(batch_bytes_max=LOG_BYTES_MAX, topics={"orders": 12_000})

    answer = story.asks_to_join(Consumer("a"))

    assert story.error(answer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not story.context.groups
