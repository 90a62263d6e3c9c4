"""OffsetCommit, OffsetFetch and OffsetDelete: what this broker knows of topics, beside what a group knows."""

import time
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.offsets.record import read_offset
from barnabas.coordinators.runtime.host import State
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.records.decode import decode_batch
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.handlers.group_offsets import COMMIT_API, DELETE_API
from barnabas.server.handlers.offset_fetch import API as FETCH_API
from support.hosted import Hosted, image_of, partition_image, topic_id
from support.led_partitions import MemoryPartition
from support.log.managers import on_a_loop

pytestmark = pytest.mark.kernel

# The offsets of this group are on the first of two partitions, which is led here; the other one's are not.
HERE, ELSEWHERE = "b", "a"
ORDERS, NOWHERE = topic_id("orders"), Uuid(bytes(range(16)))
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def hosted(log: MemoryPartition | None = None) -> Hosted:
    """One topic of two partitions."""
    made = Hosted(image_of({OFFSETS_TOPIC: [partition_image()] * 2, "orders": [partition_image()] * 2}))
    made.services.groups.shards.lead(0, log or MemoryPartition())
    return made


def commit(group: str, **topics: tuple[int, ...]) -> OffsetCommitRequest:
    """At offset 5, by name."""
    return OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=_rows(some)) for name, some in topics.items()],
    )


def commit_by_id(group: str, topics: dict[Uuid, tuple[int, ...]]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(topic_id=one, partitions=_rows(some)) for one, some in topics.items()
        ],
    )


def _rows(partitions: tuple[int, ...]) -> list[OffsetCommitRequestPartition]:
    return [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata="")
        for index in partitions
    ]


async def committed(broker: Hosted, group: str = HERE) -> Any:
    """All that the group has, by topic id."""
    asked = OffsetFetchRequest(topics=[], groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    answer = await broker.ask(FETCH_API, asked, 10)
    return {
        (topic.topic_id, one.partition_index): one.committed_offset
        for topic in answer.groups[0].topics
        for one in topic.partitions
    }


def codes(answer: Any) -> dict[Any, dict[int, ErrorCode]]:
    return {
        topic.name or topic.topic_id: {
            one.partition_index: ErrorCode(one.error_code) for one in topic.partitions
        }
        for topic in answer.topics
    }


async def tell(broker: Hosted, body: object, version: int) -> Any:
    return await broker.ask(COMMIT_API, body, version)


@on_a_loop
async def test_partitions_that_do_not_exist_are_refused_and_the_others_committed() -> None:
    broker = hosted()

    answer = await tell(broker, commit(HERE, orders=(0, 2, -1, 1), nothing=(0,)), 9)

    assert codes(answer) == {
        "orders": {0: ErrorCode.NONE, 1: ErrorCode.NONE, 2: UNKNOWN, -1: UNKNOWN},
        "nothing": {0: UNKNOWN},
    }
    assert len(answer.topics) == 2
    assert await committed(broker) == {(ORDERS, 0): 5, (ORDERS, 1): 5}


@on_a_loop
async def test_topics_can_be_given_by_id() -> None:
    broker = hosted()

    answer = await tell(broker, commit_by_id(HERE, {ORDERS: (0, 2), NOWHERE: (0,)}), 10)

    assert codes(answer) == {
        ORDERS: {0: ErrorCode.NONE, 2: UNKNOWN},
        NOWHERE: {0: ErrorCode.UNKNOWN_TOPIC_ID},
    }
    assert await committed(broker) == {(ORDERS, 0): 5}


@pytest.mark.parametrize("partition", [-1, 2])
@on_a_loop
async def test_a_commit_of_a_missing_partition_writes_nothing(partition: int) -> None:
    log = MemoryPartition()

    answer = await tell(hosted(log), commit(HERE, orders=(partition,)), 9)

    assert codes(answer) == {"orders": {partition: UNKNOWN}}
    assert log.batches == []


@on_a_loop
async def test_a_committed_offset_has_topic_name_and_id_whichever_was_given() -> None:
    log = MemoryPartition()
    broker = hosted(log)

    by_name = await tell(broker, commit(HERE, orders=(0,)), 9)
    by_id = await tell(broker, commit_by_id(HERE, {ORDERS: (0,)}), 10)

    assert [codes(by_name), codes(by_id)] == [{"orders": {0: ErrorCode.NONE}}, {ORDERS: {0: ErrorCode.NONE}}]
    [first], [second] = map(decode_batch, log.batches)
    assert first.key is not None
    assert b"orders" in first.key
    assert first.key == second.key
    assert [read_offset(one.value or b"").topic_id for one in (first, second)] == [ORDERS, ORDERS]


@on_a_loop
async def test_a_bug_in_a_commit_loses_the_shard() -> None:
    broker = hosted()
    [host] = broker.services.groups.shards.hosts.values()
    nonsense: Any = object()
    host.shard.context.groups[HERE] = nonsense

    with pytest.raises(AttributeError):
        await tell(broker, commit(HERE, orders=(0,)), 9)

    assert host.state is State.LOST


@on_a_loop
async def test_existing_partitions_get_not_coordinator_from_another_broker() -> None:
    answer = await tell(hosted(), commit(ELSEWHERE, orders=(0, 2)), 9)

    assert codes(answer) == {"orders": {0: ErrorCode.NOT_COORDINATOR, 2: UNKNOWN}}


@on_a_loop
async def test_a_failed_write_is_answered_once_with_the_unknown_partitions() -> None:
    log = MemoryPartition()
    broker = hosted(log)
    log.refusal = ErrorCode.NOT_COORDINATOR

    answer = await tell(broker, commit(HERE, orders=(0, 2)), 9)

    assert codes(answer) == {"orders": {0: ErrorCode.NOT_COORDINATOR, 2: UNKNOWN}}
    assert [len(topic.partitions) for topic in answer.topics] == [2]


@on_a_loop
async def test_no_coordinator_is_used_if_no_partition_exists() -> None:
    answer = await tell(hosted(), commit(ELSEWHERE, nothing=(0,)), 9)

    assert codes(answer) == {"nothing": {0: UNKNOWN}}


@on_a_loop
async def test_offsets_of_a_deleted_topic_are_omitted_by_topic_id() -> None:
    broker = hosted()
    await tell(broker, commit(HERE, orders=(0,)), 9)
    broker.services.image = image_of({OFFSETS_TOPIC: [partition_image()] * 2})

    assert await committed(broker) == {}


@on_a_loop
async def test_each_group_is_looked_up_in_its_shard() -> None:
    broker = hosted()
    await tell(broker, commit(HERE, orders=(0,)), 9)
    topics = [
        OffsetFetchRequestTopics(topic_id=ORDERS, partition_indexes=[0]),
        OffsetFetchRequestTopics(topic_id=NOWHERE, partition_indexes=[3]),
    ]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=list(topics)) for group in (ELSEWHERE, HERE)]

    answer = await broker.ask(FETCH_API, OffsetFetchRequest(topics=[], groups=groups), 10)

    elsewhere, here = answer.groups
    assert (elsewhere.group_id, elsewhere.error_code) == (ELSEWHERE, ErrorCode.NOT_COORDINATOR)
    assert (here.group_id, here.error_code) == (HERE, ErrorCode.NONE)
    assert codes(here) == {NOWHERE: {3: ErrorCode.UNKNOWN_TOPIC_ID}, ORDERS: {0: ErrorCode.NONE}}


