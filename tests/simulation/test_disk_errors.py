"""Disks that fail while the broker serves: what it says of what was lost, and that the rest goes on."""

import asyncio
import errno

from barnabas.base.ids import TopicPartition
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.server.broker import Broker
from barnabas.sim.disk_faults import Kind
from barnabas.sim.world import World
from support.brokers import running
from support.group.wire import commit, committed, find_coordinator
from support.stories import Client, Stopwatch, client_of, partition_of, told, until
from support.wire.requests import fetched, values_of

TWO_DISKS = {"log.dirs": "/a,/b"}
ALWAYS = 1_000_000


def partitions_in(broker: Broker, path: str) -> list[int]:
    """Which partitions of `orders` have their log there."""
    (directory,) = [one for one in broker.logs.directories if one.path == path]
    return sorted(log.tp.partition for log in broker.logs.logs_in(directory))


async def write_to_all(client: Client, count: int) -> dict[int, int]:
    """The error code that each partition of `orders` answers with."""
    return {n: (await client.try_produce("orders", b"v", partition=n)).error_code for n in range(count)}


@told(TWO_DISKS)
async def test_a_failed_disk_takes_only_its_own_partitions_offline(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=4)
    assert await write_to_all(client, 4) == dict.fromkeys(range(4), 0)
    lost, kept = partitions_in(broker, "/b"), partitions_in(broker, "/a")
    assert all([lost, kept])
    world.disk.fail("/b", {"write", "sync", "create", "read"}, count=ALWAYS, errno=errno.EIO)

    first = await client.try_produce("orders", b"w", partition=lost[0])
    codes = await write_to_all(client, 4)

    assert first.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert {n: codes[n] for n in kept} == dict.fromkeys(kept, 0)
    offline = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert all(codes[n] in offline for n in lost), codes
    for n in lost:
        assert (await client.fetch("orders", partition=n)).error_code in offline
    for n in kept:
        assert await client.values("orders", partition=n) == [b"v", b"v"]


