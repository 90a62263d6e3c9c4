"""TxnOffsetCommit: what this broker knows of topics, beside what group and log say; who comes too late."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker, Reply
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.txn.adding import decide_add_offsets
from barnabas.coordinators.txn.initializing import decide_init
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.coordination.transactions import TRANSACTION_TOPIC
from barnabas.server.handlers.txn_offsets import API
from support.hosted import Hosted, hosted, image_of, partition_image
from support.led_partitions import MemoryPartition
from support.log.managers import on_a_loop

pytestmark = pytest.mark.kernel

# The offsets of this group are on the first of two partitions, which is led here; the other one's are not.
HERE, ELSEWHERE = "b", "a"
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
# Its clients add partitions to transactions themselves, so that only the log has to be asked.
VERSION = 4
PRODUCER, EPOCH = 70, 0
OFFSETS_0 = TopicPartition(OFFSETS_TOPIC, 0)


def trusting(log: MemoryPartition) -> Hosted:
    """One topic of two partitions, on a broker that takes the word of clients for their transactions."""
    made = Hosted(image_of({OFFSETS_TOPIC: [partition_image()] * 2, "orders": [partition_image()] * 2}))
    settings = made.services.settings
    settings.now = replace(settings.now, transaction_partition_verification_enable=False)
    made.services.groups.shards.lead(0, log)
    return made


def commit(group: str, **topics: tuple[int, ...]) -> TxnOffsetCommitRequest:
    """At offset 5."""
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group,
        producer_id=PRODUCER,
        producer_epoch=EPOCH,
        member_id="",
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=one, committed_offset=5, committed_metadata=""
                    )
                    for one in some
                ],
            )
            for name, some in topics.items()
        ],
    )


def rows(answer: Any) -> list[tuple[str, list[tuple[int, ErrorCode]]]]:
    """Topic by topic, whatever is told, and as often as it is."""
    return [
        (topic.name, [(one.partition_index, ErrorCode(one.error_code)) for one in topic.partitions])
        for topic in answer.topics
    ]


@on_a_loop
async def test_partitions_that_do_not_exist_are_refused_and_the_others_committed() -> None:
    log = MemoryPartition()

    answer = await trusting(log).ask(API, commit(HERE, orders=(0, 2, -1, 1), nothing=(0,)), VERSION)

    assert rows(answer) == [
        ("orders", [(2, UNKNOWN), (-1, UNKNOWN), (0, ErrorCode.NONE), (1, ErrorCode.NONE)]),
        ("nothing", [(0, UNKNOWN)]),
    ]
    assert len(log.batches) == 1


@on_a_loop
async def test_no_coordinator_is_used_if_no_partition_exists() -> None:
    answer = await trusting(MemoryPartition()).ask(API, commit(ELSEWHERE, nothing=(0,)), VERSION)

    assert rows(answer) == [("nothing", [(0, UNKNOWN)])]


@pytest.mark.parametrize("is_log_well", [True, False])
@on_a_loop
async def test_a_refusal_of_the_log_is_answered_once_with_the_unknown_partitions(is_log_well: bool) -> None:
    code = ErrorCode.INVALID_PRODUCER_EPOCH if is_log_well else ErrorCode.NOT_COORDINATOR
    log = MemoryPartition()
    broker = trusting(log)
    log.refused_by_log, log.refusal = (code, None) if is_log_well else (None, code)

    answer = await broker.ask(API, commit(HERE, orders=(0, 2), nothing=(0,)), VERSION)

    assert rows(answer) == [("orders", [(2, UNKNOWN), (0, code)]), ("nothing", [(0, UNKNOWN)])]


@on_a_loop
async def test_existing_partitions_get_not_coordinator_from_another_broker() -> None:
    answer = await trusting(MemoryPartition()).ask(API, commit(ELSEWHERE, orders=(0, 2)), VERSION)

    assert rows(answer) == [("orders", [(2, UNKNOWN), (0, ErrorCode.NOT_COORDINATOR)])]


# Overtaken


class Overtaken:
    """A transaction with the offsets of a group, whose coordinator takes its time to answer."""

    def __init__(self, broker: Hosted) -> None:
        self.broker = broker
        services = broker.services
        services.groups.start(services.image)
        self._log = MemoryPartition()
        services.transactions.shards.lead(0, self._log)
        host = services.transactions.host_of("t")
        assert isinstance(host, ShardHost)
        self._host: ShardHost[TxnShard] = host
        begin = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
        self._host.ask(
            lambda shard, to, now: decide_init(shard.table, begin, 5, PRODUCER, to, now),
            Reply(lambda code: code),
        )
        add = AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=PRODUCER, producer_epoch=EPOCH, group_id="g"
        )
        self._host.ask(
            lambda shard, to, now: decide_add_offsets(shard.table, add, 3, OFFSETS_0, to, now),
            Reply(lambda code: code),
        )

    def hold_answers(self) -> None:
        """Something is not committed yet, and answers come in their order."""
        self._log.committed_offset -= 1

    def give_answers(self) -> None:
        self._log.committed_offset = self._log.end_offset
        self._host.committed()

    def end(self) -> None:
        """Of an old client: the marker has the epoch of its records."""
        told: list[ErrorCode] = []
        marker = EndMarker(PRODUCER, EPOCH, False, 0, 1)
        self.broker.services.transactions.marker_appender.append(OFFSETS_0, marker, told.append)
        assert told == [ErrorCode.NONE]


@pytest.mark.parametrize("is_overtaken", [True, False])
@on_a_loop
async def test_a_commit_that_the_end_of_its_transaction_overtakes_is_refused(is_overtaken: bool) -> None:
    topics = {name: [partition_image()] for name in (OFFSETS_TOPIC, TRANSACTION_TOPIC, "orders")}
    story = Overtaken(await hosted(image_of(topics)))
    story.hold_answers()
    late = commit("g", orders=(0,))

    committing = asyncio.ensure_future(story.broker.ask(API, late, VERSION))
    await asyncio.sleep(0)
    assert not committing.done()
    if is_overtaken:
        story.end()
    story.give_answers()

    code = ErrorCode.INVALID_TXN_STATE if is_overtaken else ErrorCode.NONE
    assert rows(await asyncio.wait_for(committing, 5)) == [("orders", [(0, code)])]
    # Either the marker is there, or what was committed.
    assert story.broker.log(OFFSETS_TOPIC).end_offset == 1
