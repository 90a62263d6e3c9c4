"""Waiting in vain for records, in virtual time: what a test is told about what was there."""

import pytest

from barnabas.client import Admin, Producer
from barnabas.client.ports import ClientPorts
from barnabas.sim.world import World
from barnabas.testing import WaitTimedOut, wait_for_offset_async, wait_for_records_async
from support.brokers import PORT, running

BOOTSTRAP = f"127.0.0.1:{PORT}"
TOPIC = "orders"


async def make_topic(world: World, partitions: int, *values: bytes) -> None:
    ports = ClientPorts(clock=world.clock, rng=world.dice("client"))
    async with Admin(bootstrap_servers=BOOTSTRAP, ports=ports) as admin:
        await admin.create_topic(TOPIC, partitions=partitions)
    async with Producer(bootstrap_servers=BOOTSTRAP, ports=ports) as producer:
        for value in values:
            await producer.send(TOPIC, value, partition=partitions - 1)


def test_a_timeout_lists_the_received_records() -> None:
    async def story(world: World) -> str:
        async with running(world):
            await make_topic(world, 2, b"one", b"two")
            with pytest.raises(WaitTimedOut) as caught:
                await wait_for_records_async(BOOTSTRAP, TOPIC, 3, timeout_s=20)
        return str(caught.value)

    with World(seed=1) as world:
        told = world.run(story(world))

    assert told == (
        "waited 20 s for 3 records of orders; received 2:\n"
        "  orders-1@0 key=None value=b'one'\n"
        "  orders-1@1 key=None value=b'two'"
    )


def test_only_the_last_of_many_records_are_reported() -> None:
    async def story(world: World) -> None:
        async with running(world):
            await make_topic(world, 1, *(b"%d" % number for number in range(25)))
            with pytest.raises(WaitTimedOut, match=r"; received 25, the last 10:\n.*@15 .*value=b'15'"):
                await wait_for_records_async(BOOTSTRAP, TOPIC, 26, timeout_s=20)

    with World(seed=1) as world:
        world.run(story(world))


def test_a_missing_topic_is_distinguished_from_no_records() -> None:
    async def story(world: World) -> None:
        async with running(world):
            with pytest.raises(WaitTimedOut, match=r"for 1 record of orders; the topic does not exist"):
                await wait_for_records_async(BOOTSTRAP, TOPIC, timeout_s=20)
            await make_topic(world, 1)
            with pytest.raises(WaitTimedOut, match=r"for 1 record of orders; received none$"):
                await wait_for_records_async(BOOTSTRAP, TOPIC, timeout_s=20)

    with World(seed=1) as world:
        world.run(story(world))


def test_a_timeout_reports_the_end_offset() -> None:
    async def story(world: World) -> None:
        async with running(world):
            await make_topic(world, 2, b"one", b"two")
            with pytest.raises(WaitTimedOut, match=r"for orders-1 to end at 3; .*: orders-1 ends at 2"):
                await wait_for_offset_async(BOOTSTRAP, TOPIC, 3, partition=1, timeout_s=20)

    with World(seed=1) as world:
        world.run(story(world))
