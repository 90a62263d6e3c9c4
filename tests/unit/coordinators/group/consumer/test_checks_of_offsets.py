"""Checks of commits, fetches and deletions in a consumer group."""

from dataclasses import replace

import pytest

from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ClassicMetadata
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from support.group.consumer_stories import Consumer, ConsumerStory, topic_id

ORDERS = topic_id("orders")


def _commits(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    *,
    partition: int = 0,
    is_txn: bool = False,
    version: int = 9,
) -> ErrorCode:
    try:
        group.check_commit(member_id, None, epoch, is_txn=is_txn, version=version)
        group.check_commit_of(ORDERS, partition, epoch, member_id)
    except GroupError as error:
        return error.code
    return ErrorCode.NONE


def _fetches(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        group.check_fetch(member_id, epoch)
    except GroupError as error:
        return error.code
    return ErrorCode.NONE


def _story_with_a_share() -> tuple[ConsumerStory, Consumer]:
    """A member in epoch 4 that has partitions 0 to 2 since epoch 2 and the others since epoch 4."""
    story = ConsumerStory()
    stays, goes = story.is_stable_with("stays", "goes")
    story.leaves(goes)
    story.beats(stays)
    assert story.group.members["stays"].assigned[ORDERS] == {0: 2, 1: 2, 2: 2, 3: 4, 4: 4, 5: 4}
    return story, stays


def test_a_member_commits_in_its_epoch() -> None:
    story, _ = _story_with_a_share()

    assert _commits(story.group, "stays", 4) is ErrorCode.NONE
    assert _commits(story.group, "stays", 5) is ErrorCode.STALE_MEMBER_EPOCH
    assert _commits(story.group, "nobody", 4) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_older_epoch_may_commit_partitions_assigned_then() -> None:
    story, _ = _story_with_a_share()

    assert _commits(story.group, "stays", 2, partition=0) is ErrorCode.NONE
    assert _commits(story.group, "stays", 3, partition=0) is ErrorCode.NONE
    assert _commits(story.group, "stays", 1, partition=0) is ErrorCode.STALE_MEMBER_EPOCH
    assert _commits(story.group, "stays", 3, partition=5) is ErrorCode.STALE_MEMBER_EPOCH
    assert _commits(story.group, "stays", 3, partition=6) is ErrorCode.STALE_MEMBER_EPOCH
    assert _commits(story.group, "stays", -1, partition=0) is ErrorCode.STALE_MEMBER_EPOCH


def test_partitions_being_revoked_may_be_committed() -> None:
    story = ConsumerStory()
    old = story.joins("old")
    story.joins("new")
    story.asks(old, topic_partitions=old.says())
    revoking = story.group.members["old"].revoking[ORDERS]
    assert revoking

    assert _commits(story.group, "old", 2, partition=next(iter(revoking))) is ErrorCode.NONE


def test_members_of_the_classic_protocol_get_generation_errors() -> None:
    story, _ = _story_with_a_share()
    member = story.group.members["stays"]
    story.group.put_member(replace(member, classic=ClassicMetadata(10_000, (("range", b""),))))

    assert _commits(story.group, "stays", 4, version=8) is ErrorCode.NONE
    assert _commits(story.group, "stays", 5) is ErrorCode.ILLEGAL_GENERATION
    assert _commits(story.group, "stays", 3, partition=5) is ErrorCode.ILLEGAL_GENERATION
    assert _fetches(story.group, "stays", 3) is ErrorCode.ILLEGAL_GENERATION


def test_versions_without_epochs_are_rejected_for_consumer_members() -> None:
    story, _ = _story_with_a_share()

    assert _commits(story.group, "stays", 4, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert _commits(story.group, "stays", 4, version=0, is_txn=True) is ErrorCode.NONE


def test_an_administrator_commits_to_an_empty_group_only() -> None:
    story, member = _story_with_a_share()

    assert _commits(story.group, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    story.leaves(member)
    assert _commits(story.group, "", -1) is ErrorCode.NONE


def test_a_transaction_need_not_say_for_which_member_it_commits() -> None:
    story, _ = _story_with_a_share()

    assert _commits(story.group, "", -1, is_txn=True) is ErrorCode.NONE
    assert _commits(story.group, "", 3, is_txn=True) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_are_fetched_without_a_member_or_in_its_epoch() -> None:
    story, _ = _story_with_a_share()

    assert _fetches(story.group, None, -1) is ErrorCode.NONE
    assert _fetches(story.group, "stays", 4) is ErrorCode.NONE
    assert _fetches(story.group, "stays", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert _fetches(story.group, "nobody", 4) is ErrorCode.UNKNOWN_MEMBER_ID
    assert _fetches(story.group, None, 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_with_members_is_not_deleted() -> None:
    story, member = _story_with_a_share()

    with pytest.raises(GroupError) as refused:
        story.group.check_delete()

    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    story.leaves(member)
    story.group.check_delete()


def test_subscribed_topics_are_distinguished() -> None:
    story, _ = _story_with_a_share()

    assert story.group.is_subscribed_to("orders")
    assert not story.group.is_subscribed_to("payments")
    assert story.group.offsets_expire_from(77) == 77


def test_partitions_being_revoked_may_be_committed_in_an_older_epoch() -> None:
    story, member = _story_with_a_share()
    for new in ("b", "c", "d"):
        story.joins(new)
    story.asks(member, topic_partitions=member.says())
    revoking = story.group.members["stays"].revoking[ORDERS]

    assert set(revoking.values()) == {2, 4}
    for partition, since in revoking.items():
        assert _commits(story.group, "stays", since, partition=partition) is ErrorCode.NONE
        assert _commits(story.group, "stays", since - 1, partition=partition) is ErrorCode.STALE_MEMBER_EPOCH
