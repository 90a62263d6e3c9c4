"""A client's view of a cluster: finding brokers and leaders, and surviving their absence."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Deadline
from barnabas.client.errors import (
    BrokerUnavailable,
    ClientError,
    Closed,
    NotKafka,
    Refused,
    RequestTimedOut,
    UnknownTopic,
)
from barnabas.client.settings import ClientSettings
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_request, response_parts
from barnabas.protocol.messages.cluster import (
    DescribeClusterRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce import NodeEndpoint
from barnabas.sim.world import World
from support.brokers import broker_settings, make_broker, running
from support.our_client.peers import (
    ADDRESS,
    PORT,
    greet,
    in_world,
    listening,
    next_frame,
    ports_of,
    settings_of,
    started,
)

ORDERS_0 = TopicPartition("orders", 0)


def tasks() -> int:
    return len(asyncio.all_tasks())


def answering(answers: list[MetadataResponse]) -> Callable[..., Awaitable[None]]:
    """A broker that returns metadata responses in order, then repeats the last."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        while True:
            asked = decode_request(await next_frame(reader))
            assert asked.api.key is ApiKey.METADATA
            body = left.pop(0) if len(left) > 1 else left[0]
            parts = response_parts(
                body, asked.version, key=asked.api.key, correlation_id=asked.correlation_id
            )
            writer.writelines(parts)

    return serve


def metadata(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (1,)) -> MetadataResponse:
    rows = [MetadataResponseBroker(node_id=each, host="127.0.0.1", port=PORT + each - 1) for each in brokers]
    return MetadataResponse(brokers=rows, topics=list(topics), cluster_id="c", controller_id=1)


def led_by(leader: int, epoch: int, *, error: int = 0) -> MetadataResponseTopic:
    row = MetadataResponsePartition(
        error_code=0,
        partition_index=0,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[1],
        isr_nodes=[1],
    )
    return MetadataResponseTopic(error_code=error, name="orders", partitions=[] if error else [row])


@in_world
async def test_a_client_starts_and_leaves_nothing_behind(world: World) -> None:
    async with running(world):
        before = tasks()
        async with started(world) as cluster:
            assert cluster.metadata.nodes[1].address == ADDRESS
            assert (await cluster.ask(DescribeClusterRequest())).cluster_id == cluster.metadata.cluster_id
            assert (await cluster.ask(DescribeClusterRequest(), node=1)).controller_id == 1
        assert tasks() == before
        await asyncio.sleep(0.1)
        assert world.network.open_connections() == []


@in_world
async def test_start_without_brokers_fails_in_time_and_names_the_addresses(world: World) -> None:
    cluster = Cluster(settings_of(default_api_timeout_ms=2000), ports_of(world))
    began_ms, before = world.clock.monotonic_ms(), tasks()

    with pytest.raises(BrokerUnavailable, match=r"no broker at 127.0.0.1:9092: Connection refused"):
        await cluster.start()

    assert world.clock.monotonic_ms() - began_ms <= 2000
    assert tasks() == before


@in_world
async def test_start_fails_at_once_if_the_server_is_no_broker(world: World) -> None:
    async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_frame(reader)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(speak_http):
        began_ms = world.clock.monotonic_ms()

        with pytest.raises(NotKafka, match="looks like an HTTP server"):
            await Cluster(settings_of(), ports_of(world)).start()

        assert world.clock.monotonic_ms() - began_ms < 1000


@in_world
async def test_the_other_bootstrap_server_is_tried(world: World) -> None:
    settings = ClientSettings(bootstrap_servers=("127.0.0.1:1", ADDRESS, "127.0.0.1:2"))
    async with running(world):
        cluster = Cluster(settings, ports_of(world))

        await cluster.start()

        assert cluster.metadata.nodes
        await cluster.close()


@in_world
async def test_a_broker_that_starts_late_is_waited_for(world: World) -> None:
    cluster = Cluster(settings_of(), ports_of(world))
    starting = asyncio.ensure_future(cluster.start())
    await asyncio.sleep(5)

    async with running(world):
        await starting
        await cluster.close()


@in_world
async def test_a_missing_topic_is_awaited_until_the_deadline(world: World) -> None:
    async with running(world), started(world) as cluster:
        began_ms = world.clock.monotonic_ms()

        with pytest.raises(UnknownTopic, match="topic orders: UNKNOWN_TOPIC_OR_PARTITION"):
            await cluster.topic("orders", Deadline(3000))

        assert 1500 <= world.clock.monotonic_ms() - began_ms <= 3000


