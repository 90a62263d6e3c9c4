"""Clients that read slowly, send too much, come in crowds or fall silent: the broker's memory has bounds."""

import asyncio

from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.server.broker import Broker
from barnabas.server.network.connection import PIPELINED_MAX, WAITING_BYTES_MAX, Connection
from barnabas.sim.world import World
from support.stories import Client, Stopwatch, client_of, connect, partition_of, told, until
from support.wire.requests import fetched, produced, values_of

LARGE = b"x" * 50_000


def connection_of(broker: Broker, client: Client) -> Connection:
    """The broker's end of a client's connection."""
    host, port = client.writer.get_extra_info("sockname")[:2]
    (found,) = [one for one in broker.listeners[0].pool._connections if one.peer == f"{host}:{port}"]
    return found


def held(connection: Connection) -> int:
    """Bytes of answers that a connection keeps for its client."""
    waiting = 0 if connection.outlet is None else connection.outlet.waiting
    return waiting + connection._ready_bytes


async def fill(client: Client) -> None:
    """A topic of which one answer is some hundred kilobytes."""
    await client.create("orders")
    for _ in range(4):
        await client.produce("orders", LARGE)


def stop_reading(client: Client) -> None:
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]


def read_on(client: Client) -> None:
    client.writer.transport.resume_reading()  # type: ignore[attr-defined]


@told()
async def test_a_reader_that_takes_nothing_holds_a_bounded_amount_of_answers(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client)
    slow = await connect(broker)
    stop_reading(slow)

    for _ in range(300):
        slow.send_fetch("orders")
    await asyncio.sleep(10)

    theirs = connection_of(broker, slow)
    answer_bytes = 4 * (len(LARGE) + 200)
    assert held(theirs) <= WAITING_BYTES_MAX + answer_bytes
    assert len(theirs.pending) <= PIPELINED_MAX
    assert await client.values("orders", offset=3) == [LARGE], "others are served"

    read_on(slow)
    for _ in range(300):
        _, answer = await slow.answer()
        assert len(values_of(fetched(answer))) == 4


@told()
async def test_a_flood_of_waiting_fetches_is_begun_only_so_far(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    flood = await connect(broker)

    for _ in range(5 * PIPELINED_MAX):
        flood.send_fetch("orders", max_wait_ms=600_000)
    await asyncio.sleep(10)

    assert len(partition_of(broker, "orders").waiters) == PIPELINED_MAX
    assert len(connection_of(broker, flood).pending) == PIPELINED_MAX

    # Each append sets those free that have begun; the ones behind find the records there.
    await client.produce("orders", b"one")
    for number in range(5 * PIPELINED_MAX):
        answered, answer = await flood.answer()
        assert answered == number
        assert values_of(fetched(answer)) == [b"one"]


@told()
async def test_a_flood_of_produces_is_appended_in_order_and_each_is_answered(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")

    for number in range(1_000):
        client.send_produce("orders", b"%d" % number, acks=(-1, 1)[number % 2])
    offsets = [produced((await client.answer())[1]).base_offset for _ in range(1_000)]

    assert offsets == list(range(1_000))
    assert await client.values("orders") == [b"%d" % number for number in range(1_000)]


@told()
async def test_an_incomplete_frame_uses_memory_for_its_received_bytes_only(
    world: World, broker: Broker, client: Client
) -> None:
    """A length of 100 MB is only a promise."""
    liar = await connect(broker)
    liar.writer.write((100_000_000).to_bytes(4, "big") + b"\0" * 1000)
    await asyncio.sleep(1)

    assert 1_000 <= connection_of(broker, liar)._frames.held <= 2_000
    assert (await client.asked(MetadataRequest(topics=[]), 12)).brokers


@told()
async def test_requests_of_a_disconnected_client_are_completed(
    world: World, broker: Broker, client: Client
) -> None:
    world.executor.delay_ms = (100, 100)
    gone = await connect(broker)
    making = asyncio.ensure_future(gone.create("orders", partitions=3))
    await asyncio.sleep(0.05)

    making.cancel()
    gone.close()
    await until(lambda: "orders" in broker.services.image.topics)

    assert await client.produce("orders", b"v", partition=2) == 0
    assert len(broker.listeners[0].pool) == 1


@told({"connections.max.idle.ms": 10_000}, instant_network=True)
async def test_only_an_idle_connection_is_closed_after_connections_max_idle_ms(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    silent, busy, waiting = await connect(broker), await connect(broker), await connect(broker)
    watch = Stopwatch(world)
    # As in Kafka, a client that waits for its response counts as idle.
    waiting.send_fetch("orders", max_wait_ms=40_000)

    async def be_busy() -> None:
        for _ in range(8):
            await busy.asked(MetadataRequest(topics=[]), 12)
            await asyncio.sleep(5)

    async def be_silent() -> float:
        assert await silent.is_closed()
        return watch.ms

    closed_ms, _ = await asyncio.gather(be_silent(), be_busy())

    assert 10_000 <= closed_ms <= 13_000
    assert await waiting.is_closed()
    assert (await busy.asked(MetadataRequest(topics=[]), 12)).brokers


@told({"connections.max.idle.ms": 10_000})
async def test_a_client_that_reads_no_responses_is_closed_after_the_timeout(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client)
    stuck = await connect(broker)
    stop_reading(stuck)
    for _ in range(10):
        stuck.send_fetch("orders")
    await asyncio.sleep(5)
    theirs = connection_of(broker, stuck)
    assert held(theirs) > 0

    await client.asked(MetadataRequest(topics=[]), 12)
    await asyncio.sleep(8.5)

    assert theirs not in broker.listeners[0].pool._connections
    assert held(theirs) == 0


@told({"connections.max.idle.ms": 10_000})
async def test_a_reader_that_takes_a_little_now_and_then_is_not_closed(
    world: World, broker: Broker, client: Client
) -> None:
    await fill(client)
    slow = await connect(broker)
    stop_reading(slow)
    for _ in range(10):
        slow.send_fetch("orders")

    for _ in range(10):
        # The socket's buffers hold more than one answer, so the broker sees less often that some was taken.
        await asyncio.sleep(3)
        read_on(slow)
        _, answer = await slow.answer()
        assert len(values_of(fetched(answer))) == 4
        stop_reading(slow)

    assert connection_of(broker, slow) in broker.listeners[0].pool._connections


@told()
async def test_the_number_of_connections_can_be_limited_while_the_broker_runs(
    world: World, broker: Broker, client: Client
) -> None:
    old = [await connect(broker) for _ in range(3)]
    await client.configure_broker(max_connections=4)

    refused = await connect(broker)
    assert await refused.is_closed()
    for one in old:
        assert (await one.asked(MetadataRequest(topics=[]), 12)).brokers, "who was there may stay"

    old.pop().close()
    await asyncio.sleep(1)
    async with client_of(broker) as next_one:
        assert (await next_one.asked(MetadataRequest(topics=[]), 12)).brokers
    await client.configure_broker(max_connections=100)
    for _ in range(10):
        await connect(broker)
    await until(lambda: len(broker.listeners[0].pool) == 13)
