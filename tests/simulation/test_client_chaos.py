"""Our producers, consumers and admin with the real broker, under restarts, kills and network faults.

BARNABAS_SEEDS=500 pytest tests/simulation/test_client_chaos.py     tries more of them
"""

import asyncio

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.producer.producer import Producer
from barnabas.sim.world import World
from support.log.fault_world import replayable
from support.our_client.chaos import (
    PARTITIONS,
    STEADY,
    BrokerLife,
    Notes,
    administer,
    check_notes,
    disturb,
    produce,
    read_all,
    read_messages,
    read_tables,
    tasks_of_clients,
    until_all_is_seen,
)
from support.our_client.peers import ADDRESS, PORT, ports_of
from support.scale import seeds

TROUBLE_S = 12.0
# Limit of deliveries and calls once the network is healed.
PATIENCE_MS = 20_000
ENDING_S = 30.0
# In the simulated network, this end survives a connection that breaks before the broker accepted it.
BROKER_END = f"localhost[127.0.0.1]:{PORT}"

PATIENT = {
    "bootstrap_servers": ADDRESS,
    "request_timeout_ms": 2_000,
    "default_api_timeout_ms": PATIENCE_MS,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 300,
    "reconnect_backoff_max_ms": 300,
    "metadata_max_age_ms": 3_000,
}


def producer_named(world: World, name: str, **settings: object) -> Producer:
    more = {"batch_size": 200, "delivery_timeout_ms": PATIENCE_MS, "max_block_ms": 2_000, "linger_ms": 5}
    return Producer(ports=ports_of(world, name), **PATIENT, **{**more, **settings})


def consumer_named(world: World, name: str) -> Consumer:
    return Consumer(ports=ports_of(world, name), auto_offset_reset="earliest", **PATIENT)


async def through_trouble(world: World) -> None:
    life, notes, dice = BrokerLife(world), Notes(), world.dice("chaos")
    await life.begin()
    before = set(asyncio.all_tasks())
    admin = Admin(ports=ports_of(world, "admin"), **PATIENT)
    # Little memory, so that a producer has to wait for it while nothing is sent.
    producers = [producer_named(world, "p"), producer_named(world, "q", buffer_memory=2_000)]
    readers = [consumer_named(world, "messages"), consumer_named(world, "tables")]
    clients = [admin, *producers, *readers]
    await asyncio.gather(*(each.start() for each in clients))
    for topic in STEADY:
        await admin.create_topic(topic, partitions=PARTITIONS)

    reading = [
        asyncio.ensure_future(read_messages(readers[0], notes)),
        asyncio.ensure_future(read_tables(readers[1], notes)),
    ]
    until_s = world.loop.time() + TROUBLE_S
    await asyncio.gather(
        disturb(world, life, dice, until_s),
        administer(admin, world.dice("admin's"), until_s),
        *(
            produce(each, name, world.dice(f"{name}'s"), notes, until_s)
            for name, each in zip("pq", producers, strict=True)
        ),
    )
    async with asyncio.timeout(ENDING_S):
        await asyncio.gather(*(each.flush() for each in producers))
    assert [each.buffered_bytes for each in producers] == [0, 0]

    async with asyncio.timeout(ENDING_S), consumer_named(world, "last") as last:
        logs = await read_all(last)
    async with asyncio.timeout(ENDING_S):
        await until_all_is_seen(notes, logs)
    async with asyncio.timeout(ENDING_S):
        await asyncio.gather(*(each.close() for each in clients))
        await asyncio.gather(*reading)
    assert tasks_of_clients(before) == []
    await life.stop()
    assert [end for end in world.network.open_connections() if end[0] != BROKER_END] == []
    check_notes(notes, logs)


@pytest.mark.parametrize("seed", seeds(20))
def test_acknowledged_records_exist_once_in_order_and_no_call_hangs(seed: int) -> None:
    with World(seed) as world, replayable(seed, []):
        world.run(through_trouble(world))
