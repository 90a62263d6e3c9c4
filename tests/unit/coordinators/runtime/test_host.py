"""ShardHost: records are written, applied and answered when committed; closing refuses pending requests."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, cast

import pytest

from barnabas.coordinators.decision.outcome import Caller, Now, Outcome, Reply
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import (
    ANSWERS_AT_ONCE_MAX,
    BATCHING_TRIED_AFTER_MIN,
    TIMERS_AT_ONCE_MAX,
    ShardHost,
    State,
)
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.group_admin import DeletableGroupResult
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.records.decode import decode_batch
from barnabas.sim.world import World, run_sim
from support.led_partitions import MemoryPartition

pytestmark = pytest.mark.kernel

CALLER = Caller("client", "/127.0.0.1", 3)
COMMIT_TIMEOUT_MS = 5_000
SESSION_MS = 6_000


class Desk:
    """A host with its partition, and those who ask."""

    def __init__(self, world: World, *, batch_bytes_max: int = 1 << 20) -> None:
        self.partition = MemoryPartition(batch_bytes_max=batch_bytes_max)
        self.shard = GroupShard(ShardContext(GroupSettings(initial_rebalance_delay_ms=0), Random(1)))
        self.lost: list[ShardHost[GroupShard]] = []
        self.host = ShardHost(
            self.partition,
            self.shard,
            world.clock,
            commit_timeout_ms=lambda: COMMIT_TIMEOUT_MS,
            on_lost=self.lost.append,
        )

    def commits(
        self, offset: int, *, topic: str = "orders", metadata: str = "", partitions: int = 1
    ) -> Reply:
        request = OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=number, committed_offset=offset, committed_metadata=metadata
                        )
                        for number in range(partitions)
                    ],
                )
            ],
        )
        reply = Reply(lambda code: code)
        self.host.ask(lambda _shard, _to, now: self.shard.offsets.commit(request, CALLER, reply, now), reply)
        return reply

    def beats(self) -> Reply:
        """As nobody: refused, and nothing is written."""
        request = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")
        reply = Reply(lambda code: code)
        self.host.ask(lambda _shard, _to, now: self.shard.heartbeat(request, CALLER, reply, now), reply)
        return reply

    def joins(self, *, session_ms: int = SESSION_MS, rebalance_ms: int = 60_000) -> Reply:
        """A first join of an old client: it waits until the group begins."""
        request = JoinGroupRequest(
            group_id="members",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
        )
        reply = Reply(lambda code: code)
        self.host.ask(lambda _shard, _to, now: self.shard.join(request, CALLER, reply, now), reply)
        return reply

    def takes_image(self, image: MetadataImage, *, changed: frozenset[str], deleted: frozenset[str]) -> None:
        self.host.run(lambda _: self.shard.take_image(image, changed=changed, deleted=deleted))

    def commit_up_to(self, offset: int) -> None:
        self.partition.committed_offset = offset
        self.host.committed()


def told(story: Callable[[Desk], Awaitable[None]], **how: int) -> None:
    async def live(world: World) -> None:
        desk = Desk(world, **how)
        desk.host.activate()
        await story(desk)
        desk.host.close()

    run_sim(live)


# Answers


def test_an_answer_is_immediate_if_the_log_commits_immediately() -> None:
    async def story(desk: Desk) -> None:
        assert isinstance(desk.commits(7).answer, OffsetCommitResponse)
        assert [len(decode_batch(batch)) for batch in desk.partition.batches] == [1]

    told(story)


def test_answers_wait_for_the_high_watermark_in_order() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.is_stuck = True
        first, second, third = desk.commits(1), desk.commits(2), desk.commits(3)
        desk.commit_up_to(2)
        assert [first.is_given, second.is_given, third.is_given] == [True, True, False]

        desk.commit_up_to(3)
        assert third.is_given

    told(story)


def test_an_outcome_without_records_waits_for_earlier_records() -> None:
    """It may have been answered by a state that is lost when this broker is not the leader any more."""

    async def story(desk: Desk) -> None:
        desk.partition.is_stuck = True
        desk.commits(1)
        reader = desk.beats()
        assert not reader.is_given

        desk.commit_up_to(1)
        assert reader.is_given

    told(story)


def test_a_commit_timeout_refuses_the_request_once() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.is_stuck = True
        early = desk.commits(1)
        await asyncio.sleep(1)
        late = desk.commits(2)

        await asyncio.sleep(COMMIT_TIMEOUT_MS / 1_000 - 0.9)
        assert early.answer is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not late.is_given

        desk.commit_up_to(2)
        assert isinstance(late.answer, OffsetCommitResponse)
        assert desk.host.state is State.ACTIVE

    told(story)


# Writing


def test_a_failed_write_refuses_every_request_once_and_loses_the_shard() -> None:
    async def story(desk: Desk) -> None:
        waiting = desk.joins()
        desk.partition.is_stuck = True
        uncommitted = desk.commits(1)
        desk.partition.refusal = ErrorCode.NOT_COORDINATOR

        refused = desk.commits(2)

        assert waiting.answer == JoinGroupResponse(
            error_code=ErrorCode.NOT_COORDINATOR,
            protocol_name=None,
            member_id=waiting.answer.member_id,  # type: ignore[attr-defined]
        )
        assert uncommitted.answer is refused.answer is ErrorCode.NOT_COORDINATOR
        assert desk.lost == [desk.host]
        assert desk.host.state is State.LOST

    told(story)


def test_a_first_join_whose_group_cannot_be_written_is_refused() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.refusal = ErrorCode.NOT_COORDINATOR

        waiting = desk.joins()

        assert waiting.answer.error_code == ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
        assert desk.partition.batches == []

    told(story)


def test_pending_requests_get_the_error_of_the_log() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert desk.commits(1).answer is ErrorCode.COORDINATOR_NOT_AVAILABLE

    told(story)


@pytest.mark.parametrize("is_busy", [False, True])
def test_an_oversized_commit_is_refused_without_affecting_others(is_busy: bool) -> None:
    async def story(desk: Desk) -> None:
        waiting = desk.joins()
        before = await busy(desk) if is_busy else []
        batches = len(desk.partition.batches)

        reply = desk.commits(1, metadata="x" * 100, partitions=20)

        await asyncio.sleep(0.01)
        assert reply.answer is ErrorCode.UNKNOWN_SERVER_ERROR
        assert len(desk.partition.batches) == batches + is_busy
        assert all(isinstance(one.answer, OffsetCommitResponse) for one in before)
        assert desk.host.state is State.ACTIVE
        after = desk.commits(2)
        await asyncio.sleep(0.01)
        assert isinstance(after.answer, OffsetCommitResponse)
        assert waiting.answer.error_code == ErrorCode.NONE  # type: ignore[attr-defined]

    told(story, batch_bytes_max=1_000)


def test_an_oversized_atomic_write_is_not_written_in_part() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.is_stuck = True
        uncommitted = desk.commits(1)
        reply = Reply(lambda code: code)
        outcome = Outcome()
        for _ in range(20):
            outcome.write(Unknown(b"x" * 100))
        outcome.answer(reply, "done")
        batches = len(desk.partition.batches)

        desk.host.ask(lambda *_: outcome, reply)

        assert reply.answer is ErrorCode.UNKNOWN_SERVER_ERROR
        # Who had nothing to do with it may try again.
        assert uncommitted.answer is ErrorCode.NOT_COORDINATOR
        assert len(desk.partition.batches) == batches
        assert desk.lost == [desk.host]

    told(story, batch_bytes_max=1_000)


def test_offsets_are_deleted_in_several_batches() -> None:
    async def story(desk: Desk) -> None:
        for number in range(10):
            desk.commits(number, topic=f"orders-{number}", partitions=5)
        before = len(desk.partition.batches)
        rows = [OffsetDeleteRequestPartition(partition_index=number) for number in range(5)]
        topics = [OffsetDeleteRequestTopic(name=f"orders-{number}", partitions=rows) for number in range(10)]
        reply = Reply(lambda code: code)

        request = OffsetDeleteRequest(group_id="g", topics=topics)
        desk.host.ask(lambda shard, to, _now: shard.delete_offsets(request, to), reply)

        await asyncio.sleep(0.01)
        assert len(desk.partition.batches) > before + 1
        assert reply.answer.error_code == ErrorCode.NONE  # type: ignore[attr-defined]
        assert desk.shard.offsets.count == 0

    told(story, batch_bytes_max=500)


def test_a_group_is_deleted_in_several_batches_before_the_answer() -> None:
    async def story(desk: Desk) -> None:
        for number in range(10):
            desk.commits(number, topic=f"orders-{number}", partitions=5)
        before = len(desk.partition.batches)
        desk.partition.is_stuck = True
        reply = Reply(lambda code: code)

        desk.host.ask(lambda _shard, _to, _: desk.shard.delete(["g"], reply), reply)

        assert len(desk.partition.batches) > before + 1
        assert (desk.shard.offsets.count, len(desk.shard)) == (0, 0)
        desk.commit_up_to(desk.partition.end_offset - 1)
        assert not reply.is_given
        desk.commit_up_to(desk.partition.end_offset)
        assert reply.answer == [DeletableGroupResult(group_id="g", error_code=ErrorCode.NONE)]

    told(story, batch_bytes_max=500)


def test_housekeeping_takes_as_many_batches_as_it_needs() -> None:
    async def story(desk: Desk) -> None:
        for number in range(10):
            desk.commits(number, topic=f"orders-{number}", partitions=5)
        before = len(desk.partition.batches)

        desk.takes_image(
            EMPTY_IMAGE, changed=frozenset(), deleted=frozenset(f"orders-{n}" for n in range(10))
        )

        assert len(desk.partition.batches) > before + 1
        assert desk.shard.offsets.count == 0
        assert desk.host.state is State.ACTIVE

    told(story, batch_bytes_max=500)


# Many who ask at once


async def busy(desk: Desk) -> list[Reply]:
    """As many commits within a turn as it takes until they are gathered; those that are not written yet."""
    for number in range(BATCHING_TRIED_AFTER_MIN - 1):
        assert desk.commits(number).is_given
    return [desk.commits(100), desk.commits(101), desk.commits(102)]


def test_a_busy_shard_writes_one_batch_per_loop_iteration() -> None:
    async def story(desk: Desk) -> None:
        waiting = await busy(desk)
        assert [one.is_given for one in waiting] == [False] * 3
        written = len(desk.partition.batches)

        await asyncio.sleep(0)

        assert all(isinstance(one.answer, OffsetCommitResponse) for one in waiting)
        assert [len(decode_batch(batch)) for batch in desk.partition.batches[written:]] == [3]
        # It goes on like that, until somebody is alone in a turn.
        alone = desk.commits(103)
        assert not alone.is_given
        await asyncio.sleep(0)
        assert alone.is_given
        assert desk.commits(104).is_given

    told(story)


def test_a_query_is_answered_after_the_gathered_records_are_written() -> None:
    async def story(desk: Desk) -> None:
        await busy(desk)
        reader = desk.beats()
        assert not reader.is_given
        await asyncio.sleep(0)
        assert reader.is_given

    told(story)


def test_records_that_do_not_fit_go_to_the_next_batch_in_order() -> None:
    async def story(desk: Desk) -> None:
        waiting = await busy(desk)
        waiting += [desk.commits(200 + number, topic=f"t-{number}", partitions=3) for number in range(4)]
        assert not any(one.is_given for one in waiting)

        await asyncio.sleep(0)

        assert all(one.is_given for one in waiting)
        counts = [len(decode_batch(batch)) for batch in desk.partition.batches]
        assert sum(counts) == BATCHING_TRIED_AFTER_MIN - 1 + 3 + 12
        assert all(len(batch) <= 700 for batch in desk.partition.batches)
        assert counts[BATCHING_TRIED_AFTER_MIN - 1 :] == [12, 3], "a decision is never in two batches"

    told(story, batch_bytes_max=700)


def test_housekeeping_is_written_after_earlier_decisions() -> None:
    async def story(desk: Desk) -> None:
        waiting = await busy(desk)
        desk.takes_image(EMPTY_IMAGE, changed=frozenset(), deleted=frozenset({"orders"}))
        assert desk.shard.offsets.count == 0

        await asyncio.sleep(0)

        assert all(one.is_given for one in waiting)
        assert [one.value is None for one in decode_batch(desk.partition.batches[-1])] == [True]

    told(story)


def test_a_failed_gathered_write_refuses_its_requests_and_loses_the_shard() -> None:
    async def story(desk: Desk) -> None:
        waiting = [*await busy(desk), desk.beats()]
        written = len(desk.partition.batches)
        desk.partition.refusal = ErrorCode.NOT_COORDINATOR

        await asyncio.sleep(0)

        assert [one.answer for one in waiting] == [ErrorCode.NOT_COORDINATOR] * 4
        assert len(desk.partition.batches) == written
        assert desk.lost == [desk.host]

    told(story)


def test_unwritten_records_are_refused_when_the_shard_is_closed() -> None:
    async def story(desk: Desk) -> None:
        waiting = await busy(desk)
        written = len(desk.partition.batches)

        desk.host.close()
        await asyncio.sleep(0)

        assert [one.answer for one in waiting] == [ErrorCode.NOT_COORDINATOR] * 3
        assert len(desk.partition.batches) == written

    told(story)


def test_an_answered_client_may_send_its_next_request_synchronously() -> None:
    async def story(desk: Desk) -> None:
        waiting = await busy(desk)
        again: list[Reply] = []
        for one in waiting:
            one.then_call(lambda _: again.append(desk.commits(300)))

        for _ in range(3):
            await asyncio.sleep(0)

        assert [one.is_given for one in again] == [True] * 3
        assert (
            sum(len(decode_batch(batch)) for batch in desk.partition.batches)
            == BATCHING_TRIED_AFTER_MIN - 1 + 6
        )

    told(story)


# Time


def test_timers_of_the_core_fire_on_time() -> None:
    async def story(desk: Desk) -> None:
        waiting = desk.joins()
        await asyncio.sleep(0.01)
        assert waiting.answer.error_code == ErrorCode.NONE  # type: ignore[attr-defined]
        group = desk.shard.context.groups["members"]

        await asyncio.sleep(SESSION_MS / 1_000 - 0.1)
        assert group.state == "CompletingRebalance"
        await asyncio.sleep(0.2)
        assert group.state == "Empty"

    told(story)


def test_an_earlier_timer_reschedules_the_wakeup() -> None:
    async def story(desk: Desk) -> None:
        # The alarm is set for the next look at old offsets, which is ten minutes away.
        assert desk.shard.context.timers.next_ms() is not None
        began = asyncio.get_running_loop().time()
        waiting = desk.joins()
        while not waiting.is_given:
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() - began < 0.01

    told(story)


def joins(desk: Desk, member_id: str, metadata: bytes) -> Reply:
    request = JoinGroupRequest(
        group_id="members",
        member_id=member_id,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=10 * SESSION_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    reply = Reply(lambda code: code)
    desk.host.ask(lambda _shard, _to, now: desk.shard.join(request, CALLER, reply, now), reply)
    return reply


def test_a_timer_reset_by_another_that_fires_with_it_does_not_fire() -> None:
    async def story(desk: Desk) -> None:
        first = joins(desk, "", b"old")
        await asyncio.sleep(0.01)
        joins(desk, "", b"old")
        await asyncio.sleep(0.01)
        joins(desk, cast(JoinGroupResponse, first.answer).member_id, b"old")
        await asyncio.sleep(0.01)
        ids = sorted(cast(ClassicGroup, desk.shard.context.groups["members"]).members)
        # Both times end together. The later of the two in order joins again, and waits for the other.
        waiting = joins(desk, ids[1], b"new")
        await asyncio.sleep(0.1)
        assert not waiting.is_given

        await asyncio.sleep(SESSION_MS / 1000)

        assert cast(JoinGroupResponse, waiting.answer).error_code == ErrorCode.NONE
        assert list(cast(ClassicGroup, desk.shard.context.groups["members"]).members) == [ids[1]]

    told(story)


def test_no_timer_fires_after_close() -> None:
    async def story(desk: Desk) -> None:
        desk.joins()
        desk.host.close()
        written = len(desk.partition.batches)

        await asyncio.sleep(500)

        assert len(desk.partition.batches) == written
        assert desk.lost == []

    told(story)


# The end


def test_pending_requests_are_refused_when_the_shard_is_closed() -> None:
    async def story(desk: Desk) -> None:
        waiting = desk.joins()
        desk.partition.is_stuck = True
        uncommitted = desk.commits(1)

        desk.host.close()

        assert waiting.answer.error_code == ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
        assert uncommitted.answer is ErrorCode.NOT_COORDINATOR
        assert desk.lost == []

    told(story)


# Mistakes of ours


def _stumble(_now: Now | None = None) -> Outcome:
    raise ZeroDivisionError


def test_a_bug_in_a_decision_loses_the_shard_and_is_raised() -> None:
    async def story(desk: Desk) -> None:
        waiting = desk.joins()

        with pytest.raises(ZeroDivisionError):
            desk.host.ask(lambda *_: _stumble(), Reply(lambda code: code))

        assert waiting.answer.error_code == ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
        assert desk.lost == [desk.host]

    told(story)


def test_a_bug_in_a_timer_loses_the_shard_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(desk: Desk) -> None:
        desk.joins(rebalance_ms=1_000)
        await asyncio.sleep(0.01)
        group = desk.shard.context.groups["members"]
        assert isinstance(group, ClassicGroup)
        group.unsynced.add("somebody who is not there")

        await asyncio.sleep(1.1)

        assert desk.lost == [desk.host]
        assert "timer failed" in caplog.text

    told(story)


class Unknown:
    """A record that no part of the shard knows."""

    def __init__(self, value: bytes = b"value") -> None:
        self.value = value

    def encoded(self) -> tuple[bytes, bytes | None]:
        return b"key", self.value


def test_a_bug_in_apply_loses_the_shard_and_is_raised() -> None:
    async def story(desk: Desk) -> None:
        reply = Reply(lambda code: code)
        outcome = Outcome()
        outcome.write(Unknown())
        outcome.answer(reply, "done")

        with pytest.raises(AssertionError, match="unexpected record"):
            desk.host.ask(lambda *_: outcome, reply)

        assert desk.lost == [desk.host]
        assert reply.answer is ErrorCode.UNKNOWN_SERVER_ERROR

    told(story)


def test_a_bug_in_an_internal_event_loses_the_shard_without_raising(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(desk: Desk) -> None:
        desk.commits(7)
        # No image at all: whatever looks into it fails.
        desk.takes_image(cast(Any, None), changed=frozenset(), deleted=frozenset({"orders"}))

        assert desk.lost == [desk.host]

    told(story)

    assert "shard failed" in caplog.text


# Very many timers


def test_other_work_runs_between_many_expiring_sessions() -> None:
    async def story(desk: Desk) -> None:
        timers = desk.shard.timers
        before = len(timers)
        for number in range(2 * TIMERS_AT_ONCE_MAX + 1):
            timers.set(("classic-session", f"g-{number}", "m"), desk.host.now().tick_ms + 10)
        desk.beats()

        left = []
        while len(timers) > before:
            left.append(len(timers) - before)
            # A turn of the loop, in which others are served.
            await asyncio.sleep(0 if len(timers) - before <= 2 * TIMERS_AT_ONCE_MAX else 0.001)

        assert list(dict.fromkeys(left)) == [2 * TIMERS_AT_ONCE_MAX + 1, TIMERS_AT_ONCE_MAX + 1, 1]

    told(story)


def given(replies: list[Reply]) -> int:
    return sum(reply.is_given for reply in replies)


def test_other_work_runs_between_many_answers() -> None:
    async def story(desk: Desk) -> None:
        replies = [desk.joins() for _ in range(2 * ANSWERS_AT_ONCE_MAX + 1)]

        seen = []
        while not seen or seen[-1] < len(replies):
            await asyncio.sleep(0)
            seen.append(given(replies))

        steps = [count for count in dict.fromkeys(seen) if count]
        assert steps == [ANSWERS_AT_ONCE_MAX, 2 * ANSWERS_AT_ONCE_MAX, len(replies)]

    told(story)


def test_remaining_answers_are_given_when_the_shard_is_closed() -> None:
    async def story(desk: Desk) -> None:
        replies = [desk.joins() for _ in range(2 * ANSWERS_AT_ONCE_MAX + 1)]
        while not given(replies):
            await asyncio.sleep(0)

        desk.host.close()

        assert {type(reply.answer) for reply in replies} == {JoinGroupResponse}

    told(story)
