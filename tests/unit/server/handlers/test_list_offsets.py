"""ListOffsets: earliest and latest offsets, and offsets by timestamp."""

import asyncio
from typing import Any

import pytest

from barnabas.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.server.handlers.list_offsets import API
from barnabas.storage.errors import DirectoryOffline, LogClosed
from support.hosted import Hosted, hosted, image_of, one_topic, partition_image
from support.log.logs import CountingExecutor, PausedExecutor, end_txn, put, send
from support.log.managers import on_a_loop

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, TIERED, PENDING = -2, -1, -3, -4, -5, -6
NOTHING = (-1, -1, -1)
UNKNOWN, INVALID_REQUEST, UNSUPPORTED = 3, 42, 35


def listing(
    *asked: tuple[str, int, int], epoch: int = -1, isolation: int = 0, replica: int = -1
) -> ListOffsetsRequest:
    """(topic, partition, timestamp), each as a topic of its own."""
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                    )
                ],
            )
            for name, index, timestamp in asked
        ],
    )


async def ask(
    broker: Hosted, body: ListOffsetsRequest, version: int = 11
) -> list[ListOffsetsPartitionResponse]:
    answer = await broker.ask(API, body, version)
    return [one for topic in answer.topics for one in topic.partitions]


async def found(broker: Hosted, timestamp: int, version: int = 11, **fields: Any) -> tuple[int, int, int]:
    """Offset, timestamp and epoch of the only partition."""
    (one,) = await ask(broker, listing(("orders", 0, timestamp), **fields), version)
    assert one.error_code == 0
    return one.offset, one.timestamp, one.leader_epoch


async def code(broker: Hosted, timestamp: int = LATEST, version: int = 11, **fields: Any) -> int:
    (one,) = await ask(broker, listing(("orders", 0, timestamp), **fields), version)
    assert (one.offset, one.timestamp, one.leader_epoch) == NOTHING
    return one.error_code


async def filled() -> Hosted:
    """Three records at 100, three at 300, three at 200."""
    broker = await one_topic()
    for time in (100, 300, 200):
        put(broker.log("orders"), b"a", b"b", b"c", time=time)
    broker.settle()
    return broker


@on_a_loop
async def test_an_empty_log_begins_and_ends_at_zero_in_the_leaders_epoch() -> None:
    broker = await hosted(image_of({"orders": [partition_image(epoch=4)]}))

    assert await found(broker, EARLIEST) == (0, -1, 4)
    assert await found(broker, EARLIEST_LOCAL) == (0, -1, 4)
    assert await found(broker, LATEST) == (0, -1, 4)
    assert await found(broker, MAX_TIMESTAMP) == NOTHING
    assert await found(broker, 0) == NOTHING


@on_a_loop
async def test_first_and_last_offset_are_returned_without_waiting() -> None:
    executor = CountingExecutor()
    broker = await one_topic(executor=executor)
    put(broker.log("orders"), b"a", b"b")
    broker.settle()
    runs = executor.runs

    assert await found(broker, EARLIEST) == (0, -1, 0)
    assert await found(broker, LATEST) == (2, -1, 0)
    assert executor.runs == runs


@on_a_loop
async def test_a_time_leads_to_the_first_record_of_that_time_or_later() -> None:
    broker = await filled()

    assert await found(broker, 0) == (0, 100, 0)
    assert await found(broker, 100) == (0, 100, 0)
    assert await found(broker, 101) == (3, 300, 0)
    assert await found(broker, 301) == NOTHING
    assert await found(broker, 2**63 - 1) == NOTHING


@on_a_loop
async def test_the_latest_time_leads_to_its_first_record() -> None:
    broker = await filled()

    assert await found(broker, MAX_TIMESTAMP) == (3, 300, 0)