@in_world
async def test_a_topic_created_later_is_found(world: World) -> None:
    async with running(world), started(world) as cluster:
        waiting = asyncio.ensure_future(cluster.topic("orders"))
        await asyncio.sleep(2)
        assert not waiting.done()

        await cluster.topic("orders", create=True)

        assert (await waiting).name == "orders"


@in_world
async def test_a_name_that_no_topic_can_have_is_refused_at_once(world: World) -> None:
    async with running(world), started(world) as cluster:
        with pytest.raises(Refused) as refusal:
            await cluster.topic("no/topic")

        assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@in_world
async def test_requests_survive_a_broker_restart(world: World) -> None:
    settings = broker_settings()
    broker = make_broker(world, settings)
    await broker.start()
    async with started(world) as cluster:
        await cluster.topic("orders", create=True)
        await broker.stop()
        asked = [asyncio.ensure_future(cluster.ask(DescribeClusterRequest())) for _ in range(3)]
        asked.append(asyncio.ensure_future(cluster.ask(DescribeClusterRequest(), node=1)))
        await asyncio.sleep(3)

        broker = make_broker(world, settings)
        await broker.start()

        assert {(await each).controller_id for each in asked} == {1}
    await broker.stop()


@in_world
async def test_a_request_gives_up_at_its_deadline_with_the_reason(world: World) -> None:
    settings = broker_settings()
    broker = make_broker(world, settings)
    await broker.start()
    async with started(world) as cluster:
        await broker.stop()
        began_ms = world.clock.monotonic_ms()

        with pytest.raises(BrokerUnavailable) as failure:
            await cluster.ask(DescribeClusterRequest(), deadline=Deadline(4000))

        assert world.clock.monotonic_ms() - began_ms <= 4000
        assert "DESCRIBE_CLUSTER: gave up after 4000 ms" in failure.value.__notes__[0]


@in_world
async def test_a_deadline_holds_even_while_an_answer_is_waited_for(world: World) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await reader.read()

    async with listening(silent):
        cluster = Cluster(settings_of(default_api_timeout_ms=1000), ports_of(world))

        with pytest.raises(RequestTimedOut, match="bootstrap: no response from the cluster within 1000 ms"):
            await cluster.start()


@in_world
async def test_callers_share_one_request_for_metadata(world: World) -> None:
    asked = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await greet(reader, writer)
        while True:
            request = decode_request(await next_frame(reader))
            asked += 1
            await asyncio.sleep(0.1)
            writer.writelines(
                response_parts(
                    metadata(led_by(1, 0)) if request.body.topics else metadata(),
                    request.version,
                    key=ApiKey.METADATA,
                    correlation_id=request.correlation_id,
                )
            )

    async with listening(count), started(world) as cluster:
        asked = 0
        await asyncio.gather(*(cluster.topic("orders") for _ in range(10)))

        assert asked == 1


