"""DeleteRecords: a log's start moves forward, stays there after a restart, and whoever waits is told."""

import pytest

from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.replication.partition import Partition
from barnabas.server.handlers.delete_records import API
from barnabas.storage.upkeep import Upkeep, UpkeepSettings
from support.hosted import Hosted, hosted, image_of, one_topic, partition_image
from support.log.logs import put
from support.log.managers import on_a_loop

OUT_OF_RANGE, UNKNOWN, NOT_LEADER, BAD_TOPIC, POLICY = 1, 3, 6, 17, 44


def deletion(*asked: tuple[str, int, int]) -> DeleteRecordsRequest:
    """(topic, partition, offset), each as a topic of its own."""
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)]
            )
            for name, index, offset in asked
        ],
        timeout_ms=1_000,
    )


async def delete(broker: Hosted, *asked: tuple[str, int, int], version: int = 2) -> list[tuple[int, int]]:
    """The low watermark and the error of every partition."""
    answer = await broker.ask(API, deletion(*asked), version)
    return [(one.low_watermark, one.error_code) for topic in answer.topics for one in topic.partitions]


def fill(broker: Hosted, topic: str = "orders") -> None:
    """Nine records in three batches."""
    for _ in range(3):
        put(broker.log(topic), b"a", b"b", b"c")
    broker.settle()


async def filled() -> Hosted:
    broker = await one_topic()
    fill(broker)
    return broker


@pytest.mark.parametrize("version", [0, 1, 2])
@on_a_loop
async def test_the_log_starts_where_it_was_asked_to(version: int) -> None:
    broker = await filled()

    assert await delete(broker, ("orders", 0, 4), version=version) == [(4, 0)]
    assert broker.log("orders").start_offset == 4


@on_a_loop
async def test_minus_one_deletes_up_to_the_high_watermark() -> None:
    broker = await filled()

    assert await delete(broker, ("orders", 0, -1)) == [(9, 0)]


@on_a_loop
async def test_the_start_never_goes_back() -> None:
    broker = await filled()
    await delete(broker, ("orders", 0, 4))

    assert await delete(broker, ("orders", 0, 2)) == [(4, 0)]
    assert await delete(broker, ("orders", 0, 0)) == [(4, 0)]


@pytest.mark.parametrize("offset", [10, -2, 2**63 - 1])
@on_a_loop
async def test_offsets_that_the_log_does_not_have_are_refused(offset: int) -> None:
    broker = await filled()

    assert await delete(broker, ("orders", 0, offset)) == [(-1, OUT_OF_RANGE)]
    assert broker.log("orders").start_offset == 0


@on_a_loop
async def test_offsets_above_the_high_watermark_are_refused() -> None:
    broker = await hosted(image_of({"orders": [partition_image(replicas=(1, 2))]}))
    fill(broker)

    assert await delete(broker, ("orders", 0, 1)) == [(-1, OUT_OF_RANGE)]


@pytest.mark.parametrize(
    ("policy", "answer"), [("compact", (-1, POLICY)), ("compact,delete", (4, 0)), ("delete", (4, 0))]
)
@on_a_loop
async def test_only_topics_with_cleanup_policy_delete_allow_deletion(
    policy: str, answer: tuple[int, int]
) -> None:
    broker = await hosted(image_of({"orders": [partition_image()]}, {"orders": {"cleanup.policy": policy}}))
    fill(broker)

    assert await delete(broker, ("orders", 0, 4)) == [answer]


@on_a_loop
async def test_unknown_internal_and_remote_partitions_are_refused() -> None:
    image = image_of(
        {
            "__consumer_offsets": [partition_image()],
            "moved": [partition_image(leader=2, replicas=(1, 2))],
            "far": [partition_image(leader=2, replicas=(2,))],
        }
    )
    broker = await hosted(image)

    answers = await delete(
        broker,
        ("nobody", 0, 0),
        ("moved", 7, 0),
        ("moved", -1, 0),
        ("moved", 0, 0),
        ("far", 0, 0),
        ("__consumer_offsets", 0, 0),
        ("__consumer_offsets", 5, 0),
    )

    assert [code for _, code in answers] == [
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        NOT_LEADER,
        NOT_LEADER,
        BAD_TOPIC,
        UNKNOWN,
    ]
    assert {low for low, _ in answers} == {-1}


@on_a_loop
async def test_the_last_offset_of_a_duplicate_partition_counts() -> None:
    broker = await filled()

    assert await delete(broker, ("orders", 0, 6), ("orders", 0, 2)) == [(2, 0)]


class Waiter:
    def __init__(self) -> None:
        self.starts: list[int] = []

    def poke(self, partition: Partition) -> None:
        self.starts.append(partition.log.start_offset)


@on_a_loop
async def test_waiting_fetches_are_notified_of_the_new_start() -> None:
    broker = await filled()
    waiter = Waiter()
    broker.partition("orders").waiters[waiter] = None

    await delete(broker, ("orders", 0, 4))
    await delete(broker, ("orders", 0, 4))

    assert waiter.starts == [4]


@on_a_loop
async def test_the_start_is_still_there_after_a_clean_restart() -> None:
    broker = await filled()
    await delete(broker, ("orders", 0, 4))

    await broker.logs.close()
    again = await one_topic(disk=broker.disk)

    assert again.log("orders").start_offset == 4


@on_a_loop
async def test_the_next_checkpoint_keeps_the_start_over_a_crash() -> None:
    broker = await filled()
    upkeep = Upkeep(broker.logs, UpkeepSettings(), secret=b"s" * 16)
    await delete(broker, ("orders", 0, 4))

    await upkeep.flush_due()
    await upkeep.write_checkpoints()
    broker.disk.crash()
    again = await one_topic(disk=broker.disk)

    assert again.log("orders").start_offset == 4
    assert again.log("orders").end_offset == 9
