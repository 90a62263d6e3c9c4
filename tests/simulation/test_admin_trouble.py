"""The admin client when things go wrong: brokers that restart, hang, lie or have moved what is asked for."""

import asyncio
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import NewTopic, OffsetSpec, PartlyRefused, broker_resource, topic_resource
from barnabas.client.errors import (
    BrokerUnavailable,
    Closed,
    ConnectionLost,
    NotKafka,
    Refused,
    RequestTimedOut,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.protocol.messages.configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from barnabas.sim.world import World
from support.brokers import running
from support.our_client.admin_worlds import administrated, new_admin
from support.our_client.peers import in_world, listening
from support.our_client.scripted_brokers import ScriptedBroker, listening_all, metadata_of
from support.stories import Stopwatch

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
METADATA, CREATE, DELETE = ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS


def created(*results: tuple[str, int]) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=name, error_code=code, error_message=None) for name, code in results
        ]
    )


def in_turn(*answers: object | None) -> Any:
    """One after the other, and the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def tasks() -> int:
    return len(asyncio.all_tasks())


# A real broker that comes and goes


@in_world
async def test_a_call_lasts_through_a_restart_of_the_broker(world: World) -> None:
    async with running(world):
        admin = new_admin(world)
        await admin.start()
        await admin.create_topic("orders")
    waiting = asyncio.ensure_future(
        asyncio.gather(
            admin.create_topic("payments"),
            admin.list_topics(),
            admin.list_offsets({ORDERS_0: OffsetSpec.LATEST}),
            admin.describe_config(broker_resource(1), ["node.id"]),
            admin.describe_log_dirs([1]),
        )
    )
    await asyncio.sleep(10)
    assert not waiting.done()
    async with running(world):
        made, listed, offsets, _, _ = await waiting
        await admin.close()

    assert made.name == "payments"
    assert "orders" in listed
    assert offsets[ORDERS_0].offset == 0


@in_world
async def test_a_call_ends_with_the_reason_when_the_broker_stays_away(world: World) -> None:
    async with running(world):
        admin = new_admin(world)
        await admin.start()
    watch = Stopwatch(world)
    with pytest.raises(BrokerUnavailable) as gone:
        await admin.create_topic("orders", timeout_ms=3000)
    with pytest.raises(BrokerUnavailable):
        await admin.list_offsets({ORDERS_0: OffsetSpec.LATEST}, timeout_ms=3000)
    assert 4_000 <= watch.ms <= 6_100
    assert any("gave up after" in note for note in gone.value.__notes__)
    await admin.close()


@in_world
async def test_unreachable_bootstrap_servers_are_reported_within_the_timeout(world: World) -> None:
    watch = Stopwatch(world)
    with pytest.raises(BrokerUnavailable):
        async with new_admin(world, default_api_timeout_ms=2000):
            pass
    assert watch.ms <= 2_100
    assert tasks() == 1


@in_world
async def test_a_server_that_is_no_broker_is_reported_at_once(world: World) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        await reader.read(1000)

    watch = Stopwatch(world)
    async with listening(greet):
        with pytest.raises(NotKafka):
            await new_admin(world).start()
    assert watch.ms < 1_000


@in_world
async def test_the_default_time_is_the_settings(world: World) -> None:
    async with running(world):
        admin = new_admin(world, default_api_timeout_ms=1500)
        await admin.start()
    watch = Stopwatch(world)
    with pytest.raises(BrokerUnavailable):
        await admin.list_topics()
    assert watch.ms <= 1_600
    await admin.close()


@in_world
async def test_without_retries_a_call_is_tried_once(world: World) -> None:
    broker = ScriptedBroker(says={METADATA: metadata_of({}), CREATE: in_turn(created(("a", 41)))})
    async with listening_all(broker), new_admin(world, retries=0) as admin:
        with pytest.raises(Refused) as refused:
            await admin.create_topic("a")

    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert len(broker.asked_for(CREATE)) == 1


@in_world
async def test_a_call_that_is_cancelled_leaves_nothing_behind(world: World) -> None:
    broker = ScriptedBroker(
        says={METADATA: metadata_of({"orders": [1]}), CREATE: in_turn(created(("a", 41)))}
    )
    async with listening_all(broker), new_admin(world) as admin:
        idle = tasks()
        for after_s in (0.0, 0.0005, 0.05, 0.15, 0.35):
            call = asyncio.ensure_future(admin.create_topic("a"))
            await asyncio.sleep(after_s)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.sleep(0.1)
            assert tasks() == idle


@in_world
async def test_closing_ends_pending_calls_with_client_closed(world: World) -> None:
    async with running(world):
        admin = new_admin(world)
        await admin.start()
        await admin.close()
        with pytest.raises(Closed):
            await admin.list_topics()

    broker = ScriptedBroker(says={METADATA: metadata_of({}), CREATE: in_turn(created(("a", 41)))})
    async with listening_all(broker), new_admin(world) as admin:
        call = asyncio.ensure_future(admin.create_topic("a"))
        await asyncio.sleep(1)
        await admin.close()
        with pytest.raises(Closed):
            await call


# What only some brokers say


@in_world
async def test_only_retriable_errors_are_retried(world: World) -> None:
    answers = in_turn(created(("a", 0), ("b", 41), ("c", 36)), created(("b", 89)), created(("b", 0)))
    broker = ScriptedBroker(says={METADATA: metadata_of({}), CREATE: answers})
    async with listening_all(broker), new_admin(world) as admin:
        with pytest.raises(PartlyRefused) as refused:
            await admin.create_topics([NewTopic(name=name, partitions=1) for name in "abc"])

    assert [[topic.name for topic in each.topics] for each in broker.asked_for(CREATE)] == [
        ["a", "b", "c"],
        ["b"],
        ["b"],
    ]
    assert list(refused.value.refused) == ["c"]
    assert list(refused.value.done) == ["a", "b"]


@in_world
async def test_a_refusal_that_may_be_our_own_doing_says_so(world: World) -> None:
    """The first request is carried out, and its answer lost; the second finds the topic there."""
    gone = DeleteTopicsResponse(responses=[DeletableTopicResult(name="a", error_code=3)])
    broker = ScriptedBroker(
        says={
            METADATA: metadata_of({}),
            CREATE: in_turn(None, created(("a", 36))),
            DELETE: in_turn(None, gone),
        }
    )
    async with listening_all(broker), new_admin(world) as admin:
        with pytest.raises(Refused) as made:
            await admin.create_topic("a")
        with pytest.raises(Refused) as deleted:
            await admin.delete_topic("a")

    assert made.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert any("may have caused this" in note for note in made.value.__notes__)
    assert any("may have caused this" in note for note in deleted.value.__notes__)


@in_world
async def test_a_response_without_the_requested_resource_is_an_error(world: World) -> None:
    broker = ScriptedBroker(says={METADATA: metadata_of({}), CREATE: in_turn(created(("other", 0)))})
    async with listening_all(broker), new_admin(world) as admin:
        with pytest.raises(Refused, match="missing in the broker's response"):
            await admin.create_topic("a")


@in_world
async def test_a_call_without_a_response_fails_at_its_timeout(world: World) -> None:
    never = asyncio.Event()

    class Silent(ScriptedBroker):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await super().serve(reader, writer)
            except KeyError:
                await never.wait()

    def stay_silent(_: Any) -> None:
        raise KeyError

    broker = Silent(says={METADATA: metadata_of({}), CREATE: stay_silent})
    async with listening_all(broker), new_admin(world) as admin:
        watch = Stopwatch(world)
        with pytest.raises(RequestTimedOut, match="CREATE_TOPICS"):
            await admin.create_topic("a", timeout_ms=700)
        assert 699 <= watch.ms <= 750
        await asyncio.sleep(0.1)
        # Both ends of the connection are open still: others may use it.
        assert len(world.network.open_connections()) == 2


# Several brokers


def offsets(*rows: tuple[int, int, int]) -> ListOffsetsResponse:
    """(partition, error code, offset) of orders."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="orders",
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=number, error_code=code, offset=offset)
                    for number, code, offset in rows
                ],
            )
        ]
    )