def delete(group: str, **topics: tuple[int, ...]) -> OffsetDeleteRequest:
    rows = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=one) for one in some]
        )
        for name, some in topics.items()
    ]
    return OffsetDeleteRequest(group_id=group, topics=rows)


@on_a_loop
async def test_offsets_of_existing_partitions_are_deleted_and_the_rest_refused() -> None:
    broker = hosted()
    await tell(broker, commit(HERE, orders=(0, 1)), 9)

    answer = await broker.ask(DELETE_API, delete(HERE, orders=(0, 2), nothing=(0,)), 0)

    assert answer.error_code == ErrorCode.NONE
    assert {
        (topic.name, one.partition_index): one.error_code
        for topic in answer.topics
        for one in topic.partitions
    } == {("orders", 0): ErrorCode.NONE, ("orders", 2): UNKNOWN, ("nothing", 0): UNKNOWN}
    assert await committed(broker) == {(ORDERS, 1): 5}


@on_a_loop
async def test_an_unknown_group_is_reported_before_unknown_topics() -> None:
    answer = await hosted().ask(DELETE_API, delete(HERE, nothing=(0,)), 0)

    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


@on_a_loop
async def test_many_partitions_with_one_unknown_are_processed_fast() -> None:
    # It took 8 s when each was looked for among all others.
    many = 4_000
    broker = Hosted(image_of({OFFSETS_TOPIC: [partition_image()] * 2, "orders": [partition_image()] * many}))
    broker.services.groups.shards.lead(0, MemoryPartition())
    asked = commit(HERE, orders=tuple(range(many + 1)))

    begun = time.process_time()
    answer = await tell(broker, asked, 9)

    assert time.process_time() - begun < 2
    assert codes(answer)["orders"][many] is UNKNOWN
    assert len(await committed(broker)) == many