@on_a_loop
async def test_deleted_records_are_not_found_by_time_but_still_have_the_latest_time() -> None:
    broker = await filled()

    broker.log("orders").advance_start(9)

    assert await found(broker, EARLIEST) == (9, -1, 0)
    assert await found(broker, 0) == NOTHING
    assert await found(broker, MAX_TIMESTAMP) == (3, 300, 0)


@on_a_loop
async def test_without_remote_storage_nothing_is_tiered() -> None:
    broker = await filled()

    assert await found(broker, TIERED) == NOTHING
    assert await found(broker, PENDING) == NOTHING


@pytest.mark.parametrize(
    ("timestamp", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (TIERED, 9), (PENDING, 11), (-7, 12)]
)
@on_a_loop
async def test_a_special_time_needs_the_version_that_knows_it(timestamp: int, since: int) -> None:
    broker = await filled()

    for version in range(1, 12):
        (one,) = await ask(broker, listing(("orders", 0, timestamp)), version)
        assert one.error_code == (0 if version >= since else UNSUPPORTED), f"version {version}"


@on_a_loop
async def test_old_versions_get_no_leader_epoch() -> None:
    broker = await filled()

    for version in range(1, 12):
        epoch = 0 if version >= 4 else -1
        assert await found(broker, LATEST, version) == (9, -1, epoch)


@on_a_loop
async def test_read_committed_ends_where_the_first_open_transaction_begins() -> None:
    broker = await one_topic()
    log = broker.log("orders")
    put(log, b"a", time=100)
    send(log, 7, 0, b"b", txn=True)
    broker.settle()

    assert await found(broker, LATEST) == (2, -1, 0)
    assert await found(broker, LATEST, isolation=1) == (1, -1, 0)
    assert await found(broker, 101, isolation=1) == NOTHING
    assert (await found(broker, 101))[0] == 1

    end_txn(log, 7, abort=False)
    broker.settle()
    assert await found(broker, LATEST, isolation=1) == (3, -1, 0)


@on_a_loop
async def test_a_consumer_sees_no_further_than_the_high_watermark_and_a_replica_does() -> None:
    broker = await hosted(image_of({"orders": [partition_image(replicas=(1, 2))]}))
    put(broker.log("orders"), b"a", time=100)
    broker.settle()

    assert await found(broker, LATEST) == (0, -1, 0)
    assert await found(broker, 0) == NOTHING
    assert await found(broker, MAX_TIMESTAMP) == NOTHING
    assert await found(broker, LATEST, replica=2) == (1, -1, 0)
    assert await found(broker, 0, replica=2) == (0, 100, 0)


@pytest.mark.parametrize("isolation", [2, -1])
@on_a_loop
async def test_an_unknown_isolation_level_fails_every_partition(isolation: int) -> None:
    broker = await filled()

    answers = await ask(broker, listing(("orders", 0, LATEST), ("nobody", 0, LATEST), isolation=isolation))

    assert [one.error_code for one in answers] == [-1, -1]


@on_a_loop
async def test_epochs_that_are_not_the_leaders_are_refused() -> None:
    broker = await hosted(image_of({"orders": [partition_image(epoch=3)]}))

    assert await found(broker, LATEST, epoch=3) == (0, -1, 3)
    assert await code(broker, epoch=4) == 75
    assert await code(broker, epoch=2) == 74
    assert await code(broker, epoch=-5) == 74
    assert await code(broker, timestamp=0, epoch=4) == 75


@on_a_loop
async def test_unknown_partitions_are_reported() -> None:
    broker = await filled()

    answers = await ask(
        broker, listing(("nobody", 0, 0), ("orders", 1, 0), ("orders", -1, 0), ("a b", 0, LATEST))
    )

    # Partitions of one topic are answered together, in the order in which topics were named.
    assert [(one.partition_index, one.error_code) for one in answers] == [(0, 3), (1, 3), (-1, 3), (0, 3)]


