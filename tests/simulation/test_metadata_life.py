"""The metadata log over hours: records that say nothing, snapshots, a log that is cut, and the same image."""

import asyncio
from dataclasses import replace

import pytest

from barnabas.metadata.image import MetadataImage, PartitionImage
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.brokers import running
from support.lives import next_life, started
from support.stories import Client, client_of, told, until

HOUR_S = 3_600
DIRECTORY = "/data/__cluster_metadata-0"


def files(world: World, ending: str) -> list[str]:
    return sorted(
        path.rpartition("/")[2]
        for path in world.disk.tree()
        if path.startswith(DIRECTORY) and path.endswith(ending)
    )


def known(image: MetadataImage) -> MetadataImage:
    """What an image says of the cluster, without where in the log it was said, and by which broker's life."""
    return replace(image, offset=0, epoch=0, append_time_ms=0, brokers={}, controllers={})


@told(until_ms=60_000)
async def test_an_idle_cluster_writes_a_no_op_record_every_half_second(
    world: World, broker: Broker, client: Client
) -> None:
    await asyncio.sleep(5)
    before = broker.controller.quorum.high_watermark

    await asyncio.sleep(10)

    assert broker.controller.quorum.high_watermark - before == pytest.approx(20, abs=1)


@told({"metadata.max.idle.interval.ms": 0}, until_ms=3 * HOUR_S * 1000)
async def test_without_an_interval_a_quiet_cluster_writes_nothing(
    world: World, broker: Broker, client: Client
) -> None:
    await asyncio.sleep(5)
    before = broker.controller.quorum.high_watermark

    await asyncio.sleep(600)

    assert broker.controller.quorum.high_watermark == before


@told({"metadata.max.idle.interval.ms": 60_000}, until_ms=3 * HOUR_S * 1000)
async def test_a_snapshot_is_written_hourly_if_there_are_new_records(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    await asyncio.sleep(0.9 * HOUR_S)
    assert files(world, ".checkpoint") == []

    await asyncio.sleep(0.2 * HOUR_S)

    (snapshot,) = files(world, ".checkpoint")
    assert 0 < int(snapshot.partition("-")[0]) <= broker.controller.quorum.high_watermark


@told({"metadata.log.max.record.bytes.between.snapshots": 10_000})
async def test_a_snapshot_is_written_after_so_many_bytes_of_records(
    world: World, broker: Broker, client: Client
) -> None:
    for number in range(30):
        await client.create(f"topic-{number}", partitions=5)
    await asyncio.sleep(5)

    assert files(world, ".checkpoint")


SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": 5_000,
    "metadata.max.retention.bytes": 20_000,
    "metadata.log.segment.ms": 2_000,
    "metadata.max.idle.interval.ms": 2_000,
}


async def live_long(broker: Broker, client: Client) -> None:
    """Much comes and goes, so that little of the log is worth keeping."""
    for number in range(40):
        await client.create(f"topic-{number}", partitions=3, retention_ms=1_000_000 + number)
        if number % 4:
            await client.delete(f"topic-{number}")
        await client.configure("topic-0", retention_ms=2_000_000 + number)
        await asyncio.sleep(1)
    await client.configure_broker(max_connections=77)
    await asyncio.sleep(120)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_a_start_from_a_snapshot_and_the_rest_of_the_log_gives_the_same_image(is_killed: bool) -> None:
    with World(1) as world:

        async def first() -> MetadataImage:
            if is_killed:
                broker = await started(world, SMALL)
                async with client_of(broker) as client:
                    await live_long(broker, client)
                    return broker.services.image
            async with running(world, SMALL) as broker, client_of(broker) as client:
                await live_long(broker, client)
                return broker.services.image

        async def second(world: World) -> tuple[MetadataImage, int]:
            async with running(world, SMALL) as broker, client_of(broker) as client:
                names = {one.name for one in (await client.asked(MetadataRequest(topics=None), 12)).topics}
                assert names == {f"topic-{number}" for number in range(0, 40, 4)}
                assert await client.setting("topic-0", "retention.ms") == "2000039"
                assert broker.settings.now.max_connections == 77
                return broker.services.image, broker.controller.quorum.log_start_offset

        before = world.run(first())
        with next_life(world) as after:
            image, log_start = after.run(second(after))

        assert log_start > 0, "the log was cut"
        assert without_leaders(image) == without_leaders(before)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_partitions_newer_than_the_snapshot_are_not_strays_after_a_restart(is_killed: bool) -> None:
    """A snapshot is only the beginning: logs that it does not know must not be set aside."""
    with World(1) as world:

        async def write(broker: Broker) -> None:
            async with client_of(broker) as client:
                for number in range(20):
                    await client.create(f"topic-{number}")
                await until(lambda: files(world, ".checkpoint") != [])
                await client.create("late")
                await client.produce("late", b"one")

        async def first() -> None:
            if is_killed:
                await write(await started(world, SMALL))
            else:
                async with running(world, SMALL) as broker:
                    await write(broker)

        async def second(world: World) -> list[bytes | None]:
            async with running(world, SMALL) as broker, client_of(broker) as client:
                return await client.values("late")

        world.run(first())
        with next_life(world) as after:
            assert after.run(second(after)) == [b"one"]


def without_leaders(image: MetadataImage) -> MetadataImage:
    """A restart elects every leader anew; after a kill none was left in an ISR, and each is to recover."""
    topics = {
        name: replace(topic, partitions=tuple(_without_leader(one) for one in topic.partitions))
        for name, topic in image.topics.items()
    }
    return replace(known(image), topics=topics, topics_by_id={one.id: one for one in topics.values()})


def _without_leader(partition: PartitionImage) -> PartitionImage:
    return replace(
        partition,
        leader=0,
        leader_epoch=0,
        partition_epoch=0,
        isr=(),
        elr=(),
        last_known_elr=(),
        leader_recovery_state=0,
    )


@told(SMALL, until_ms=3 * HOUR_S * 1000)
async def test_old_snapshots_and_the_log_before_them_go(world: World, broker: Broker, client: Client) -> None:
    await live_long(broker, client)

    sizes = {path: size for path, size in world.disk.tree().items() if path.startswith(DIRECTORY)}
    kept = sum(size for path, size in sizes.items() if path.endswith((".log", ".checkpoint")))
    # What is too much goes by whole segments and whole snapshots.
    assert kept <= 20_000 + 5_000 + 5_000, sizes
    assert broker.controller.quorum.log_start_offset > 0
    assert files(world, ".log")[0] > "00000000000000000000.log"


@told()
async def test_a_broker_without_heartbeats_is_fenced_and_leads_no_partition(
    world: World, broker: Broker, client: Client
) -> None:
    """With one node heartbeats are calls, so the only way to lose them is a broker that does not send any."""
    await client.create("orders")
    assert broker.lifecycle is not None
    await silence(broker)

    await asyncio.sleep(9.5)

    assert broker.services.image.brokers[1].fenced
    assert broker.services.image.topics["orders"].partitions[0].leader == -1
    assert (await client.try_produce("orders", b"v")).error_code != 0
    await broker.lifecycle.beat()
    assert not broker.services.image.brokers[1].fenced
    assert await client.produce("orders", b"v") == 0


async def silence(broker: Broker) -> None:
    """End the task that sends heartbeats."""
    for task in list(broker._tasks._running):
        if task.get_name() == "heartbeats":
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return
    raise AssertionError("nobody sends heartbeats")