@told(TWO_DISKS)
async def test_a_waiting_fetch_fails_when_its_disk_fails(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    (lost,) = partitions_in(broker, "/b")
    client.send_fetch("orders", partition=lost, max_wait_ms=300_000)
    await asyncio.sleep(1)
    watch = Stopwatch(world)
    world.disk.fail("/b", {"write"}, count=ALWAYS)

    async with client_of(broker) as producer:
        await producer.try_produce("orders", b"v", partition=lost)
        _, answer = await client.answer()

    offline = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert fetched(answer).error_code in offline
    assert watch.ms < 5_000


@told(TWO_DISKS)
async def test_a_failed_disk_is_reported_to_the_controller(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    (directory,) = [one for one in broker.logs.directories if one.path == "/b"]
    (lost,) = partitions_in(broker, "/b")
    assert directory.id in broker.services.image.brokers[1].registration.log_dirs
    world.disk.fail("/b", {"write"}, count=ALWAYS)

    await client.try_produce("orders", b"v", partition=lost)
    await until(lambda: directory.id not in broker.services.image.brokers[1].registration.log_dirs)

    answer = await client.asked(DescribeLogDirsRequest(topics=None), 4)
    told_of = {one.log_dir: one.error_code for one in answer.results}
    assert told_of == {"/a": 0, "/b": ErrorCode.KAFKA_STORAGE_ERROR}


@told(TWO_DISKS)
async def test_partitions_on_a_failed_disk_have_no_leader_any_more(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    (lost,) = partitions_in(broker, "/b")
    world.disk.fail("/b", {"write"}, count=ALWAYS)
    await client.try_produce("orders", b"v", partition=lost)
    await asyncio.sleep(10)

    answer = await client.asked(MetadataRequest(topics=None), 12)

    leaders = {one.partition_index: one.leader_id for one in answer.topics[0].partitions}
    assert leaders == {lost: -1, 1 - lost: 1}


def test_a_topic_on_a_failed_disk_can_be_deleted_and_made_again() -> None:
    """Its old files stay where they are until the disk works; then they are no part of the new topic."""
    with World(1) as world:

        async def first() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                await client.create("orders", partitions=2)
                (lost,) = partitions_in(broker, "/b")
                await client.produce("orders", b"old", partition=lost)
                kinds: tuple[Kind, ...] = ("write", "create", "rename", "make_directory", "sync")
                world.disk.fail("/b", kinds, count=ALWAYS)
                await client.try_produce("orders", b"v", partition=lost)
                await client.delete("orders")
                gone = await client.try_produce("orders", b"v", partition=lost)
                await client.create("orders", partitions=2)

                assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                codes = await write_to_all(client, 2)
                assert codes == {lost: ErrorCode.KAFKA_STORAGE_ERROR, 1 - lost: 0}
                assert not broker.failed.done()

        async def second() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                assert await write_to_all(client, 2) == {0: 0, 1: 0}
                found = [await client.values("orders", partition=n) for n in range(2)]
                assert sorted(found, key=len) == [[b"v"], [b"v", b"v"]]

        world.run(first())
        world.disk.faults._rules.clear()
        world.run(second())


@told(TWO_DISKS)
async def test_partitions_can_be_added_to_a_topic_that_lost_some(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    (lost,) = partitions_in(broker, "/b")
    world.disk.fail("/b", {"write"}, count=ALWAYS)
    await client.try_produce("orders", b"v", partition=lost)
    await asyncio.sleep(3)

    more = CreatePartitionsTopic(name="orders", count=4, assignments=None)
    answer = await client.asked(CreatePartitionsRequest(topics=[more], timeout_ms=5_000), 3)

    assert answer.results[0].error_code == 0
    codes = await write_to_all(client, 4)
    assert {n: code for n, code in codes.items() if n != lost} == dict.fromkeys({0, 1, 2, 3} - {lost}, 0)
    assert codes[lost] == ErrorCode.KAFKA_STORAGE_ERROR


@told(TWO_DISKS)
async def test_new_topics_go_to_the_disk_that_is_left(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=2)
    (lost,) = partitions_in(broker, "/b")
    world.disk.fail("/b", {"write", "create", "make_directory"}, count=ALWAYS)
    await client.try_produce("orders", b"v", partition=lost)
    await asyncio.sleep(10)

    await client.create("later", partitions=3)

    for n in range(3):
        assert await client.produce("later", b"v", partition=n) == 0
        assert partition_of(broker, "later", n).log.directory.startswith("/a/")


def test_a_failed_disk_that_works_again_is_taken_up_by_the_next_start() -> None:
    with World(4) as world:

        async def first() -> dict[int, int]:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                await client.create("orders", partitions=4)
                await write_to_all(client, 4)
                (lost, *_) = partitions_in(broker, "/b")
                world.disk.fail("/b", {"write"}, count=1)
                refused = await client.try_produce("orders", b"w", partition=lost)
                assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                return {lost: 1}

        async def second() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                assert await write_to_all(client, 4) == dict.fromkeys(range(4), 0)
                for n in range(4):
                    assert await client.values("orders", partition=n) == [b"v", b"v"]

        world.run(first())
        world.run(second())


@told()
async def test_a_full_disk_rejects_writes_until_space_is_freed(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")
    world.disk.capacity = world.disk.used + 10

    full = await client.try_produce("orders", b"two" * 1000)
    again = await client.try_produce("orders", b"three" * 1000)

    assert full.error_code == again.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert await client.values("orders") == [b"one"]
    world.disk.capacity = None
    assert await client.produce("orders", b"four") == 1
    assert await client.values("orders") == [b"one", b"four"]


@told()
async def test_one_write_that_finds_no_room_leaves_nothing_of_itself(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await client.produce("orders", b"one")
    world.disk.fail("/data/orders-0", {"write"}, errno=errno.ENOSPC)

    refused = await client.try_produce("orders", b"x" * 5000)
    await client.produce("orders", b"two")

    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert await client.values("orders") == [b"one", b"two"]


def test_a_topic_created_on_a_full_disk_is_offline_until_space_is_freed() -> None:
    with World(1) as world:

        async def story() -> None:
            async with running(world) as broker, client_of(broker) as client:
                world.disk.fail(
                    "/data/orders-0", {"make_directory", "create"}, errno=errno.ENOSPC, count=ALWAYS
                )
                await client.create("orders")
                refused = await client.try_produce("orders", b"v")
                assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                assert [one.offline for one in broker.logs.directories] == [None]
                await client.create("other")
                assert await client.produce("other", b"v") == 0

                world.disk.faults._rules.clear()
                await until(lambda: not broker.replicas.offline)
                assert await client.produce("orders", b"v") == 0

        world.run(story())


@told(TWO_DISKS)
async def test_a_cold_read_that_fails_takes_the_partition_offline_and_answers(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=2)
    (lost,) = partitions_in(broker, "/b")
    await client.produce("orders", b"one", partition=lost)
    for path in world.disk.tree():
        if path.startswith("/b/orders"):
            world.disk.cool(path)
    world.disk.fail("/b/orders", {"read"}, count=ALWAYS)
    watch = Stopwatch(world)

    data = await client.fetch("orders", partition=lost, max_wait_ms=60_000)

    assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_of(data) == []
    assert watch.ms < 1_000
    # A place that cannot be read says nothing of the rest of the disk.
    assert [one.offline for one in broker.logs.directories] == [None, None]
    assert await client.produce("orders", b"two", partition=1 - lost) == 0
    refused = await client.try_produce("orders", b"two", partition=lost)
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@told(TWO_DISKS)
async def test_a_disk_failure_while_groups_load_affects_only_that_disk(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=1)
    groups = {0: "b", 1: "a"}
    for group in groups.values():
        await find_coordinator(client, group)
        assert await commit(client, group, "orders", 7) == ErrorCode.NONE
    (failing,) = [one for one in broker.logs.directories if one.path == "/b"]
    (lost,) = [
        log.tp.partition for log in broker.logs.logs_in(failing) if log.tp.topic == "__consumer_offsets"
    ]
    coordinator = broker.services.groups
    world.disk.fail("/b", {"read"}, count=ALWAYS, errno=errno.EIO)

    # As after an election.
    coordinator.shards.lead(lost, coordinator.shards.hosts[lost].partition)
    await until(lambda: broker.logs.logs[TopicPartition("__consumer_offsets", lost)].closed)

    assert failing.offline is None
    assert await committed(client, groups[1 - lost], "orders") == 7
    assert await committed(client, groups[lost], "orders") in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )
