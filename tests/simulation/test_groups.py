"""Groups of a whole broker, over the simulated wire: both protocols, commits, and what a restart leaves."""

import asyncio

import pytest

from barnabas.base.exposition import Dialect
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.server.broker import Broker
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.metrics.catalog import exposition
from barnabas.server.metrics.http_server import sources_of
from barnabas.server.metrics.sources import Scrape
from barnabas.sim.world import World
from support.brokers import running
from support.group.wire import ClassicMember, ConsumerMember, commit, committed, find_coordinator
from support.observed import PROCESS
from support.stories import (
    Client,
    Stopwatch,
    client_of,
    connect,
    partition_of,
    say_goodbye,
    told,
    until,
)

AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
TOLD_OFTEN = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 5_000,
}


@told()
async def test_the_first_find_coordinator_creates_the_offsets_topic(
    world: World, broker: Broker, client: Client
) -> None:
    assert OFFSETS_TOPIC not in broker.services.image.topics

    node = await find_coordinator(client, "readers")

    assert node == 1
    topic = broker.services.image.topics[OFFSETS_TOPIC]
    assert len(topic.partitions) == 2
    assert await client.setting(OFFSETS_TOPIC, "cleanup.policy") == "compact"


@told({"offsets.topic.replication.factor": 3})
async def test_without_enough_brokers_for_the_offsets_topic_there_is_no_coordinator(
    world: World, broker: Broker, client: Client
) -> None:
    answer = await client.asked(FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"]), 4)

    assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert OFFSETS_TOPIC not in broker.services.image.topics


@told(AT_ONCE)
async def test_members_of_a_classic_group_get_the_assignment_of_their_leader(
    world: World, broker: Broker, client: Client
) -> None:
    one = await ClassicMember.of(broker, "readers")
    two = await ClassicMember.of(broker, "readers")

    assert await asyncio.gather(one.join()) == [ErrorCode.NONE]
    assert await one.sync({one.id: b"everything"}) == ErrorCode.NONE
    assert one.assignment == b"everything"

    joining = asyncio.ensure_future(two.join())
    await until(lambda: joining.done() or two.id != "")
    while await one.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        await asyncio.sleep(0.1)
    assert await asyncio.gather(one.join(), joining) == [ErrorCode.NONE, ErrorCode.NONE]
    leader, other = (one, two) if one.leader == one.id else (two, one)
    assert sorted(leader.members) == sorted([one.id, two.id])
    assert other.members == []
    assert await asyncio.gather(
        leader.sync({leader.id: b"half", other.id: b"the other half"}), other.sync()
    ) == [ErrorCode.NONE, ErrorCode.NONE]

    assert (leader.assignment, other.assignment) == (b"half", b"the other half")
    assert await one.heartbeat() == ErrorCode.NONE
    assert await two.leave() == ErrorCode.NONE
    assert await one.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


@told({**AT_ONCE, "group.min.session.timeout.ms": 1_000}, instant_network=True)
async def test_a_member_that_says_nothing_is_gone_after_its_session(
    world: World, broker: Broker, client: Client
) -> None:
    one = await ClassicMember.of(broker, "readers")
    await one.join()
    await one.sync({one.id: b"all"})

    await asyncio.sleep(9.5)
    assert await one.heartbeat() == ErrorCode.NONE
    await asyncio.sleep(10.5)

    assert await one.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@told()
async def test_a_new_group_waits_for_more_members_before_it_begins(
    world: World, broker: Broker, client: Client
) -> None:
    one, two = await ClassicMember.of(broker, "readers"), await ClassicMember.of(broker, "readers")
    watch = Stopwatch(world)

    await asyncio.gather(one.join(), two.join())

    assert one.generation == two.generation == 1
    assert 3_000 <= watch.ms < 6_500


@told(TOLD_OFTEN)
async def test_members_of_a_consumer_group_share_the_partitions_without_overlap(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=4)
    one = await ConsumerMember.of(broker, "readers", "m1", "orders")
    two = await ConsumerMember.of(broker, "readers", "m2", "orders")

    assert await one.heartbeat() == ErrorCode.NONE
    assert len(one.partitions) == 4
    for _ in range(6):
        assert await two.heartbeat() == ErrorCode.NONE
        assert not one.partitions & two.partitions
        assert await one.heartbeat() == ErrorCode.NONE
        assert not one.partitions & two.partitions

    assert len(one.partitions) == len(two.partitions) == 2
    assert await two.heartbeat(epoch=-1) == ErrorCode.NONE
    await one.heartbeat()
    await one.heartbeat()
    assert len(one.partitions) == 4


@told()
async def test_offsets_committed_without_a_member_survive_a_restart(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    await find_coordinator(client, "readers")

    assert await commit(client, "readers", "orders", 7) == ErrorCode.NONE
    assert await commit(client, "readers", "orders", 8, partition=1) == ErrorCode.NONE
    assert await commit(client, "readers", "orders", 9, partition=2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(client, "readers", "nowhere", 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert await committed(client, "readers") == {("orders", 0): 7, ("orders", 1): 8}
    assert await committed(client, "others", "orders") == -1


def test_members_and_offsets_survive_a_restart() -> None:
    with World(3) as world:
        world.run(_restart(world))


async def _restart(world: World) -> None:
    settings = {**AT_ONCE, **TOLD_OFTEN}
    async with running(world, settings) as broker:
        async with client_of(broker) as client:
            await client.create("orders", partitions=4)
            classic = await ClassicMember.of(broker, "classics")
            await classic.join()
            await classic.sync({classic.id: b"all"})
            assert await classic.commit("orders", 5) == ErrorCode.NONE
            modern = await ConsumerMember.of(broker, "moderns", "m1", "orders")
            await modern.heartbeat()
        say_goodbye(broker)

    async with running(world, settings) as broker:
        async with client_of(broker) as client:
            classic.client = await connect(broker)
            modern.client = await connect(broker)
            while await committed(client, "classics") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.sleep(0.01)
            assert await committed(client, "classics", "orders") == 5
            assert await classic.heartbeat() == ErrorCode.NONE
            assert await classic.commit("orders", 6) == ErrorCode.NONE
            assert await modern.heartbeat() == ErrorCode.NONE
            assert len(modern.partitions) == 4
        say_goodbye(broker)


@told(AT_ONCE)
async def test_a_waiting_join_is_answered_when_the_broker_stops(
    world: World, broker: Broker, client: Client
) -> None:
    one = await ClassicMember.of(broker, "readers")
    await one.join()
    await one.sync({one.id: b"all"})
    two = await ClassicMember.of(broker, "readers")
    joining = asyncio.ensure_future(two.join())
    await until(lambda: two.id != "")
    await asyncio.sleep(0.1)

    stopping = asyncio.ensure_future(broker.stop())

    assert await joining == ErrorCode.NOT_COORDINATOR
    await stopping


@told()
async def test_the_offsets_of_a_deleted_topic_go_with_it(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.create("kept")
    await find_coordinator(client, "readers")
    await commit(client, "readers", "orders", 7)
    await commit(client, "readers", "kept", 8)

    await client.delete("orders")

    assert await committed(client, "readers") == {("kept", 0): 8}


@told(AT_ONCE)
async def test_groups_and_offsets_are_counted_in_the_metrics(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    one = await ClassicMember.of(broker, "readers")
    await one.join()
    await one.sync({one.id: b"all"})
    await commit(client, "others", "orders", 7)

    scrape = Scrape(sources_of(broker, lambda: PROCESS), {})
    lines = b"".join(exposition(scrape, Dialect.TEXT)).decode().splitlines()

    assert 'barnabas_groups{kind="classic",state="Stable"} 1' in lines
    assert 'barnabas_groups{kind="classic",state="Empty"} 1' in lines
    assert "barnabas_committed_offsets 1" in lines
    assert "barnabas_group_partitions_loading 0" in lines


def test_compaction_keeps_the_offsets_topic_small_and_loses_no_commit() -> None:
    settings = {"offsets.topic.segment.bytes": 1 << 20, "offsets.topic.num.partitions": 1}
    with World(4) as world:
        world.network.delay_all((0, 0))
        world.run(_commit_a_lot(world, settings))


async def _commit_a_lot(world: World, settings: dict[str, object]) -> None:
    async with running(world, settings) as broker, client_of(broker) as client:
        await client.create("orders", partitions=3)
        await find_coordinator(client, "readers")
        # A segment has at least a megabyte; with long notes that is soon full.
        for offset in range(600):
            done = await commit(client, "readers", "orders", offset, partition=offset % 3, note="n" * 4_000)
            assert done == ErrorCode.NONE
        log = partition_of(broker, OFFSETS_TOPIC).log
        full = log.size
        await until(lambda: log.size < full / 1.8, step_s=1.0, timeout_s=600)

    async with running(world, settings) as broker, client_of(broker) as client:
        while await committed(client, "readers") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await asyncio.sleep(0.01)
        assert await committed(client, "readers") == {
            ("orders", 0): 597,
            ("orders", 1): 598,
            ("orders", 2): 599,
        }


@told(instant_network=True)
async def test_a_group_can_override_timeouts_within_the_brokers_limits(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=1)
    one = await ConsumerMember.of(broker, "readers", "m1", "orders")

    await client.configure_group("readers", consumer_heartbeat_interval_ms=7_000)
    await one.heartbeat()

    assert one.heartbeat_interval_ms == 7_000
    with pytest.raises(AssertionError, match=r"group\.consumer\.max\.session\.timeout\.ms"):
        await client.configure_group("readers", consumer_session_timeout_ms=70_000)


@told(instant_network=True)
async def test_a_member_of_a_group_with_a_longer_session_lives_longer(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=1)
    one = await ConsumerMember.of(broker, "readers", "m1", "orders")
    await client.configure_group("readers", consumer_session_timeout_ms=60_000)
    await one.heartbeat()

    # The broker's own is 45 s.
    await asyncio.sleep(50)
    assert await one.heartbeat() == ErrorCode.NONE
    await asyncio.sleep(61)
    assert await one.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
