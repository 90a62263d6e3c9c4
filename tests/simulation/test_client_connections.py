"""One client connection with peers of every kind: nothing hangs, and errors name the cause."""

import asyncio

import pytest

from barnabas.client.connection import Connection, open_connection
from barnabas.client.errors import (
    BrokerUnavailable,
    Closed,
    ConnectionLost,
    NotKafka,
    RequestTimedOut,
    UnsupportedByBroker,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_request, refuse_api_versions, response_parts
from barnabas.protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from barnabas.sim.world import World
from support.brokers import running
from support.our_client.peers import PORT, greet, in_world, listening, next_frame, settings_of

METADATA = MetadataRequest(topics=[])


async def connect(**named: object) -> Connection:
    return await open_connection("127.0.0.1", PORT, settings_of(**named))


async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(65536):
        pass


async def greet_and_stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await greet(reader, writer)
    await stay_silent(reader, writer)


@in_world
async def test_versions_are_the_newest_that_both_speak(world: World) -> None:
    async with running(world):
        connection = await connect()

        assert connection.version_of(ApiKey.METADATA) == 13
        assert (await connection.ask(METADATA, timeout_ms=1000)).cluster_id is not None
        with pytest.raises(UnsupportedByBroker, match="SHARE_FETCH"):
            connection.version_of(ApiKey.SHARE_FETCH)
        await connection.close()


@in_world
async def test_unsupported_api_versions_of_a_broker_are_reported(world: World) -> None:
    async def newer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = decode_request(await next_frame(reader))
        rows = [ApiVersion(api_key=ApiKey.METADATA, min_version=90, max_version=91)]
        body = ApiVersionsResponse(error_code=0, api_keys=rows)
        writer.writelines(response_parts(body, asked.version, key=ApiKey.API_VERSIONS, correlation_id=0))
        await stay_silent(reader, writer)

    async with listening(newer):
        connection = await connect()

        with pytest.raises(UnsupportedByBroker, match="versions 90 to 91, this client 0-13"):
            connection.send(METADATA, timeout_ms=1000)
        await connection.close()


@in_world
async def test_a_broker_older_than_our_api_versions_is_asked_again(world: World) -> None:
    async def older(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = decode_request(await next_frame(reader))
        writer.writelines(refuse_api_versions(asked.correlation_id, [(ApiKey.API_VERSIONS, 0, 2)]))
        asked = decode_request(await next_frame(reader))
        assert asked.version == 2
        rows = [ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=5)]
        body = ApiVersionsResponse(error_code=0, api_keys=rows)
        writer.writelines(
            response_parts(body, 2, key=ApiKey.API_VERSIONS, correlation_id=asked.correlation_id)
        )
        await stay_silent(reader, writer)

    async with listening(older):
        connection = await connect()

        assert connection.version_of(ApiKey.METADATA) == 5
        await connection.close()


@in_world
async def test_connection_refused(world: World) -> None:
    with pytest.raises(BrokerUnavailable, match="Connection refused"):
        await connect()


@in_world
async def test_a_host_that_does_not_answer(world: World) -> None:
    world.network.add_host("far")
    world.network.cut("localhost", "far")

    with pytest.raises(BrokerUnavailable, match="no connection within 3000 ms"):
        await open_connection("far", PORT, settings_of(socket_connection_setup_timeout_ms=3000))


@pytest.mark.parametrize(
    ("words", "guess"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "looks like an HTTP server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "looks like a TLS listener"),
        (b"\x00\x00\x00\x02\x00\x00", "correlation id"),
        (b"\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff", "API_VERSIONS response"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x63\x00\x00\x00\x00", "correlation id 99"),
        (b"\xff\xff\xff\xff", "length -1 is negative"),
    ],
    ids=["http", "tls alert", "too short", "lying lengths", "unknown correlation id", "negative length"],
)
@in_world
async def test_a_peer_that_is_not_a_broker_raises_not_kafka(world: World, words: bytes, guess: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_frame(reader)
        writer.write(words)
        await stay_silent(reader, writer)

    async with listening(speak):
        with pytest.raises(NotKafka, match=f"127.0.0.1:9092 does not speak the Kafka protocol: .*{guess}"):
            await connect()


@in_world
async def test_a_listener_that_hangs_up(world: World) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_frame(reader)

    async with listening(hang_up):
        with pytest.raises(ConnectionLost, match="closed by the broker"):
            await connect()


@pytest.mark.parametrize("limit", ["request_timeout_ms", "socket_connection_setup_timeout_ms"])
@in_world
async def test_a_silent_listener(world: World, limit: str) -> None:
    async with listening(stay_silent):
        with pytest.raises(RequestTimedOut, match=r"API_VERSIONS: no response .* within 2000 ms"):
            await connect(**{limit: 2000})


@in_world
async def test_a_request_that_times_out_closes_the_connection_for_all(world: World) -> None:
    async with listening(greet_and_stay_silent):
        connection = await connect()
        patient = connection.send(METADATA, timeout_ms=60_000)

        with pytest.raises(RequestTimedOut, match=r"METADATA: no response from 127.0.0.1:9092 within 100 ms"):
            await connection.ask(METADATA, timeout_ms=100)

        with pytest.raises(ConnectionLost, match="METADATA timed out"):
            await patient
        with pytest.raises(ConnectionLost):
            connection.send(METADATA, timeout_ms=100)


@in_world
async def test_a_broker_that_goes_away_fails_every_request_that_waits(world: World) -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await next_frame(reader)
        await next_frame(reader)

    async with listening(leave):
        connection = await connect()
        both = [connection.send(METADATA, timeout_ms=60_000) for _ in range(2)]

        for answer in both:
            with pytest.raises(ConnectionLost):
                await answer
        assert connection.closed
        assert connection.in_flight == 0


@in_world
async def test_answers_find_their_requests_in_any_order(world: World) -> None:
    async def backwards(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        asked = [decode_request(await next_frame(reader)) for _ in range(2)]
        for each in reversed(asked):
            body = (
                MetadataResponse(brokers=[], topics=[], cluster_id="metadata")
                if each.api.key is ApiKey.METADATA
                else DescribeClusterResponse(cluster_id="cluster", brokers=[])
            )
            parts = response_parts(body, each.version, key=each.api.key, correlation_id=each.correlation_id)
            writer.writelines(parts)
        await stay_silent(reader, writer)

    async with listening(backwards):
        connection = await connect()
        first = connection.send(METADATA, timeout_ms=1000)
        second = connection.send(DescribeClusterRequest(), timeout_ms=1000)

        assert (await first).cluster_id == "metadata"
        assert (await second).cluster_id == "cluster"
        await connection.close()


@in_world
async def test_a_response_without_a_waiting_request_is_dropped(world: World) -> None:
    async with running(world):
        connection = await connect()
        given_up = connection.send(METADATA, timeout_ms=1000)
        given_up.cancel()

        assert (await connection.ask(METADATA, timeout_ms=1000)).brokers
        assert connection.in_flight == 0
        await connection.close()


@in_world
async def test_an_unparseable_response_is_reported_and_closes_the_connection(world: World) -> None:
    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        asked = decode_request(await next_frame(reader))
        writer.write(b"\x00\x00\x00\x06" + asked.correlation_id.to_bytes(4, "big") + b"\x00\x7f")
        await stay_silent(reader, writer)

    async with listening(lie):
        connection = await connect()

        with pytest.raises(NotKafka, match="METADATA response"):
            await connection.ask(METADATA, timeout_ms=1000)
        assert connection.closed


@in_world
async def test_an_answer_over_the_limit_is_not_read(world: World) -> None:
    async def boast(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await next_frame(reader)
        writer.write((100_001).to_bytes(4, "big"))
        await stay_silent(reader, writer)

    async with listening(boast):
        connection = await connect(receive_message_max_bytes=100_000)

        with pytest.raises(NotKafka, match="length 100001 exceeds the limit of 100000"):
            await connection.ask(METADATA, timeout_ms=1000)


@in_world
async def test_closing_fails_pending_requests(world: World) -> None:
    async with listening(greet_and_stay_silent):
        connection = await connect()
        answer = connection.send(METADATA, timeout_ms=60_000)

        await connection.close()

        with pytest.raises(Closed):
            await answer
        assert world.network.open_connections() == [] or connection.closed


@in_world
async def test_an_idle_connection_is_closed(world: World) -> None:
    async with listening(greet_and_stay_silent):
        connection = await connect(connections_max_idle_ms=5000)

        await asyncio.sleep(4.9)
        assert not connection.closed
        await asyncio.sleep(5.2)
        assert connection.closed


@in_world
async def test_a_connection_that_waits_for_an_answer_is_not_idle(world: World) -> None:
    async with listening(greet_and_stay_silent):
        connection = await connect(connections_max_idle_ms=5000)
        answer = connection.send(METADATA, timeout_ms=60_000)

        await asyncio.sleep(30)

        assert not answer.done()
        await connection.close()
        with pytest.raises(Closed):
            await answer


@in_world
async def test_a_client_that_is_asked_to_wait_waits(world: World) -> None:
    async def throttle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        while True:
            asked = decode_request(await next_frame(reader))
            body = MetadataResponse(brokers=[], topics=[], throttle_time_ms=700)
            parts = response_parts(
                body, asked.version, key=asked.api.key, correlation_id=asked.correlation_id
            )
            writer.writelines(parts)

    async with listening(throttle):
        connection = await connect()
        await connection.ask(METADATA, timeout_ms=1000)
        began_ms = world.clock.monotonic_ms()

        await connection.ask(METADATA, timeout_ms=1000)

        assert world.clock.monotonic_ms() - began_ms >= 700
        await connection.close()


@pytest.mark.parametrize("moment_ms", [0, 1, 2, 5, 20])
@in_world
async def test_opening_can_be_cancelled_at_any_moment(world: World, moment_ms: float) -> None:
    async with listening(stay_silent):
        opening = asyncio.ensure_future(connect())
        await asyncio.sleep(moment_ms / 1000)
        opening.cancel()

        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.sleep(1)
        assert world.network.open_connections() == []
