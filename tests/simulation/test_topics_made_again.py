"""A topic that is deleted and made again is another topic, whatever was written down of the first one."""

import asyncio

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.producer.producer import Producer
from barnabas.sim.world import World
from support.our_client.chaos import BrokerLife
from support.our_client.peers import ADDRESS, in_world, ports_of

OLD = 29


async def fill(world: World, count: int) -> None:
    async with Producer(ports=ports_of(world, "producer"), bootstrap_servers=ADDRESS) as producer:
        for _ in range(count):
            await (await producer.send("orders", b"record", partition=0))


async def readable(world: World) -> int:
    ports = ports_of(world, "consumer")
    async with Consumer(ports=ports, bootstrap_servers=ADDRESS, auto_offset_reset="earliest") as consumer:
        await consumer.assign([("orders", 0)])
        return len(await consumer.batch(100, timeout_ms=5000))


@pytest.mark.parametrize(
    ("deleted_up_to", "count"),
    [(20, 40), (0, 6)],
    ids=["the old one began after 0", "the old one was flushed further than the new one goes"],
)
@in_world
async def test_acknowledged_records_of_the_recreated_topic_survive_a_kill(
    world: World, deleted_up_to: int, count: int
) -> None:
    life = BrokerLife(world)
    await life.begin()
    async with Admin(ports=ports_of(world, "admin"), bootstrap_servers=ADDRESS) as admin:
        await admin.create_topic("orders", partitions=1)
        await fill(world, OLD)
        await admin.delete_records({("orders", 0): deleted_up_to})
        # A clean stop writes down where each log begins and how far it is flushed.
        await life.stop()
        await life.begin()
        await admin.delete_topic("orders")
        await admin.create_topic("orders", partitions=1)
        await asyncio.sleep(1)
        await fill(world, count)

        await life.kill()
        await life.begin()

        assert await readable(world) == count
    await life.stop()
