"""How old the first record is that comes at an offset or after it, whatever lies in between."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client import Producer
from barnabas.client.admin import PartlyRefused
from barnabas.client.admin.record_times import PARTITIONS_AT_ONCE
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import TimestampType, read_header
from barnabas.records.rebuild import rebuild_batch
from barnabas.sim.world import World
from support.our_client.admin_worlds import administrated, new_admin
from support.our_client.peers import ADDRESS, in_world, ports_of
from support.our_client.scripted_brokers import ScriptedBroker, listening_all, metadata_of

ORDERS_0 = TopicPartition("orders", 0)
OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)


def batch(first: int, *times: int, codec: Codec = Codec.NONE) -> bytes:
    return build_batch([(time, None, b"v", ()) for time in times], base_offset=first, codec=codec)


def marker(offset: int) -> bytes:
    return build_control_batch(
        ControlType.COMMIT,
        bytes(6),
        timestamp=1,
        base_offset=offset,
        leader_epoch=0,
        producer_id=7,
        producer_epoch=0,
    )


def compacted(data: bytes, *offsets: int) -> bytes:
    """A batch with only these of its records left."""
    kept = [record for record in decode_batch(data) if record.offset in offsets]
    return rebuild_batch(read_header(data), kept)


def log_of(batches: Sequence[bytes], *, start: int = 0) -> Callable[[Any], FetchResponse]:
    """A leader's answers: the batch that holds an offset and as many after it as there is room for."""
    headers = [read_header(each) for each in batches]
    end = headers[-1].base_offset + headers[-1].last_offset_delta + 1

    def say(request: Any) -> FetchResponse:
        [topic] = request.topics
        [row] = topic.partitions
        if not start <= row.fetch_offset <= end:
            return fetched(
                PartitionData(partition_index=0, error_code=OUT_OF_RANGE, high_watermark=-1), topic
            )
        data = b""
        for header, each in zip(headers, batches, strict=True):
            is_after = header.base_offset + header.last_offset_delta >= row.fetch_offset
            if is_after and (not data or len(data) + len(each) <= row.partition_max_bytes):
                data += each
        return fetched(
            PartitionData(partition_index=0, error_code=0, high_watermark=end, records=data), topic
        )

    return say


def fetched(row: PartitionData, topic: Any) -> FetchResponse:
    row.aborted_transactions = None
    one = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[row])
    return FetchResponse(session_id=0, responses=[one])


def leader(say: Callable[[Any], object | None], *, start: int = 0, newest: int = 18) -> ScriptedBroker:
    rows = [ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=start)]
    listed = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=rows)])
    says = {
        ApiKey.METADATA: metadata_of({"orders": [1]}),
        ApiKey.FETCH: say,
        ApiKey.LIST_OFFSETS: lambda _: listed,
    }
    return ScriptedBroker(says=says, newest={ApiKey.FETCH: newest})


async def time_at(world: World, broker: ScriptedBroker, offset: int) -> int | None:
    async with listening_all(broker), new_admin(world) as admin:
        return (await admin.first_record_times({ORDERS_0: offset}))[ORDERS_0]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize(("offset", "time"), [(0, 100), (1, 300), (2, 200), (3, 400), (4, None)])
@in_world
async def test_the_time_is_that_of_the_record_and_not_of_its_batch(
    world: World, codec: Codec, offset: int, time: int | None
) -> None:
    broker = leader(log_of([batch(0, 100, 300, 200, codec=codec), batch(3, 400, codec=codec)]))

    assert await time_at(world, broker, offset) == time
    assert len(broker.asked_for(ApiKey.FETCH)) == 1


@in_world
async def test_markers_of_transactions_are_no_records(world: World) -> None:
    batches = [batch(0, 100), marker(1), marker(2), batch(3, 400), marker(4)]

    at_the_end = leader(log_of(batches))

    assert await time_at(world, leader(log_of(batches)), 1) == 400
    assert await time_at(world, at_the_end, 4) is None
    assert len(at_the_end.asked_for(ApiKey.FETCH)) == 1


