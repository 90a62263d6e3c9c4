"""Arrow tables through our producer to the broker that ships."""

import asyncio

import pyarrow as pa
import pytest

from barnabas.client.producer.errors import BufferFull, RecordTooLarge
from barnabas.client.producer.key_hashes import murmur2_partition
from barnabas.records.columns_write import UnfitColumns
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.our_client.worlds import producing
from support.stories import Client, told


@told()
async def test_rows_arrive_in_order_between_single_records(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with producing(world, linger_ms=1000) as producer:
        await producer.send("orders", b"before")
        (rows,) = await producer.send_table("orders", pa.table({"value": [b"0", b"1", b"2"]}))
        after = await producer.send("orders", b"after")
        placed = await rows
        assert (placed.offset, rows.records) == (1, 3)
        await producer.flush()
        assert after.result().offset == 4
    assert await client.values("orders") == [b"before", b"0", b"1", b"2", b"after"]


@told()
async def test_rows_with_keys_go_where_single_records_would(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=3)
    keys = [b"%d" % (number % 10) for number in range(100)]
    table = pa.table({"value": [b"%d" % number for number in range(100)], "key": keys})
    async with producing(world, compression_type="lz4") as producer:
        sent = await producer.send_table("orders", table)
        assert sum(each.records for each in sent) == 100
        await asyncio.gather(*sent)
    for partition in range(3):
        found = [record.value for record in await client.read("orders", partition=partition)]
        assert found == [b"%d" % n for n in range(100) if murmur2_partition(keys[n], 3) == partition]


@told()
async def test_a_table_that_is_larger_than_the_memory_is_sent_in_parts(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    values = [b"%05d" % number + b"x" * 200 for number in range(1000)]
    async with producing(world, buffer_memory=20_000) as producer:
        sent = await producer.send_table("orders", pa.table({"value": values}))
        assert len(sent) > 10
        offsets = [(await each).offset for each in sent]
    assert offsets == sorted(offsets)
    assert await client.values("orders") == values


@told()
async def test_a_cancelled_send_table_returns_the_deliveries_of_accepted_rows(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    values = [b"%05d" % number + b"x" * 200 for number in range(300)]
    async with producing(world, buffer_memory=20_000, max_block_ms=1000) as producer:
        await (await producer.send("orders", b"before"))
        world.network.cut("localhost", "localhost")
        with pytest.raises(BufferFull) as full:
            await producer.send_table("orders", pa.table({"value": values}))
        taken = list(full.value.deliveries)
        assert taken
        world.network.heal()
        await asyncio.gather(*taken)
    rows = sum(each.records for each in taken)
    assert await client.values("orders") == [b"before", *values[:rows]]


@told()
async def test_an_invalid_table_is_rejected_as_a_whole(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders")
    async with producing(world, max_request_size=1000) as producer:
        with pytest.raises(UnfitColumns):
            await producer.send_table("orders", pa.table({"other": [1]}))
        with pytest.raises(RecordTooLarge):
            await producer.send_table("orders", pa.table({"value": [b"x" * 2000]}))
        assert await producer.send_table("orders", pa.table({"value": pa.array([], pa.binary())})) == []
        assert producer.buffered_bytes == 0
