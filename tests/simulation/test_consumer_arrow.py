"""Tables of what arrives: the same records as messages, with topic and partition."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from barnabas.client.consumer.arrow import table_schema
from barnabas.client.consumer.errors import NoArrow
from barnabas.client.consumer.message import EndOfPartition
from barnabas.client.errors import RequestTimedOut
from barnabas.records.header import Codec
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.our_client.consumer_worlds import ORDERS, consumer_of, nothing_left, reading, take
from support.stories import Client, told


async def fill(client: Client) -> None:
    """Two topics with two partitions each, every batch packed in its own way."""
    for topic in ("orders", "returns"):
        await client.create(topic, partitions=2)
        for number in range(20):
            sent = [f"{topic} {number} {each}".encode() for each in range(3)]
            await client.produce(topic, *sent, partition=number % 2, codec=list(Codec)[number % 5], key=b"k")


@pytest.mark.parametrize("views", [False, True])
def test_tables_have_every_record_once_with_its_place(views: bool) -> None:
    @told()
    async def story(world: World, broker: Broker, client: Client) -> None:
        await fill(client)
        tables: list[pa.Table] = []
        async with reading(world, max_partition_fetch_bytes=700) as consumer:
            await consumer.assign_topic("orders", "returns")
            async for table in consumer.arrow(views=views):
                tables.append(table)
                if sum(each.num_rows for each in tables) == 120:
                    break
            assert await consumer.batch(timeout_ms=2_000) == []
            positions = [await consumer.position(tp) for tp in consumer.assignment]
            assert (positions, consumer.held_bytes) == ([30] * 4, 0)
        whole = pa.concat_tables(tables)
        assert all(table.schema == table_schema(views=views) for table in tables)
        rows = whole.select(["topic", "partition", "offset", "value"]).to_pylist()
        for topic in ("orders", "returns"):
            for partition in range(2):
                mine = [row for row in rows if (row["topic"], row["partition"]) == (topic, partition)]
                assert [row["offset"] for row in mine] == list(range(30))
                assert [row["value"] for row in mine] == [
                    f"{topic} {number} {each}".encode()
                    for number in range(partition, 20, 2)
                    for each in range(3)
                ]

    story()


@told()
async def test_a_table_ends_when_it_has_enough(world: World, broker: Broker, client: Client) -> None:
    await fill(client)

    async with reading(world, ORDERS, ("orders", 1), max_partition_fetch_bytes=1) as consumer:
        await asyncio.sleep(1)
        sizes = []
        async for table in consumer.arrow(max_rows=1):
            sizes.append(table.num_rows)
            if sum(sizes) == 60:
                break

    # One batch of three an answer.
    assert sizes == [3] * 20


@told()
async def test_messages_and_tables_can_be_mixed(world: World, broker: Broker, client: Client) -> None:
    await fill(client)

    async with reading(world, ORDERS, enable_partition_eof=True) as consumer:
        first = await take(consumer, 4)
        tables = consumer.arrow()
        table = await anext(tables)
        end = await anext(tables)
        await tables.aclose()  # type: ignore[attr-defined]
        consumer.seek(ORDERS, 29)
        (last,) = await take(consumer, 1)

    assert [message.offset for message in first] == list(range(4))
    assert table.column("offset").to_pylist() == list(range(4, 30))
    assert (type(end), end.offset) == (EndOfPartition, 30)
    assert last.offset == 29


@told()
async def test_closing_ends_the_tables(world: World, broker: Broker, client: Client) -> None:
    await fill(client)
    before = set(asyncio.all_tasks())
    consumer = consumer_of(world)
    await consumer.start()
    await consumer.assign([ORDERS])

    async def everything() -> int:
        return sum([table.num_rows async for table in consumer.arrow()])

    reader = asyncio.ensure_future(everything())
    await asyncio.sleep(2)
    await consumer.close()

    assert await reader == 30
    nothing_left(consumer, before)


@told()
async def test_without_pyarrow_the_error_names_the_package_to_install(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.endswith("consumer.arrow")}
    pyarrow, sys.modules["pyarrow"] = sys.modules["pyarrow"], None  # type: ignore[assignment]
    try:
        async with reading(world, ORDERS) as consumer:
            with pytest.raises(NoArrow, match=r"barnabas\[arrow\]"):
                await anext(consumer.arrow())
            assert len(await take(consumer, 30)) == 30
    finally:
        sys.modules["pyarrow"] = pyarrow
        sys.modules.update(hidden)


@told()
async def test_a_range_is_read_to_its_end_and_nothing_beyond_is_fetched(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client)

    # One batch of three an answer.
    async with reading(world, ORDERS, max_partition_fetch_bytes=1, enable_partition_eof=True) as consumer:
        consumer.seek(ORDERS, 3, until=8)
        tables = consumer.arrow(max_rows=1, timeout_ms=5_000)
        found = [await anext(tables) for _ in range(3)]
        offsets = [[int(each) for each in table["offset"].to_pylist()] for table in found[:2]]
        end = found[2]
        with pytest.raises(RequestTimedOut, match="reading: no response"):
            await anext(tables)
        assert (consumer.held_bytes, await consumer.position(ORDERS)) == (0, 9)
        with pytest.raises(ValueError, match="must be greater than offset"):
            consumer.seek(ORDERS, 8, until=8)
        consumer.seek(ORDERS, 3)
        rows = sum([table.num_rows async for table in _until_end(consumer.arrow())])

    # A batch is handed out whole.
    assert offsets == [[3, 4, 5], [6, 7, 8]]
    assert (type(end), end.offset) == (EndOfPartition, 9)
    assert rows == 27


async def _until_end(tables: AsyncIterator[pa.Table]) -> AsyncIterator[pa.Table]:
    async for table in tables:
        if isinstance(table, EndOfPartition):
            return
        yield table


async def _read_all(tables: AsyncIterator[pa.Table]) -> None:
    async for _ in tables:
        pass


@told()
async def test_a_broker_that_is_gone_is_not_waited_for_without_end(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client)

    async with reading(world, ORDERS) as consumer:
        tables = consumer.arrow(timeout_ms=3_000)
        assert (await anext(tables)).num_rows > 0
        await broker.stop()
        before = world.clock.monotonic_ms()
        with pytest.raises(RequestTimedOut):
            await _read_all(tables)
        waited_ms = world.clock.monotonic_ms() - before

    assert 3_000 <= waited_ms < 8_000