@in_world
async def test_each_partition_is_requested_from_its_leader_even_if_it_moves(world: World) -> None:
    leaders = {"orders": [1, 2]}
    metadata = metadata_of(leaders, brokers=(1, 2))

    def moved(_: Any) -> object:
        leaders["orders"] = [2, 2]
        return offsets((0, 6, -1))

    list_offsets = ApiKey.LIST_OFFSETS
    first = ScriptedBroker(1, says={METADATA: metadata, list_offsets: moved})
    second = ScriptedBroker(
        2, says={METADATA: metadata, list_offsets: in_turn(offsets((1, 0, 20)), offsets((0, 0, 10)))}
    )
    async with listening_all(first, second), new_admin(world) as admin:
        found = await admin.list_offsets({ORDERS_0: OffsetSpec.LATEST, ORDERS_1: OffsetSpec.LATEST})

    assert {tp: each.offset for tp, each in found.items()} == {ORDERS_0: 10, ORDERS_1: 20}
    assert len(first.asked_for(list_offsets)) == 1
    assert len(second.asked_for(list_offsets)) == 2


@in_world
async def test_a_leader_that_is_away_costs_only_its_own_partitions_a_try(world: World) -> None:
    leaders = {"orders": [1, 2]}
    metadata = metadata_of(leaders, brokers=(1, 2))
    list_offsets = ApiKey.LIST_OFFSETS
    says = {METADATA: metadata, list_offsets: in_turn(offsets((0, 0, 10)), offsets((1, 0, 20)))}
    first = ScriptedBroker(1, says=says)
    async with listening_all(first), new_admin(world) as admin:
        call = asyncio.ensure_future(
            admin.list_offsets({ORDERS_0: OffsetSpec.LATEST, ORDERS_1: OffsetSpec.LATEST})
        )
        await asyncio.sleep(3)
        assert not call.done()
        leaders["orders"] = [1, 1]
        found = await call

    assert {tp: each.offset for tp, each in found.items()} == {ORDERS_0: 10, ORDERS_1: 20}
    assert [each.topics[0].partitions[0].partition_index for each in first.asked_for(list_offsets)] == [0, 1]


