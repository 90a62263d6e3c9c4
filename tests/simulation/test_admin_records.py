"""The admin client and a broker in the simulated world: offsets, deleted records, producers, log dirs."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import (
    UP_TO_HIGH_WATERMARK,
    ListedOffset,
    OffsetSpec,
    PartlyRefused,
    ReplicaLog,
)
from barnabas.client.errors import UnknownTopic
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.peers import in_world
from support.stories import Client, Stopwatch, told

ORDERS_0, ORDERS_1, NOPE_0 = (
    TopicPartition("orders", 0),
    TopicPartition("orders", 1),
    TopicPartition("nope", 0),
)


@told()
async def test_offsets_are_found_by_place_and_by_time(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=2)
    base = world.clock.now_ms()
    await client.produce("orders", b"a", time=base)
    await client.produce("orders", b"b", time=base + 50)
    await client.produce("orders", b"c", time=base + 20)
    await client.delete_records("orders", 1)

    async def found(spec: int) -> ListedOffset:
        return (await admin.list_offsets({ORDERS_0: spec}))[ORDERS_0]

    async with new_admin(world) as admin:
        assert await found(OffsetSpec.EARLIEST) == ListedOffset(offset=1, timestamp_ms=None, leader_epoch=0)
        assert (await found(OffsetSpec.LATEST)).offset == 3
        highest = ListedOffset(offset=1, timestamp_ms=base + 50, leader_epoch=0)
        assert await found(OffsetSpec.MAX_TIMESTAMP) == highest
        assert await found(base + 30) == highest
        assert (await found(base + 51)).offset is None
        assert (await found(OffsetSpec.EARLIEST_LOCAL)).offset == 1
        assert (await found(OffsetSpec.LATEST_TIERED)).offset is None
        assert (await found(OffsetSpec.EARLIEST_PENDING_UPLOAD)).offset is None
        both = await admin.list_offsets(
            {ORDERS_1: OffsetSpec.LATEST, ORDERS_0: OffsetSpec.LATEST}, isolation="read_committed"
        )
        assert {tp: each.offset for tp, each in both.items()} == {ORDERS_1: 0, ORDERS_0: 3}
        assert await admin.list_offsets({}) == {}


@told()
async def test_a_missing_partition_is_retried_briefly_only(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with new_admin(world) as admin:
        watch = Stopwatch(world)
        with pytest.raises(PartlyRefused) as refused:
            await admin.list_offsets(dict.fromkeys([ORDERS_0, ORDERS_1, NOPE_0], OffsetSpec.LATEST))

    assert 5_000 <= watch.ms <= 7_000
    assert list(refused.value.refused) == ["orders-1", "nope-0"]
    assert all(isinstance(error, UnknownTopic) for error in refused.value.refused.values())
    assert refused.value.done[ORDERS_0].offset == 0


@told()
async def test_a_partition_that_appears_in_time_is_found(
    world: World, broker: Broker, client: Client
) -> None:
    async with new_admin(world) as admin:
        world.loop.call_later(2, lambda: world.loop.create_task(client.create("orders")))
        found = await admin.list_offsets({ORDERS_0: OffsetSpec.LATEST})

    assert found[ORDERS_0].offset == 0


@told()
async def test_records_are_deleted_up_to_an_offset_or_to_the_end(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    await client.produce("orders", b"a", b"b", b"c")
    await client.produce("orders", b"d", partition=1)
    async with new_admin(world) as admin:
        assert await admin.delete_records({ORDERS_0: 2, ORDERS_1: UP_TO_HIGH_WATERMARK}) == {
            ORDERS_0: 2,
            ORDERS_1: 1,
        }
        with pytest.raises(PartlyRefused) as refused:
            await admin.delete_records({ORDERS_0: 3, ORDERS_1: 9})
        earliest = await admin.list_offsets({ORDERS_0: OffsetSpec.EARLIEST})

    assert refused.value.refused["orders-1"].code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert refused.value.done == {ORDERS_0: 3}
    assert earliest[ORDERS_0].offset == 3


@told()
async def test_producers_are_described(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=2)
    writer = await client.producer()
    await client.produce("orders", b"a", b"b", producer=writer)
    async with new_admin(world) as admin:
        found = await admin.describe_producers([ORDERS_0, ("orders", 1)])
        here = await admin.describe_producers([ORDERS_0], broker=1)

    (one,) = found[ORDERS_0]
    assert (one.producer_id, one.producer_epoch, one.last_sequence) == (writer.id, 0, 1)
    assert (one.coordinator_epoch, one.transaction_start_offset) == (None, None)
    assert found[ORDERS_1] == ()
    assert here == {ORDERS_0: (one,)}


@told({"log.dirs": "/data,/more"})
async def test_log_directories_are_described(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=2)
    await client.produce("orders", b"a")
    async with new_admin(world) as admin:
        found = await admin.describe_log_dirs()
        some = await admin.describe_log_dirs([1], partitions=[ORDERS_0])
        with pytest.raises(PartlyRefused) as refused:
            await admin.describe_log_dirs([1, 7])

    assert set(found[1]) == {"/data", "/more"}
    logs = {tp: log for each in found[1].values() for tp, log in each.replicas.items()}
    assert set(logs) == {ORDERS_0, ORDERS_1}
    assert logs[ORDERS_0].size_bytes > 0
    assert logs[ORDERS_1] == ReplicaLog(size_bytes=0, offset_lag=0, future=False)
    assert [tp for each in some[1].values() for tp in each.replicas] == [ORDERS_0]
    data = found[1]["/data"]
    assert (data.error, data.cordoned) == (None, False)
    assert data.total_bytes is not None
    assert refused.value.refused["7"].code is ErrorCode.BROKER_NOT_AVAILABLE
    assert list(refused.value.done) == [1]


@in_world
async def test_pairs_will_do_for_partitions(world: World) -> None:
    from support.our_client.admin_worlds import administrated

    async with administrated(world) as admin:
        await admin.create_topic("orders")
        pair = ("orders", 0)
        found = await admin.list_offsets({pair: OffsetSpec.LATEST})  # type: ignore[dict-item]

    assert found[ORDERS_0].offset == 0