@in_world
async def test_many_batches_without_a_record_are_passed_over_in_a_few_fetches(world: World) -> None:
    batches = [marker(offset) for offset in range(1000)]
    broker = leader(log_of([*batches, batch(1000, 77)]))

    assert await time_at(world, broker, 0) == 77
    assert len(broker.asked_for(ApiKey.FETCH)) == 2


@in_world
async def test_records_removed_by_compaction_are_skipped(world: World) -> None:
    first = compacted(batch(0, 100, 200, 300, 400), 1)
    empty = compacted(batch(4, 500, 600))
    batches = [first, empty, batch(6, 700)]

    times = [await time_at(world, leader(log_of(batches)), offset) for offset in range(7)]

    assert times == [200, 200, 700, 700, 700, 700, 700]


@in_world
async def test_records_before_the_log_start_are_skipped(world: World) -> None:
    assert await time_at(world, leader(log_of([batch(5, 500)], start=5), start=5), 2) == 500


@in_world
async def test_nothing_follows_an_offset_after_the_end(world: World) -> None:
    broker = leader(log_of([batch(5, 500)], start=5), start=5)

    assert await time_at(world, broker, 99) is None
    assert len(broker.asked_for(ApiKey.FETCH)) == 1


@in_world
async def test_a_time_of_the_broker_is_the_time_of_all_records_of_a_batch(world: World) -> None:
    data = build_batch(
        [(100, None, b"v", ()), (900, None, b"v", ())], timestamp_type=TimestampType.LOG_APPEND_TIME
    )

    assert await time_at(world, leader(log_of([data])), 0) == 900


@in_world
async def test_a_record_without_a_time_has_minus_one(world: World) -> None:
    assert await time_at(world, leader(log_of([batch(0, -1)])), 0) == -1


@in_world
async def test_a_broker_that_holds_us_back_is_asked_again(world: World) -> None:
    answers = [FetchResponse(session_id=0, throttle_time_ms=50, responses=[])]
    log = log_of([batch(0, 100)])

    assert await time_at(world, leader(lambda request: answers.pop() if answers else log(request)), 0) == 100


@pytest.mark.parametrize("newest", [11, 18])
@in_world
async def test_a_topic_whose_id_is_not_known_is_named(world: World, newest: int) -> None:
    broker = leader(log_of([batch(0, 100)]), newest=newest)

    assert await time_at(world, broker, 0) == 100
    [asked] = [each for each in broker.asked if each.api.key is ApiKey.FETCH]
    assert (asked.version, asked.body.topics[0].topic) == (min(newest, 12), "orders")


@in_world
async def test_a_corrupt_batch_is_an_error_without_a_retry(world: World) -> None:
    broken = bytearray(batch(0, 100))
    broken[-1] ^= 1
    broker = leader(log_of([bytes(broken)]))

    with pytest.raises(PartlyRefused) as caught:
        await time_at(world, broker, 0)

    assert caught.value.refused["orders-0"].code is ErrorCode.CORRUPT_MESSAGE
    assert len(broker.asked_for(ApiKey.FETCH)) == 1


@in_world
async def test_many_partitions_are_read_but_not_all_at_once(world: World) -> None:
    count, most_at_once = 3 * PARTITIONS_AT_ONCE, 0
    async with administrated(world) as admin:
        await admin.create_topic("orders", partitions=count)
        async with Producer(bootstrap_servers=ADDRESS, ports=ports_of(world, "producer")) as producer:
            for partition in range(count):
                for time in (1000, 2000 + partition, 3000):
                    await producer.send("orders", b"v", partition=partition, timestamp_ms=time)
            await producer.flush()
        wanted = {TopicPartition("orders", each): 1 for each in range(count)}
        asking = asyncio.ensure_future(admin.first_record_times(wanted))
        while not asking.done():
            most_at_once = max(most_at_once, (await admin.cluster.connection(1)).in_flight)
            await asyncio.sleep(0.00001)
        found = await asking

    assert found == {TopicPartition("orders", each): 2000 + each for each in range(count)}
    assert 1 < most_at_once <= PARTITIONS_AT_ONCE
