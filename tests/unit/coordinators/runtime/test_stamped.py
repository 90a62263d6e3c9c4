"""Transactional batches and markers: written immediately and in order; the log may refuse them."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from barnabas.base.clock import Clock
from barnabas.coordinators.decision.outcome import (
    Caller,
    EndMarker,
    InTransaction,
    Now,
    Outcome,
    Reply,
    ReplyTo,
)
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.offsets.record import read_offset
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import BATCHING_TRIED_AFTER_MIN, ShardHost, State
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from barnabas.protocol.stored.framing import CONSUMER_OFFSETS
from barnabas.protocol.stored.offsets import OffsetCommitKey
from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import MAGIC_AT, Codec, batch_headers, read_header
from barnabas.sim.world import World, run_sim
from support.clocks import ManualClock
from support.kafka.sample import sample_files
from support.led_partitions import MemoryPartition

pytestmark = pytest.mark.kernel

CALLER = Caller("client", "/127.0.0.1", 5)
COMMIT_TIMEOUT_MS = 5_000
PRODUCER = 70
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
NOTHING = (-1, ErrorCode.NONE)


class NotingPartition(MemoryPartition):
    """`stamps` are what the log was told of its batches; None for a plain one."""

    def __init__(self, *, batch_bytes_max: int) -> None:
        super().__init__(batch_bytes_max=batch_bytes_max)
        self.stamps: list[InTransaction | EndMarker | None] = []

    def append(self, batch: bytes, now_ms: int, stamp: InTransaction | EndMarker | None = None) -> int:
        end = super().append(batch, now_ms, stamp)
        self.stamps.append(stamp)
        return end


class Desk:
    """A host with its partition, and those who ask."""

    def __init__(self, clock: Clock, *, batch_bytes_max: int = 1 << 20) -> None:
        self.partition = NotingPartition(batch_bytes_max=batch_bytes_max)
        self.shard = new_shard()
        self.lost: list[ShardHost[GroupShard]] = []
        self.host = ShardHost(
            self.partition,
            self.shard,
            clock,
            commit_timeout_ms=lambda: COMMIT_TIMEOUT_MS,
            on_lost=self.lost.append,
        )
        # What was answered, in the order in which it was.
        self.told: list[Reply] = []

    def reply(self) -> Reply:
        reply = Reply(lambda code: code)
        reply.then_call(lambda _: self.told.append(reply))
        return reply

    def commits(self, offset: int, *, partition: int = 0) -> Reply:
        one = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id="g", topics=[OffsetCommitRequestTopic(name="orders", partitions=[one])]
        )
        reply = self.reply()
        self.host.ask(lambda _shard, to, now: self.shard.offsets.commit(request, CALLER, to, now), reply)
        return reply

    def commits_in_transaction(
        self, offset: int, *, partitions: int = 1, producer: int = PRODUCER, epoch: int = 3, note: str = ""
    ) -> Reply:
        ones = [
            TxnOffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=note
            )
            for number in range(partitions)
        ]
        return self.asks(
            TxnOffsetCommitRequest(
                transactional_id="t",
                group_id="g",
                producer_id=producer,
                producer_epoch=epoch,
                topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=ones)],
            )
        )

    def asks(self, request: TxnOffsetCommitRequest, *, decided_ms: int | None = None) -> Reply:
        reply = self.reply()

        def act(shard: GroupShard, to: ReplyTo, now: Now) -> Outcome:
            then = now if decided_ms is None else Now(decided_ms, now.tick_ms)
            return shard.commit_in_transaction(request, CALLER, to, then)

        self.host.ask(act, reply)
        return reply

    def ends(
        self,
        *,
        commit: bool = True,
        producer: int = PRODUCER,
        epoch: int = 4,
        coordinator_epoch: int = 9,
        version: int = 2,
    ) -> Reply:
        marker = EndMarker(producer, epoch, commit, coordinator_epoch, version)
        reply = self.reply()
        self.host.ask(lambda _shard, to, now: self.shard.end_transaction(marker, to, now), reply)
        return reply

    def committed(self, partition: int = 0) -> tuple[int, int]:
        """Offset and error code, for one who wants what is stable."""
        topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[partition])
        asked = OffsetFetchRequestGroup(group_id="g", topics=[topic])
        found = self.shard.fetch(asked, require_stable=True).topics[0].partitions[0]
        return found.committed_offset, found.error_code

    def commit_up_to(self, offset: int) -> None:
        self.partition.committed_offset = offset
        self.host.committed()

    def kinds(self) -> list[str]:
        """What the log has, batch by batch."""
        headers = [read_header(batch) for batch in self.partition.batches]
        return [
            "marker" if one.is_control else "transaction" if one.is_transactional else "plain"
            for one in headers
        ]


def new_shard() -> GroupShard:
    return GroupShard(ShardContext(GroupSettings(), Random(1)))


def replayed(batches: list[bytes]) -> GroupShard:
    shard = new_shard()
    for batch in batches:
        shard.replay(batch)
    shard.loaded(Now(0, 0))
    return shard


def told(
    story: Callable[[Desk], Awaitable[None]], *, clock: Clock | None = None, batch_bytes_max: int = 1 << 20
) -> None:
    """A story, and that whoever reads its log knows as much as those who were there."""

    async def live(world: World) -> None:
        desk = Desk(clock or world.clock, batch_bytes_max=batch_bytes_max)
        desk.host.activate()
        await story(desk)
        assert replayed(desk.partition.batches).durable() == desk.shard.durable()
        desk.host.close()

    run_sim(live)


# What is written


def test_offsets_of_a_transaction_are_one_batch_of_its_producer() -> None:
    async def story(desk: Desk) -> None:
        assert isinstance(desk.commits_in_transaction(7, partitions=3).answer, TxnOffsetCommitResponse)

        [batch] = desk.partition.batches
        header = read_header(batch)
        assert header.is_transactional
        assert not header.is_control
        assert (header.producer_id, header.producer_epoch, header.count) == (PRODUCER, 3, 3)
        assert desk.committed() == UNSTABLE

    told(story)


@pytest.mark.parametrize(
    ("commit", "kind", "seen"),
    [(True, ControlType.COMMIT, (7, ErrorCode.NONE)), (False, ControlType.ABORT, NOTHING)],
)
def test_a_marker_is_a_control_batch_and_completes_pending_offsets(
    commit: bool, kind: ControlType, seen: tuple[int, int]
) -> None:
    async def story(desk: Desk) -> None:
        desk.commits_in_transaction(7)

        assert desk.ends(commit=commit).answer is ErrorCode.NONE

        header = read_header(desk.partition.batches[1])
        assert (header.is_control, header.is_transactional) == (True, True)
        assert (header.producer_id, header.producer_epoch) == (PRODUCER, 4)
        [record] = decode_batch(desk.partition.batches[1])
        assert read_control_type(record.key) is kind
        # Version 0, and the coordinator's epoch.
        assert record.value == b"\0\0\0\0\0\x09"
        assert desk.committed() == seen

    told(story)


def test_the_log_gets_the_producer_of_a_batch_and_the_version_of_a_marker() -> None:
    async def story(desk: Desk) -> None:
        desk.commits(1)
        desk.commits_in_transaction(7)
        desk.ends(version=2)
        desk.ends(version=1, commit=False)

        assert desk.partition.stamps == [
            None,
            InTransaction(PRODUCER, 3),
            EndMarker(PRODUCER, 4, True, 9, 2),
            EndMarker(PRODUCER, 4, False, 9, 1),
        ]

    told(story)


def test_offsets_of_a_transaction_are_compressed_if_the_topic_is() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.codec = Codec.GZIP
        desk.commits_in_transaction(7, partitions=50)
        desk.ends()

        assert [read_header(batch).codec for batch in desk.partition.batches] == [Codec.GZIP, Codec.NONE]

    told(story)


def test_batches_equal_those_of_kafka_byte_for_byte() -> None:
    """But for what the log itself puts in front: the offset and the leader's epoch."""
    log = sample_files()["__consumer_offsets-0/00000000000000000000.log"]
    places = [(at, one) for at, one in batch_headers(log) if one.has_producer_id]
    kafkas = [log[at : at + one.size] for at, one in places]
    (_, first), (_, marker) = places
    clock = ManualClock(first.base_timestamp)

    async def story(desk: Desk) -> None:
        # Kafka looks at its clock when it decides, and again when it writes.
        desk.asks(as_requested(kafkas[0]), decided_ms=commit_ms(kafkas[0]))
        clock.advance(marker.base_timestamp - first.base_timestamp)
        desk.ends(producer=marker.producer_id, epoch=marker.producer_epoch, coordinator_epoch=0, version=1)

        assert [batch[MAGIC_AT:] for batch in desk.partition.batches] == [one[MAGIC_AT:] for one in kafkas]
        assert replayed(kafkas).durable() == desk.shard.durable()

    told(story, clock=clock)


