"""Disks that a broker cannot live without: it ends, says why, and what it had promised is there after it."""

import asyncio

import pytest

from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.raft.errors import MetadataUnreadable
from barnabas.sim.disk_faults import Kind
from barnabas.sim.world import World
from support.brokers import broker_settings, make_broker, running
from support.stories import Stopwatch, client_of

ALWAYS = 1_000_000


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_failed_metadata_log_write_stops_the_broker_without_false_results(kind: Kind) -> None:
    """A controller that went on would decide on what may be gone."""
    with World(2) as world:

        async def first() -> None:
            broker = make_broker(world, broker_settings())
            await broker.start()
            async with client_of(broker) as client:
                await client.create("before")
                world.disk.fail("/data/__cluster_metadata-0", {kind}, count=ALWAYS)
                with pytest.raises((AssertionError, asyncio.IncompleteReadError, ConnectionError)):
                    await client.create("after")
            with pytest.raises(OSError, match="Input/output error"):
                await asyncio.wait_for(asyncio.shield(broker.failed), 10)
            world.disk.faults._rules.clear()
            await broker.stop(clean=False)

        async def second() -> set[str]:
            async with running(world) as broker, client_of(broker) as client:
                answer = await client.asked(MetadataRequest(topics=None), 12)
                return {topic.name for topic in answer.topics}

        world.run(first())
        assert "before" in world.run(second())


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_failed_metadata_log_is_reported_at_once_during_start(kind: Kind) -> None:
    with World(1) as world:

        async def story() -> float:
            async with running(world):
                pass
            world.disk.fail("/data/__cluster_metadata-0/00000000000000000000.log", {kind}, count=ALWAYS)
            watch = Stopwatch(world)
            broker = make_broker(world, broker_settings())
            with pytest.raises((OSError, MetadataUnreadable), match="Input/output error"):
                await broker.start()
            return watch.ms

        assert world.run(story()) < 5_000


@pytest.mark.parametrize("broken", [["/a"], ["/b", "/c"]], ids=["with the metadata", "all but the metadata"])
def test_a_broker_stops_only_if_the_disk_of_its_metadata_fails(broken: list[str]) -> None:
    with World(3) as world:

        async def story() -> bool:
            broker = make_broker(world, broker_settings({"log.dirs": "/a,/b,/c"}))
            await broker.start()
            async with client_of(broker) as client:
                await client.create("orders", partitions=6)
                for path in broken:
                    world.disk.fail(f"{path}/orders", {"write"}, count=ALWAYS)
                for number in range(6):
                    await client.try_produce("orders", b"v", partition=number)
                await asyncio.sleep(1)
            failed = broker.failed.done()
            await broker.stop(clean=not failed)
            return failed

        assert world.run(story()) is ("/a" in broken)