@in_world
async def test_a_leader_that_stays_unavailable_is_reported(world: World) -> None:
    metadata = metadata_of({"orders": [1, 2]}, brokers=(1, 2))
    broker = ScriptedBroker(1, says={METADATA: metadata, ApiKey.LIST_OFFSETS: in_turn(offsets((0, 0, 10)))})
    wanted = {ORDERS_0: OffsetSpec.LATEST, ORDERS_1: OffsetSpec.LATEST}
    async with listening_all(broker), new_admin(world) as admin:
        with pytest.raises((BrokerUnavailable, ConnectionLost)):
            await admin.list_offsets(wanted, timeout_ms=2000)


@in_world
async def test_a_partition_without_a_leader_is_waited_for_until_the_time_is_over(world: World) -> None:
    broker = ScriptedBroker(
        says={METADATA: metadata_of({"orders": [-1, 1]}), ApiKey.LIST_OFFSETS: in_turn(offsets((1, 0, 20)))}
    )
    wanted = {ORDERS_0: OffsetSpec.LATEST, ORDERS_1: OffsetSpec.LATEST}
    async with listening_all(broker), new_admin(world) as admin:
        watch = Stopwatch(world)
        with pytest.raises(PartlyRefused) as refused:
            await admin.list_offsets(wanted, timeout_ms=8000)

    assert refused.value.refused["orders-0"].code is ErrorCode.LEADER_NOT_AVAILABLE
    assert refused.value.done[ORDERS_1].offset == 20
    assert watch.ms > 6_000


