"""Members of our own client that come and go while records arrive and the broker restarts: none is missed.

BARNABAS_SEEDS=100 pytest tests/simulation/test_group_members_chaos.py     tries more of them
"""

import asyncio
from random import Random
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.consumer import Consumer
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import broker_settings, make_broker
from support.group.worlds import PROTOCOLS, QUICKLY, member_of
from support.scale import seeds
from support.stories import client_of

PARTITIONS = 4
RECORDS = 120
SEEDS = seeds(4)
# The restart of a coordinator and a session that ends fit in.
PATIENCE_S = 300.0


class Group:
    """Who reads what: every record with the member that was given it."""

    def __init__(self, world: World, protocol: dict[str, str]) -> None:
        self._world = world
        self._protocol = protocol
        self._members: dict[str, asyncio.Task[None]] = {}
        self._count = 0
        self.read: list[tuple[int, int, str]] = []

    def come(self) -> None:
        self._count += 1
        name = f"member-{self._count}"
        self._members[name] = asyncio.ensure_future(self._live(name))

    async def go(self, dice: Random) -> None:
        """One of them is told to stop: it commits and leaves."""
        name = dice.choice(sorted(self._members))
        task = self._members.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def end(self) -> None:
        for task in self._members.values():
            task.cancel()
        ended = await asyncio.gather(*self._members.values(), return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended

    async def _live(self, name: str) -> None:
        settings: dict[str, Any] = {**self._protocol, "auto_commit_interval_ms": 500}
        async with member_of(self._world, name, **settings) as consumer:
            await consumer.subscribe(["orders"])
            async for message in consumer:
                self.read.append((message.partition, message.offset, name))

    def crashed(self) -> list[BaseException]:
        done = [task for task in self._members.values() if task.done() and not task.cancelled()]
        return [error for task in done if (error := task.exception()) is not None]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["eager", "cooperative", "consumer"])
def test_no_record_is_missed_while_members_join_and_leave(protocol: dict[str, str], seed: int) -> None:
    with World(seed) as world:
        world.run(_tell(world, protocol), until_ms=1_000_000)


async def _tell(world: World, protocol: dict[str, str]) -> None:
    dice = world.dice("members")
    settings = broker_settings({**QUICKLY, "group.min.session.timeout.ms": 1_000})
    broker = make_broker(world, settings)
    await broker.start()
    group = Group(world, protocol)
    try:
        async with client_of(broker) as client:
            await client.create("orders", partitions=PARTITIONS)
        group.come()
        group.come()
        for number in range(RECORDS):
            await _produce(broker, number)
            match dice.randrange(12):
                case 0:
                    group.come()
                case 1 if len(group._members) > 1:
                    await group.go(dice)
                case 2:
                    await asyncio.sleep(dice.uniform(0, 4))
            if number == RECORDS // 2:
                await broker.stop()
                broker = make_broker(world, settings)
                await broker.start()
        if not group._members:
            group.come()
        await _until_all_is_read(group)
        await group.end()
        assert await _committed(world, protocol) == _ends()
    finally:
        for task in group._members.values():
            task.cancel()
        await broker.stop()


async def _produce(broker: Broker, number: int) -> None:
    async with client_of(broker) as client:
        await client.produce("orders", b"%d" % number, partition=number % PARTITIONS)


def _ends() -> dict[int, int]:
    return {partition: len(range(partition, RECORDS, PARTITIONS)) for partition in range(PARTITIONS)}


async def _until_all_is_read(group: Group) -> None:
    wanted = {(partition, offset) for partition, end in _ends().items() for offset in range(end)}
    waited_s = 0.0
    while {(partition, offset) for partition, offset, _ in group.read} != wanted:
        assert not group.crashed(), group.crashed()
        assert waited_s < PATIENCE_S, sorted(wanted - {(one, at) for one, at, _ in group.read})
        waited_s += 0.5
        await asyncio.sleep(0.5)


async def _committed(world: World, protocol: dict[str, str]) -> dict[int, int]:
    """What the next member would begin with."""
    consumer: Consumer = member_of(world, "late", **protocol)
    async with consumer:
        found = await consumer.committed([TopicPartition("orders", one) for one in range(PARTITIONS)])
        return {tp.partition: -1 if one is None else one.offset for tp, one in found.items()}
