"""A bug affects one partition, one group or one background task, and nothing else."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.server.handlers.fetch import API as FETCH
from barnabas.server.handlers.produce import API as PRODUCE
from barnabas.storage.files import Buffer
from barnabas.storage.intake import OVERLAP_BYTES
from barnabas.storage.upkeep import Upkeep, UpkeepSettings
from support.hosted import Hosted, one_topic
from support.log.managers import on_a_loop
from support.wire.requests import batch

T = TypeVar("T")

# Of the time that the broker has.
SMALL, LARGE = batch(b"small", time=1_000), batch(b"x" * OVERLAP_BYTES, time=1_000)


class BrokenChecksums:
    """A checksum thread that fails."""

    def begin(self, data: Buffer) -> None:
        """Nobody is there to begin it."""

    def end(self) -> int:
        raise RuntimeError("can't start new thread")


class NoThreads(InlineExecutor):
    """An executor that for a while cannot start threads."""

    def __init__(self) -> None:
        self.has_threads = True

    async def run(self, work: Callable[[], T]) -> T:
        if not self.has_threads:
            raise RuntimeError("can't start new thread")
        return await super().run(work)


async def produce(broker: Hosted, records: list[bytes]) -> list[ErrorCode]:
    """Send one batch per partition in one request; return the result of each."""
    data = [PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="orders", partition_data=data)]
    )
    [topic] = (await broker.ask(PRODUCE, request, 9)).responses
    return [ErrorCode(one.error_code) for one in topic.partition_responses]


async def fetch(broker: Hosted) -> list[ErrorCode]:
    """The result of the first partition."""
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=wanted)],
    )
    [topic] = (await broker.ask(FETCH, request, 12)).responses
    return [ErrorCode(one.error_code) for one in topic.partitions]


async def until(holds: Callable[[], bool], chores: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(10):
        while not holds():
            assert not chores.done()
            await asyncio.sleep(0.01)


@on_a_loop
async def test_an_append_that_fails_takes_one_partition_offline() -> None:
    broker = await one_topic(partitions=2)
    assert await produce(broker, [SMALL, SMALL]) == [ErrorCode.NONE] * 2
    whole = broker.services.checksums
    broker.services.checksums = BrokenChecksums()

    assert await produce(broker, [LARGE, SMALL]) == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]

    broker.services.checksums = whole
    assert await produce(broker, [SMALL, SMALL]) == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert await fetch(broker) == [ErrorCode.KAFKA_STORAGE_ERROR]
    # The next start recovers the logs. What was acknowledged is there, and what was not may be.
    assert not await broker.logs.close()
    again = await one_topic(partitions=2, disk=broker.disk)
    assert [again.log("orders", index).end_offset for index in range(2)] == [2, 3]
    assert await produce(again, [SMALL, SMALL]) == [ErrorCode.NONE] * 2
    assert await again.logs.close()


@on_a_loop
async def test_failed_background_tasks_restart_while_others_run(caplog: pytest.LogCaptureFixture) -> None:
    executor = NoThreads()
    broker = await one_topic(partitions=2, executor=executor)
    often = UpkeepSettings(
        flush_check_ms=1, checkpoint_ms=1, retention_check_ms=1, initial_delay_ms=1, removal_check_ms=1
    )
    upkeep = Upkeep(broker.logs, often, secret=bytes(16))
    chores = asyncio.create_task(upkeep.run())
    await produce(broker, [SMALL, SMALL])
    executor.has_threads = False
    for index in range(2):
        broker.log("orders", index).roll(broker.clock.now_ms())

    await until(lambda: "flush failed" in caplog.text and "checkpoints not written" in caplog.text, chores)

    executor.has_threads = True
    for index in range(2):
        await produce(broker, [SMALL, SMALL])
        broker.log("orders", index).roll(broker.clock.now_ms())
    await until(lambda: all(broker.log("orders", index).recovery_point > 0 for index in range(2)), chores)
    chores.cancel()
    await asyncio.gather(chores, return_exceptions=True)


@on_a_loop
async def test_a_failed_topic_creation_does_not_affect_others() -> None:
    executor = NoThreads()
    broker = await one_topic(partitions=1, executor=executor)
    image = broker.services.image
    executor.has_threads = False
    empty = await one_topic("events", partitions=1)

    await broker.replicas._follow_topics(
        empty.services.image, empty.services.image.topics.values(), is_new=True
    )

    assert TopicPartition("events", 0) in broker.replicas.offline
    assert await produce(broker, [SMALL]) == [ErrorCode.NONE]
    assert broker.services.image is image