def commit_ms(batch: bytes) -> int:
    value = decode_batch(batch)[0].value
    assert value is not None
    return read_offset(value).commit_ms


def as_requested(batch: bytes) -> TxnOffsetCommitRequest:
    """What a client asked for that made Kafka write this."""
    header = read_header(batch)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="",
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        topics=[],
    )
    for record in decode_batch(batch):
        assert record.key is not None
        assert record.value is not None
        key = CONSUMER_OFFSETS.decode_key(record.key)
        assert isinstance(key, OffsetCommitKey)
        found = read_offset(record.value)
        one = TxnOffsetCommitRequestPartition(
            partition_index=key.partition,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            committed_metadata=found.metadata,
        )
        request.group_id = key.group
        request.topics.append(TxnOffsetCommitRequestTopic(name=key.topic, partitions=[one]))
    return request


# When it is answered


def test_answers_wait_for_the_high_watermark_in_order() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.is_stuck = True
        asked = [desk.commits(1), desk.commits_in_transaction(2), desk.ends(), desk.commits(3)]
        assert desk.told == []

        desk.commit_up_to(2)
        assert desk.told == asked[:2]
        desk.commit_up_to(4)
        assert desk.told == asked

    told(story)


async def busy(desk: Desk) -> list[Reply]:
    """As many commits within a turn as it takes until they are gathered; those that are not written yet."""
    for number in range(BATCHING_TRIED_AFTER_MIN - 1):
        assert desk.commits(number).is_given
    desk.told.clear()
    return [desk.commits(100), desk.commits(101)]


