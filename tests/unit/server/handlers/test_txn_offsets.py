"""TxnOffsetCommit: what this broker knows of topics, beside what the group and the log say."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.coordinators.runtime.group_coordinator import OFFSETS_TOPIC
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.server.handlers.txn_offsets import API
from support.hosted import Hosted, image_of, partition_image
from support.led_partitions import MemoryPartition
from support.managers import on_a_loop

pytestmark = pytest.mark.kernel

# The offsets of this group are on the first of two partitions, which is led here; the other one's are not.
HERE, ELSEWHERE = "b", "a"
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
# Its clients add partitions to transactions themselves, so that only the log has to be asked.
VERSION = 4


def hosted(log: MemoryPartition) -> Hosted:
    """One topic of two partitions, on a broker that takes the word of clients for their transactions."""
    made = Hosted(image_of({OFFSETS_TOPIC: [partition_image()] * 2, "orders": [partition_image()] * 2}))
    settings = made.services.settings
    settings.now = replace(settings.now, transaction_partition_verification_enable=False)
    made.services.groups.coordinator.shards.lead(0, log)
    return made


def commit(group: str, **topics: tuple[int, ...]) -> TxnOffsetCommitRequest:
    """At offset 5."""
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group,
        producer_id=70,
        producer_epoch=3,
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

    answer = await hosted(log).ask(API, commit(HERE, orders=(0, 2, -1, 1), nothing=(0,)), VERSION)

    assert rows(answer) == [
        ("orders", [(2, UNKNOWN), (-1, UNKNOWN), (0, ErrorCode.NONE), (1, ErrorCode.NONE)]),
        ("nothing", [(0, UNKNOWN)]),
    ]
    assert len(log.batches) == 1


@on_a_loop
async def test_where_nothing_exists_no_coordinator_is_asked() -> None:
    answer = await hosted(MemoryPartition()).ask(API, commit(ELSEWHERE, nothing=(0,)), VERSION)

    assert rows(answer) == [("nothing", [(0, UNKNOWN)])]


@pytest.mark.parametrize("is_log_well", [True, False])
@on_a_loop
async def test_what_the_log_refuses_is_told_once_beside_what_does_not_exist(is_log_well: bool) -> None:
    code = ErrorCode.INVALID_PRODUCER_EPOCH if is_log_well else ErrorCode.NOT_COORDINATOR
    log = MemoryPartition()
    broker = hosted(log)
    log.refused_by_log, log.refusal = (code, None) if is_log_well else (None, code)

    answer = await broker.ask(API, commit(HERE, orders=(0, 2), nothing=(0,)), VERSION)

    assert rows(answer) == [("orders", [(2, UNKNOWN), (0, code)]), ("nothing", [(0, UNKNOWN)])]


@on_a_loop
async def test_a_coordinator_elsewhere_is_told_for_what_exists() -> None:
    answer = await hosted(MemoryPartition()).ask(API, commit(ELSEWHERE, orders=(0, 2)), VERSION)

    assert rows(answer) == [("orders", [(2, UNKNOWN), (0, ErrorCode.NOT_COORDINATOR)])]
