"""Fetch sessions over the wire: what is told, what is left out, and who makes room for whom."""

import asyncio
from typing import Any

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.stories import Client, Stopwatch, client_of, told
from support.wire.requests import fetch_of, values_of

pytestmark = pytest.mark.kernel

FINAL_EPOCH = -1
# How long a session that nobody uses is safe: Kafka's constant.
EVICTION_S = 120


async def opened(client: Client, offsets: dict[int, int], topic: str = "orders") -> Any:
    return await client.asked(fetch_of(topic, offsets, session_epoch=0), 12)


async def went_on(
    client: Client, session: int, epoch: int, offsets: dict[int, int] | None = None, **fields: Any
) -> Any:
    """An incremental fetch that names only what has changed."""
    request = fetch_of("orders", offsets or {}, session_id=session, session_epoch=epoch, **fields)
    return await client.asked(request, 12)


def told_of(answer: Any) -> dict[int, list[bytes | None]]:
    assert answer.error_code == 0, ErrorCode(answer.error_code).name
    return {data.partition_index: values_of(data) for one in answer.responses for data in one.partitions}


@told(instant_network=True)
async def test_an_incremental_fetch_returns_only_changed_partitions(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=3)
    first = await opened(client, {0: 0, 1: 0, 2: 0})
    await client.produce("orders", b"one", partition=1)

    second = await went_on(client, first.session_id, 1)
    third = await went_on(client, first.session_id, 2, {1: 1})

    assert told_of(first) == {0: [], 1: [], 2: []}
    assert told_of(second) == {1: [b"one"]}
    assert told_of(third) == {}
    assert first.session_id == second.session_id == third.session_id > 0


@told(instant_network=True)
async def test_an_incremental_fetch_waits_for_news_of_any_of_its_partitions(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=50)
    session = (await opened(client, dict.fromkeys(range(50), 0))).session_id
    quiet = Stopwatch(world)
    assert told_of(await went_on(client, session, 1, max_wait_ms=2_000)) == {}
    assert quiet.ms == 2_000
    waiting = asyncio.ensure_future(went_on(client, session, 2, max_wait_ms=60_000))
    await asyncio.sleep(1)
    watch = Stopwatch(world)

    async with client_of(broker) as producer:
        await producer.produce("orders", b"one", partition=37)
        answer = await waiting

    assert told_of(answer) == {37: [b"one"]}
    assert watch.ms == 0


@told({"max.incremental.fetch.session.cache.slots": 2}, until_ms=1_000_000)
async def test_a_full_session_cache_serves_new_clients_without_a_session(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    one = (await opened(client, {0: 0, 1: 0})).session_id
    two = (await opened(client, {0: 0, 1: 0})).session_id
    refused = await opened(client, {0: 0, 1: 0})
    assert (refused.session_id, refused.error_code) == (0, 0)
    assert told_of(refused) == {0: [], 1: []}

    await asyncio.sleep(EVICTION_S / 2)
    assert told_of(await went_on(client, two, 1)) == {}
    await asyncio.sleep(EVICTION_S / 2 + 1)
    newcomer = (await opened(client, {0: 0, 1: 0})).session_id

    assert newcomer not in (0, one, two)
    assert (await went_on(client, one, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert told_of(await went_on(client, two, 2)) == {}
    assert len(broker.services.sessions) == 2


@told({"max.incremental.fetch.session.cache.slots": 0})
async def test_without_session_slots_all_clients_are_served_without_sessions(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")

    answer = await opened(client, {0: 0})

    assert answer.session_id == 0
    assert told_of(answer) == {0: [b"one"]}


@told()
async def test_a_session_outlives_its_connection_and_not_its_end(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    async with client_of(broker) as gone:
        session = (await opened(gone, {0: 0})).session_id
    await client.produce("orders", b"one")

    assert told_of(await went_on(client, session, 1)) == {0: [b"one"]}
    await went_on(client, session, FINAL_EPOCH, {0: 0})

    assert (await went_on(client, session, 2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(broker.services.sessions) == 0


@told()
async def test_a_retried_incremental_fetch_gets_an_invalid_session_epoch(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    session = (await opened(client, {0: 0})).session_id
    await went_on(client, session, 1)

    again = await went_on(client, session, 1)

    assert (again.error_code, again.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)


@told()
async def test_a_session_reports_a_new_log_start_without_records(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    await client.produce("orders", b"one", b"two")
    session = (await opened(client, {0: 2, 1: 0})).session_id
    await client.delete_records("orders", upto=2)

    answer = await went_on(client, session, 1)

    (data,) = answer.responses[0].partitions
    assert (data.partition_index, data.log_start_offset, values_of(data)) == (0, 2, [])