def test_gathered_records_are_written_before_those_of_a_transaction() -> None:
    async def story(desk: Desk) -> None:
        asked = await busy(desk)
        before = BATCHING_TRIED_AFTER_MIN - 1

        asked.append(desk.commits_in_transaction(200))
        asked.append(desk.commits(102, partition=1))
        asked.append(desk.ends())
        assert desk.kinds()[before:] == ["plain", "transaction", "plain", "marker"]

        await asyncio.sleep(0)
        assert desk.told == asked
        assert [len(decode_batch(one)) for one in desk.partition.batches[before:]] == [2, 1, 1, 1]
        # The last that was written counts: the transaction's commit came after the plain ones.
        assert desk.committed() == (200, ErrorCode.NONE)

    told(story)


def test_a_transactional_commit_without_valid_partitions_writes_nothing() -> None:
    async def story(desk: Desk) -> None:
        reply = desk.commits_in_transaction(7, note="x" * 5_000)

        assert isinstance(reply.answer, TxnOffsetCommitResponse)
        assert desk.partition.batches == []

    told(story)


# What is refused


def test_offsets_rejected_by_the_log_fail_only_their_own_request() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.is_stuck = True
        waiting = desk.commits(1, partition=5)
        before = desk.shard.durable()
        desk.partition.refused_by_log = ErrorCode.INVALID_PRODUCER_EPOCH

        refused = desk.commits_in_transaction(7)

        assert refused.answer is ErrorCode.INVALID_PRODUCER_EPOCH
        assert desk.told == [refused]
        assert desk.shard.durable() == before
        assert desk.committed() == NOTHING
        assert desk.host.state is State.ACTIVE
        desk.commit_up_to(1)
        assert isinstance(waiting.answer, OffsetCommitResponse)
        assert desk.lost == []

    told(story)


