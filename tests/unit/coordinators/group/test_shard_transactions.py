"""Transactional offsets in GroupShard: when they become visible, and replay of a log."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Outcome
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.writing import NextBatch, marker_batch, one_batch, stamped_batch
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.records.header import Codec
from support.group.mixed_stories import NO_DELAY, Classic, MixedStory
from support.group.stories import Stage
from unit.coordinators.group.offsets.offset_world import caller, codes, commit_request
from unit.coordinators.group.offsets.txn_requests import EPOCH, PRODUCER, VERSION, txn_request

pytestmark = pytest.mark.kernel

NOTHING = (-1, ErrorCode.NONE)
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


class LoggedStage(Stage):
    """`batches` is the log, as the shell would write it."""

    def __init__(self, shard: GroupShard) -> None:
        super().__init__(shard.timers, shard.apply, shard.expire)
        self.batches: list[bytes] = []

    def carry_out(self, outcome: Outcome) -> None:
        if outcome.records:
            self.batches.append(_batch(outcome))
        super().carry_out(outcome)


def _batch(outcome: Outcome) -> bytes:
    place = NextBatch(0, 0, 1 << 20, Codec.NONE)
    if isinstance(outcome.stamp, EndMarker):
        return marker_batch(outcome.stamp, now_ms=1)
    if isinstance(outcome.stamp, InTransaction):
        return stamped_batch(outcome.records, outcome.stamp, place, 1)
    return one_batch(outcome.records, place, 1)


class TxnStory(MixedStory):
    """A shard with one group, consumers of it, and producers that commit for them."""

    def __init__(self, settings: GroupSettings = NO_DELAY) -> None:
        super().__init__(settings)
        self.stage: LoggedStage = LoggedStage(self.shard)
        self.stage.carry_out(self.shard.loaded(self.stage.now))

    def commits(self, offset: int, *, partition: int = 0) -> ErrorCode:
        request = commit_request("g", {("orders", partition): offset})
        asked = self.stage.ask(lambda to, now: self.shard.offsets.commit(request, caller(8), to, now))
        return ErrorCode(asked.answer.topics[0].partitions[0].error_code)

    def commits_in_transaction(self, offset: int, *, partition: int = 0, **facts: Any) -> ErrorCode:
        request = txn_request({("orders", partition): offset}, **facts)
        asked = self.stage.ask(
            lambda to, now: self.shard.commit_in_transaction(request, caller(VERSION), to, now)
        )
        return ErrorCode(asked.answer.topics[0].partitions[0].error_code)

    def ends(self, *, producer: int = PRODUCER, commit: bool = True) -> None:
        marker = EndMarker(producer, EPOCH, commit, 0, 2)
        asked = self.stage.ask(lambda to, now: self.shard.end_transaction(marker, to, now))
        assert asked.answer is ErrorCode.NONE

    def deletes_group(self) -> None:
        asked = self.stage.ask(lambda to, _: self.shard.delete(["g"], to))
        assert [one.error_code for one in asked.answer] == [ErrorCode.NONE]

    def deletes_offset(self, partition: int = 0) -> None:
        topic = OffsetDeleteRequestTopic(
            name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        request = OffsetDeleteRequest(group_id="g", topics=[topic])
        self.stage.ask(lambda to, _: self.shard.delete_offsets(request, to))

    def committed(self, partition: int = 0, *, stable: bool = True) -> tuple[int, int]:
        """Offset and error code, as OffsetFetch has them."""
        topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[partition])
        asked = OffsetFetchRequestGroup(group_id="g", topics=[topic])
        found = self.shard.fetch(asked, require_stable=stable).topics[0].partitions[0]
        return found.committed_offset, found.error_code

    def check_log(self) -> None:
        """Whoever reads it knows what is known here, and is told the same."""
        after = TxnStory(self.settings)
        after.context.image = self.context.image
        for batch in self.stage.batches:
            after.shard.replay(batch)
        after.stage.carry_out(after.shard.loaded(after.stage.now))
        assert after.shard.durable() == self.shard.durable()
        for partition in range(3):
            for stable in (False, True):
                found = after.committed(partition, stable=stable)
                assert found == self.committed(partition, stable=stable)


# Each of these was asked of Kafka 4.3.0.
CLASSIC_GUARDS = [
    ({}, ErrorCode.NONE),
    ({"generation_id": 1, "member_id": "the member"}, ErrorCode.NONE),
    ({"generation_id": 1, "member_id": "the member", "group_instance_id": "one"}, ErrorCode.NONE),
    ({"generation_id": 1, "member_id": "other", "group_instance_id": "one"}, ErrorCode.FENCED_INSTANCE_ID),
    ({"generation_id": 1, "member_id": "the member", "group_instance_id": "?"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"generation_id": 2, "member_id": "the member"}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": -1, "member_id": "the member"}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": 1, "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
]


@pytest.mark.parametrize(("facts", "code"), CLASSIC_GUARDS)
@pytest.mark.parametrize("is_stable", [True, False])
def test_members_of_classic_groups_are_checked_while_they_await_assignment(
    is_stable: bool, facts: dict[str, Any], code: ErrorCode
) -> None:
    story = TxnStory()
    member = Classic(instance_id="one")
    if is_stable:
        story.is_classic_with(member, parts=[{"orders": [0]}])
    else:
        asked = story.asks_to_join_classically(member)
        story.stage.pass_time(0)
        member.id = asked.answer.member_id
        assert story.classic_group.state == "CompletingRebalance"
    if facts.get("member_id") == "the member":
        facts = {**facts, "member_id": member.id}

    assert story.commits_in_transaction(7, **facts) is code

    assert story.committed() == (UNSTABLE if code is ErrorCode.NONE else NOTHING)
    story.check_log()


CONSUMER_GUARDS = [
    ({}, ErrorCode.NONE),
    ({"generation_id": 2, "member_id": "m1"}, ErrorCode.NONE),
    ({"generation_id": 3, "member_id": "m1"}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": 1, "member_id": "m1"}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": 0, "member_id": "m1"}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": -1, "member_id": "m1"}, ErrorCode.ILLEGAL_GENERATION),
    ({"generation_id": 2, "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"generation_id": -1, "group_instance_id": "one"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ({"generation_id": -2}, ErrorCode.UNKNOWN_MEMBER_ID),
]


@pytest.mark.parametrize(("facts", "code"), CONSUMER_GUARDS)
def test_members_of_consumer_groups_are_checked_as_in_kafka(facts: dict[str, Any], code: ErrorCode) -> None:
    story = TxnStory()
    [member] = story.is_stable_with("m1")
    assert member.epoch == 2

    assert story.commits_in_transaction(7, **facts) is code

    assert story.committed() == (UNSTABLE if code is ErrorCode.NONE else NOTHING)
    story.check_log()


def test_an_older_epoch_may_commit_partitions_held_since_then() -> None:
    story = TxnStory()
    first = story.joins("m1")
    old = first.epoch
    second = story.joins("m2")
    story.settles(first, second)
    assert first.epoch > old
    kept, given = min(first.partitions()), min(second.partitions())

    assert (
        story.commits_in_transaction(7, partition=kept, generation_id=old, member_id="m1") is ErrorCode.NONE
    )
    refused = story.commits_in_transaction(7, partition=given, generation_id=old, member_id="m1")

    assert refused is ErrorCode.ILLEGAL_GENERATION


def test_a_session_does_not_begin_anew_with_a_commit_in_a_transaction() -> None:
    story = TxnStory()
    member = Classic(instance_id="one")
    story.is_classic_with(member, parts=[{"orders": [0]}])
    session = ("classic-session", "g", member.id)
    ends_ms = story.context.timers.get(session)
    story.stage.pass_time(1_000)

    story.commits_in_transaction(7, generation_id=member.generation, member_id=member.id)

    assert story.context.timers.get(session) == ends_ms


def test_stable_fetches_wait_until_all_transactions_have_ended() -> None:
    story = TxnStory()
    story.commits(1)
    story.commits_in_transaction(10, producer_id=1)
    story.commits_in_transaction(20, producer_id=2)
    assert (story.committed(), story.committed(stable=False)) == (UNSTABLE, (1, ErrorCode.NONE))

    story.ends(producer=2)
    assert (story.committed(), story.committed(stable=False)) == (UNSTABLE, (20, ErrorCode.NONE))
    story.ends(producer=1)
    assert story.committed() == (20, ErrorCode.NONE)
    story.check_log()


def test_fetching_all_offsets_marks_pending_ones() -> None:
    story = TxnStory()
    story.commits(1, partition=0)
    story.commits(2, partition=1)
    story.commits_in_transaction(10, partition=1)

    found = story.shard.fetch(OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=True)

    assert codes(found) == {("orders", 0): ErrorCode.NONE, ("orders", 1): ErrorCode.UNSTABLE_OFFSET_COMMIT}


def test_a_repeated_or_unneeded_marker_changes_nothing() -> None:
    story = TxnStory()
    story.ends()
    story.commits_in_transaction(7)
    story.ends()
    story.commits(8)
    story.ends()

    assert story.committed() == (8, ErrorCode.NONE)
    story.check_log()


def test_pending_offsets_prevent_expiry_of_offsets_and_groups() -> None:
    story = TxnStory()
    story.commits(1, partition=0)
    story.commits(2, partition=1)
    story.commits_in_transaction(10, partition=0)

    story.stage.pass_time(2 * story.settings.offsets_retention_ms)
    assert story.committed(0, stable=False) == (1, ErrorCode.NONE)
    assert story.committed(1) == NOTHING
    story.check_log()

    story.ends(commit=False)
    story.stage.pass_time(2 * story.settings.offsets_retention_check_interval_ms)
    assert story.committed(0) == NOTHING
    assert story.context.groups == {}
    story.check_log()


def test_a_group_with_pending_offsets_only_stays_until_its_marker() -> None:
    story = TxnStory()
    story.commits_in_transaction(7)

    story.stage.pass_time(2 * story.settings.offsets_retention_ms)
    assert list(story.context.groups) == ["g"]
    story.ends()

    assert story.committed() == (7, ErrorCode.NONE)
    story.check_log()


def test_a_group_created_by_a_transaction_is_removed_by_its_abort() -> None:
    story = TxnStory()
    story.commits_in_transaction(7)
    assert list(story.context.groups) == ["g"]
    story.ends(commit=False)

    story.stage.pass_time(2 * story.settings.offsets_retention_check_interval_ms)

    assert story.context.groups == {}
    story.check_log()


def test_deleting_a_group_drops_pending_offsets_for_good() -> None:
    story = TxnStory()
    story.commits(1, partition=0)
    story.commits_in_transaction(10, partition=0)
    story.commits_in_transaction(11, partition=1)

    story.deletes_group()
    assert [story.committed(partition) for partition in range(2)] == [NOTHING, NOTHING]
    story.check_log()
    story.ends()

    assert [story.committed(partition) for partition in range(2)] == [NOTHING, NOTHING]
    assert story.context.groups == {}
    story.check_log()


def test_deleting_an_offset_drops_its_pending_offsets() -> None:
    story = TxnStory()
    story.commits_in_transaction(10, partition=0)
    story.commits_in_transaction(11, partition=1)

    story.deletes_offset(0)
    story.ends()

    assert [story.committed(partition) for partition in range(2)] == [NOTHING, (11, ErrorCode.NONE)]
    story.check_log()


def test_pending_offsets_are_removed_with_their_topic() -> None:
    story = TxnStory()
    story.commits_in_transaction(10)

    story.has_topics({})
    assert story.committed() == NOTHING
    story.has_topics({"orders": 6})
    story.ends()

    assert story.committed() == NOTHING
    story.check_log()


class Steps(NamedTuple):
    """One thing that happens to a shard: its name, a partition and a producer that it is about."""

    what: str
    partition: int
    producer: int


STEPS = st.lists(
    st.builds(
        Steps,
        st.sampled_from(
            ["plain", "transaction", "commit", "abort", "delete", "delete group", "topic", "join", "time"]
        ),
        st.integers(0, 2),
        st.integers(1, 3),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(STEPS)
def test_replaying_the_log_gives_the_same_state(steps: list[Steps]) -> None:
    story = TxnStory()
    for number, step in enumerate(steps):
        happens(story, step, number)
        story.check_log()

    for producer in range(1, 4):
        story.ends(producer=producer)
    assert UNSTABLE not in [story.committed(partition) for partition in range(3)]
    story.check_log()


def happens(story: TxnStory, step: Steps, offset: int) -> None:
    match step.what:
        case "plain":
            story.commits(offset, partition=step.partition)
        case "transaction":
            story.commits_in_transaction(offset, partition=step.partition, producer_id=step.producer)
        case "commit" | "abort":
            story.ends(producer=step.producer, commit=step.what == "commit")
        case "delete":
            story.deletes_offset(step.partition)
        case "delete group":
            story.stage.ask(lambda to, _: story.shard.delete(["g"], to))
        case "topic":
            story.has_topics({})
            story.has_topics({"orders": 6})
        case "join":
            story.leaves(story.joins(f"m{offset}"))
        case _:
            story.stage.pass_time(story.settings.offsets_retention_ms)