@on_a_loop
async def test_only_the_leader_answers_and_a_debugger_may_ask_any_replica() -> None:
    image = image_of(
        {"orders": [partition_image(leader=2, replicas=(1, 2))], "far": [partition_image(replicas=(2,))]}
    )
    broker = await hosted(image)

    assert await code(broker) == 6
    assert await found(broker, LATEST, replica=-2) == (0, -1, 0)
    (far,) = await ask(broker, listing(("far", 0, LATEST)))
    assert far.error_code == 6


@on_a_loop
async def test_a_partition_requested_twice_is_rejected_once() -> None:
    broker = await filled()

    twice = await ask(broker, listing(("orders", 0, LATEST), ("orders", 0, EARLIEST), ("nobody", 1, LATEST)))

    assert [(one.error_code, one.offset) for one in twice] == [(INVALID_REQUEST, -1), (UNKNOWN, -1)]


@on_a_loop
async def test_a_topic_without_partitions_is_left_out() -> None:
    broker = await filled()
    body = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=[])])

    assert (await broker.ask(API, body, 11)).topics == []


@on_a_loop
async def test_a_failed_disk_is_a_storage_error_of_its_partition_alone() -> None:
    broker = await one_topic(partitions=2)
    broker.log("orders", 0).take_out_of_service(DirectoryOffline("/mnt/a", "gone"))

    answers = await ask(broker, listing(("orders", 0, LATEST), ("orders", 1, LATEST)))

    assert [one.error_code for one in answers] == [56, 0]


@on_a_loop
async def test_a_failed_lookup_takes_the_log_offline() -> None:
    broker = await filled()
    log = broker.log("orders")
    await broker.logs.flush(log)
    broker.disk.cool()
    broker.disk.fail(log.directory, {"read"}, count=100)

    assert await code(broker, timestamp=101) == 56
    assert log.closed
    assert broker.logs.home(log).offline is None


@on_a_loop
async def test_a_cold_log_is_read_in_the_executor_and_the_answer_is_the_same() -> None:
    executor = CountingExecutor()
    broker = await one_topic(executor=executor)
    log = broker.log("orders")
    for time in (100, 300, 200):
        put(log, b"a" * 5000, time=time)
    broker.settle()
    await broker.logs.flush(log)
    broker.disk.cool()
    runs = executor.runs

    assert await found(broker, 101) == (1, 300, 0)
    assert executor.runs > runs


@on_a_loop
async def test_a_partition_deleted_during_a_disk_read_has_no_leader_here() -> None:
    executor = PausedExecutor()
    executor.gate.set()
    broker = await one_topic(executor=executor)
    log = broker.log("orders")
    for time in (100, 300, 200):
        put(log, b"a" * 5000, time=time)
    broker.settle()
    await broker.logs.flush(log)
    broker.disk.cool()
    executor.gate.clear()

    asking = asyncio.create_task(code(broker, timestamp=101))
    await asyncio.sleep(0)
    log.take_out_of_service(LogClosed("orders-0"))
    executor.gate.set()

    assert await asking == 6


@on_a_loop
async def test_other_requests_are_served_between_lookups() -> None:
    broker = await one_topic(partitions=300)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await ask(broker, listing(*(("orders", index, 0) for index in range(300))))
    counting.cancel()

    assert turns >= 3


@on_a_loop
async def test_a_hundred_thousand_unknown_partitions_are_answered_one_by_one() -> None:
    broker = await filled()
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=0) for index in range(1, 100_001)]
    body = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=partitions)])

    answers = await ask(broker, body)

    assert len(answers) == 100_000
    assert {one.error_code for one in answers} == {UNKNOWN}


def test_a_refusal_lists_all_requested_partitions() -> None:
    body = listing(("orders", 0, LATEST), ("orders", 0, LATEST), ("more", 3, LATEST))

    refused: Any = API.refuse(body, 11, -1)  # type: ignore[arg-type]

    assert [(topic.name, topic.partitions[0].error_code) for topic in refused.topics] == [
        ("orders", -1),
        ("orders", -1),
        ("more", -1),
    ]