def test_offsets_refused_by_the_log_create_no_group() -> None:
    async def story(desk: Desk) -> None:
        desk.partition.refused_by_log = ErrorCode.INVALID_PRODUCER_EPOCH
        desk.commits_in_transaction(7)

        assert len(desk.shard) == 0
        assert desk.partition.batches == []

    told(story)


def test_a_marker_that_the_log_refuses_ends_nothing_and_a_later_one_does() -> None:
    async def story(desk: Desk) -> None:
        desk.commits_in_transaction(7)
        desk.partition.refused_by_log = ErrorCode.TRANSACTION_COORDINATOR_FENCED

        assert desk.ends(commit=False).answer is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert desk.committed() == UNSTABLE

        desk.partition.refused_by_log = None
        assert desk.ends().answer is ErrorCode.NONE
        assert desk.committed() == (7, ErrorCode.NONE)

    told(story)


def test_gathered_records_are_written_even_if_the_next_batch_fails() -> None:
    async def story(desk: Desk) -> None:
        asked = await busy(desk)
        desk.partition.refused_by_log = ErrorCode.INVALID_TXN_STATE

        assert desk.commits_in_transaction(200).answer is ErrorCode.INVALID_TXN_STATE
        await asyncio.sleep(0)

        assert [type(one.answer) for one in asked] == [OffsetCommitResponse] * 2
        assert desk.kinds() == ["plain"] * BATCHING_TRIED_AFTER_MIN
        assert desk.committed() == (101, ErrorCode.NONE)

    told(story)


def test_transactional_offsets_too_large_for_a_batch_are_rejected() -> None:
    async def story(desk: Desk) -> None:
        desk.commits(1)

        for _ in range(2):
            refused = desk.commits_in_transaction(7, partitions=20, note="x" * 100)
            assert refused.answer is ErrorCode.UNKNOWN_SERVER_ERROR

        assert desk.kinds() == ["plain"]
        assert desk.committed() == (1, ErrorCode.NONE)
        assert desk.lost == []

    told(story, batch_bytes_max=1_000)


def test_a_transactional_record_too_large_for_a_batch_is_rejected() -> None:
    async def story(desk: Desk) -> None:
        refused = desk.commits_in_transaction(7, note="x" * 1_000)

        assert refused.answer is ErrorCode.UNKNOWN_SERVER_ERROR
        assert desk.partition.batches == []
        assert desk.host.state is State.ACTIVE

    told(story, batch_bytes_max=1_000)


# What costs the shard


@pytest.mark.parametrize("asks", [Desk.commits_in_transaction, Desk.ends])
def test_a_failing_log_loses_the_shard_and_refuses_every_request_once(
    asks: Callable[..., Reply],
) -> None:
    async def live(world: World) -> None:
        desk = Desk(world.clock)
        desk.host.activate()
        desk.partition.is_stuck = True
        waiting = desk.commits(1)
        desk.partition.refusal = ErrorCode.NOT_COORDINATOR

        refused = asks(desk, 7) if asks is Desk.commits_in_transaction else asks(desk)

        assert desk.told == [waiting, refused]
        assert waiting.answer is refused.answer is ErrorCode.NOT_COORDINATOR
        assert desk.lost == [desk.host]

    run_sim(live)


def test_a_failed_write_of_gathered_records_fails_the_transaction_too() -> None:
    async def live(world: World) -> None:
        desk = Desk(world.clock)
        desk.host.activate()
        asked = await busy(desk)
        desk.partition.refusal = ErrorCode.NOT_COORDINATOR

        asked.append(desk.commits_in_transaction(200))
        await asyncio.sleep(0)

        assert [one.answer for one in asked] == [ErrorCode.NOT_COORDINATOR] * 3
        assert desk.kinds() == ["plain"] * (BATCHING_TRIED_AFTER_MIN - 1)
        assert desk.lost == [desk.host]

    run_sim(live)