@in_world
async def test_cancelling_one_caller_does_not_cancel_the_others(world: World) -> None:
    async with running(world), started(world) as cluster:
        await cluster.topic("orders", create=True)
        waiting = [asyncio.ensure_future(cluster.refresh(["orders"])) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()

        assert "orders" in (await waiting[1]).topics
        assert "orders" in (await waiting[2]).topics
        assert waiting[0].cancelled()


@in_world
async def test_metadata_is_refreshed_after_a_leader_is_invalidated(world: World) -> None:
    answers = [metadata(), metadata(led_by(1, 3)), metadata(led_by(1, 3)), metadata(led_by(1, 4))]
    async with listening(answering(answers)), started(world) as cluster:
        assert await cluster.leader(ORDERS_0) == 1

        cluster.forget_leader(ORDERS_0, 3)
        assert cluster.known_leader(ORDERS_0) is None
        await asyncio.sleep(1)
        assert cluster.known_leader(ORDERS_0) == (1, 3)

        cluster.forget_leader(ORDERS_0, 3)
        await asyncio.sleep(1)
        assert cluster.known_leader(ORDERS_0) == (1, 4)


@in_world
async def test_a_hint_is_taken_without_asking(world: World) -> None:
    async with listening(answering([metadata(), metadata(led_by(1, 3))])), started(world) as cluster:
        await cluster.leader(ORDERS_0)
        endpoints = [NodeEndpoint(node_id=7, host="127.0.0.1", port=PORT)]

        assert cluster.take_hint(ORDERS_0, 7, 4, endpoints)
        assert not cluster.take_hint(ORDERS_0, 8, 4, endpoints)

        assert cluster.known_leader(ORDERS_0) == (7, 4)
        assert (await cluster.connection(7)).address == ADDRESS


@in_world
async def test_expired_metadata_is_refreshed(world: World) -> None:
    answers = [metadata(), metadata(led_by(1, 3)), metadata(led_by(1, 9))]
    async with listening(answering(answers)), started(world, metadata_max_age_ms=20_000) as cluster:
        await cluster.leader(ORDERS_0)
        await asyncio.sleep(18)
        assert cluster.known_leader(ORDERS_0) == (1, 3)

        await asyncio.sleep(5)

        assert cluster.known_leader(ORDERS_0) == (1, 9)


@in_world
async def test_an_unused_topic_is_dropped_from_the_metadata(world: World) -> None:
    answers = [metadata(), metadata(led_by(1, 3)), metadata()]
    limits = {"metadata_max_age_ms": 20_000, "metadata_max_idle_ms": 30_000}
    async with listening(answering(answers)), started(world, **limits) as cluster:
        await cluster.leader(ORDERS_0)

        await asyncio.sleep(100)

        assert cluster.metadata.topics == {}


@in_world
async def test_metadata_without_brokers_is_requested_again(world: World) -> None:
    async with listening(answering([metadata(brokers=()), metadata()])), started(world) as cluster:
        assert list(cluster.metadata.nodes) == [1]


@in_world
async def test_closing_ends_every_wait(world: World) -> None:
    async with running(world):
        cluster = Cluster(settings_of(), ports_of(world))
        await cluster.start()
        waits: list[asyncio.Future[object]] = [
            asyncio.ensure_future(cluster.topic("nowhere")),
            asyncio.ensure_future(cluster.leader(ORDERS_0)),
            asyncio.ensure_future(cluster.ask(DescribeClusterRequest())),
        ]
        await asyncio.sleep(0)

        await cluster.close()

        for wait in waits:
            with pytest.raises(Closed):
                await wait
        with pytest.raises(Closed):
            await cluster.any_connection()


@pytest.mark.parametrize("step", range(0, 60, 3))
@in_world
async def test_cancelled_calls_leave_no_tasks_behind(world: World, step: int) -> None:
    async def use() -> None:
        async with started(world) as cluster:
            await cluster.topic("orders", create=True)
            await cluster.leader(ORDERS_0)
            await cluster.ask(DescribeClusterRequest(), node=1)

    async with running(world):
        before = tasks()
        using = asyncio.ensure_future(use())
        for _ in range(step):
            await asyncio.sleep(0.0001)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using

        await asyncio.sleep(0.1)
        assert tasks() == before
        assert world.network.open_connections() == []


@in_world
async def test_errors_are_errors_of_the_client(world: World) -> None:
    async with running(world), started(world) as cluster:
        with pytest.raises(ClientError, match="no broker at node 9"):
            await cluster.connection(9)


@in_world
async def test_a_leader_invalidated_during_a_refresh_causes_another_refresh(world: World) -> None:
    asked = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await greet(reader, writer)
        while True:
            request = decode_request(await next_frame(reader))
            asked += 1
            await asyncio.sleep(0.5)
            body = metadata(led_by(1, 3)) if request.body.topics else metadata()
            number = request.correlation_id
            writer.writelines(
                response_parts(body, request.version, key=ApiKey.METADATA, correlation_id=number)
            )

    async with listening(slow), started(world) as cluster:
        await cluster.leader(ORDERS_0)
        under_way = asyncio.ensure_future(cluster.refresh(["orders"]))
        await asyncio.sleep(0.2)
        cluster.forget_leader(ORDERS_0, 3)
        asked = 0
        await under_way
        assert cluster.known_leader(ORDERS_0) is None

        await asyncio.sleep(2)

        assert cluster.known_leader(ORDERS_0) == (1, 3)
        assert asked == 1


@in_world
async def test_a_node_that_was_not_reached_is_left_alone_for_a_while(world: World) -> None:
    tried_ms: list[int] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tried_ms.append(world.clock.monotonic_ms())

    async with listening(hang_up):
        limits = {"reconnect_backoff_ms": 400, "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
        cluster = Cluster(settings_of(default_api_timeout_ms=3000, **limits), ports_of(world))
        with pytest.raises(ClientError):
            await cluster.start()

        waits = [later - earlier for earlier, later in pairwise(tried_ms)]
        assert waits[0] >= 320
        assert waits[1] >= 640