@in_world
async def test_settings_of_a_broker_are_asked_of_that_broker(world: World) -> None:
    metadata = metadata_of({}, brokers=(1, 2))
    brokers = []
    for node in (1, 2):

        def describe(request: Any) -> object:
            return DescribeConfigsResponse(
                results=[
                    DescribeConfigsResult(
                        error_code=0,
                        error_message=None,
                        resource_type=asked.resource_type,
                        resource_name=asked.resource_name,
                    )
                    for asked in request.resources
                ]
            )

        brokers.append(ScriptedBroker(node, says={METADATA: metadata, ApiKey.DESCRIBE_CONFIGS: describe}))
    wanted = [broker_resource(2), broker_resource(1), topic_resource("orders")]
    async with listening_all(*brokers), new_admin(world) as admin:
        assert list(await admin.describe_configs(wanted)) == wanted

    asked = [
        [
            each.resource_name
            for request in broker.asked_for(ApiKey.DESCRIBE_CONFIGS)
            for each in request.resources
        ]
        for broker in brokers
    ]
    assert "1" in asked[0]
    assert "2" not in asked[0]
    assert "2" in asked[1]
    assert "1" not in asked[1]
    assert sorted(asked[0] + asked[1]) == ["1", "2", "orders"]


@in_world
async def test_a_broker_that_cannot_be_reached_is_listed_with_the_reason(world: World) -> None:
    broker = ScriptedBroker(says={METADATA: metadata_of({}, brokers=(1, 2))})
    async with listening_all(broker), new_admin(world) as admin:
        found = await admin.api_versions()

    assert found[1].versions[ApiKey.METADATA] == (0, 13)
    assert (found[2].versions, type(found[2].error)) == ({}, BrokerUnavailable)


# Pages


def page(
    topic_id: bytes, numbers: list[int], following: tuple[str, int] | None
) -> DescribeTopicPartitionsResponse:
    rows = [
        DescribeTopicPartitionsResponsePartition(error_code=0, partition_index=number, leader_id=1)
        for number in numbers
    ]
    topic = DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name="orders",
        topic_id=topic_id,  # type: ignore[arg-type]
        partitions=rows,
    )
    cursor = None if following is None else Cursor(topic_name=following[0], partition_index=following[1])
    return DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)


OLD, NEW = b"o" * 16, b"n" * 16


@in_world
async def test_a_topic_that_is_made_anew_between_two_pages_is_described_again(world: World) -> None:
    pages = in_turn(
        page(OLD, [0, 1], ("orders", 2)),
        page(NEW, [2], None),
        page(NEW, [0, 1], ("orders", 2)),
        page(NEW, [2], None),
    )
    broker = ScriptedBroker(says={METADATA: metadata_of({}), ApiKey.DESCRIBE_TOPIC_PARTITIONS: pages})
    async with listening_all(broker), new_admin(world) as admin:
        found = await admin.describe_topic("orders")

    assert found.topic_id == NEW
    assert [each.partition for each in found.partitions] == [0, 1, 2]


@in_world
async def test_pages_that_go_round_in_circles_are_no_kafka(world: World) -> None:
    pages = in_turn(page(OLD, [0], ("orders", 1)), page(OLD, [0], ("orders", 1)))
    broker = ScriptedBroker(says={METADATA: metadata_of({}), ApiKey.DESCRIBE_TOPIC_PARTITIONS: pages})
    async with listening_all(broker), new_admin(world) as admin:
        with pytest.raises(NotKafka, match="pages are out of order"):
            await admin.describe_topics()


@in_world
async def test_many_calls_at_the_same_time_do_not_disturb_each_other(world: World) -> None:
    async with administrated(world) as admin:
        made = await asyncio.gather(*(admin.create_topic(f"t{number}") for number in range(20)))
        listed, described = await asyncio.gather(admin.list_topics(), admin.describe_topics())

    assert len({each.topic_id for each in made}) == 20
    assert list(listed) == list(described)
