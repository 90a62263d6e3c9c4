"""Closing and cancelling clients at arbitrary moments leaves no tasks or connections."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import BrokerUnavailable, Closed
from barnabas.client.metadata import Metadata
from barnabas.client.producer.producer import Producer
from barnabas.sim.world import World
from support.our_client.consumer_worlds import ReadableBrokers, consumer_of
from support.our_client.consumer_worlds import nothing_left as nothing_left_of_consumer
from support.our_client.odd_brokers import OddBrokers
from support.our_client.peers import in_world, ports_of, settings_of
from support.our_client.worlds import (
    nothing_left,
    producer_of,
)


@pytest.mark.parametrize("moment_us", range(0, 4000, 100))
@in_world
async def test_a_producer_closed_while_it_starts_leaves_nothing(world: World, moment_us: int) -> None:
    async with OddBrokers().running():
        before = set(asyncio.all_tasks())
        producer = producer_of(world)
        starting = asyncio.ensure_future(producer.start())
        await asyncio.sleep(moment_us / 1e6)
        await producer.close()
        with suppress(Closed):
            await starting
        await asyncio.sleep(1)
        nothing_left(producer, before)
        with pytest.raises(Closed):
            await producer.send("orders", b"a")


@pytest.mark.parametrize("moment_us", range(0, 4000, 100))
@in_world
async def test_a_consumer_closed_while_it_starts_leaves_nothing(world: World, moment_us: int) -> None:
    async with ReadableBrokers().running():
        before = set(asyncio.all_tasks())
        consumer = consumer_of(world)
        starting = asyncio.ensure_future(consumer.start())
        await asyncio.sleep(moment_us / 1e6)
        await consumer.close()
        with suppress(Closed):
            await starting
        await asyncio.sleep(1)
        nothing_left_of_consumer(consumer, before)
        assert world.network.open_connections() == []


@in_world
async def test_closing_a_cluster_right_after_its_start_leaks_nothing(world: World) -> None:
    class ClosedInTime(Cluster):
        async def _refresh(self, names: frozenset[str], create: bool) -> Metadata:
            found = await super()._refresh(names, create)
            self.closing = asyncio.ensure_future(self.close())
            return found

    async with OddBrokers().running():
        before = set(asyncio.all_tasks())
        cluster = ClosedInTime(settings_of(), ports_of(world))
        with pytest.raises(Closed):
            await cluster.start()
        await cluster.closing
        await asyncio.sleep(1)
        ours = [task for task in asyncio.all_tasks() - before if "barnabas/client/" in repr(task)]
        assert ours == []


@pytest.mark.parametrize("kind", [producer_of, consumer_of])
@in_world
async def test_a_client_that_could_not_start_can_be_started_again(
    world: World, kind: Callable[..., Producer | Consumer]
) -> None:
    before = set(asyncio.all_tasks())
    client = kind(world, default_api_timeout_ms=500, request_timeout_ms=300)
    with pytest.raises(BrokerUnavailable):
        await client.start()
    assert [task for task in asyncio.all_tasks() - before if "barnabas/client/" in repr(task)] == []
    async with OddBrokers().running():
        await client.start()
        await client.close()


@pytest.mark.parametrize("ms", [0, 1, 5, 50, 500])
@in_world
async def test_a_cancelled_close_of_a_consumer_leaks_nothing(world: World, ms: int) -> None:
    async with ReadableBrokers().running():
        before = set(asyncio.all_tasks())
        consumer = consumer_of(world)
        await consumer.start()
        await consumer.assign([("orders", 0)])
        await asyncio.sleep(2)
        world.network.cut("localhost", "localhost")
        with suppress(TimeoutError):
            async with asyncio.timeout(ms / 1000):
                await consumer.close()
        await asyncio.sleep(0.1)
        nothing_left_of_consumer(consumer, before)
        world.network.heal()


@in_world
async def test_clients_can_be_closed_by_several_at_once(world: World) -> None:
    async with OddBrokers().running():
        before = set(asyncio.all_tasks())
        producer = producer_of(world, linger_ms=1000)
        await producer.start()
        delivery = await producer.send("orders", b"a")
        await asyncio.gather(producer.close(), producer.close(), producer.close(0))
        await producer.close()
        assert delivery.done()
        nothing_left(producer, before)
    async with ReadableBrokers().running():
        consumer = consumer_of(world)
        await consumer.start()
        await consumer.assign([("orders", 0)])
        await asyncio.gather(consumer.close(), consumer.close())
        await consumer.close()
        nothing_left_of_consumer(consumer, before)


@in_world
async def test_position_raises_closed_when_the_consumer_is_closed(world: World) -> None:
    async with ReadableBrokers(partitions=2).running() as brokers:
        consumer = consumer_of(world)
        await consumer.start()
        brokers.leaders[TopicPartition("orders", 1)] = (-1, 0)
        await consumer.assign([("orders", 1)])
        asking = asyncio.ensure_future(consumer.position(("orders", 1)))
        await asyncio.sleep(1)
        began_s = world.loop.time()
        await consumer.close()
        with pytest.raises(Closed):
            await asking
        assert world.loop.time() - began_s < 2
