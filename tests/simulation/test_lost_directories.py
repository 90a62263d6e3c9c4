"""Starts without one of the disks: what was on it is waited for, and nothing is made in its place."""

import errno

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.broker import Broker
from barnabas.sim.disk_faults import Kind
from barnabas.sim.world import World
from barnabas.storage.errors import LogExists
from support.brokers import running
from support.stories import Client, client_of

TWO_DISKS = {"log.dirs": "/a,/b"}
EVERYTHING: tuple[Kind, ...] = (
    "open",
    "create",
    "read",
    "write",
    "sync",
    "lock",
    "entries",
    "make_directory",
)
ALWAYS = 1_000_000
OFFLINE = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def lose(world: World, path: str) -> None:
    world.disk.fail(path, EVERYTHING, count=ALWAYS, errno=errno.EIO)


def find_again(world: World) -> None:
    world.disk.faults._rules.clear()


async def write_to_both(world: World) -> tuple[int, int]:
    """A topic with a partition on each disk; which is on which."""
    async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
        await client.create("orders", partitions=2)
        for n in range(2):
            await client.produce("orders", b"%d" % n, partition=n)
        return on(broker, "/a"), on(broker, "/b")


def on(broker: Broker, path: str) -> int:
    """The partition of `orders` that is there."""
    (directory,) = [one for one in broker.logs.directories if one.path == path]
    (log,) = broker.logs.logs_in(directory)
    return log.tp.partition


async def codes(client: Client, partition: int) -> set[int]:
    """What is answered to whoever writes to a partition, or reads it."""
    return {
        (await client.try_produce("orders", b"v", partition=partition)).error_code,
        (await client.fetch("orders", partition=partition)).error_code,
    }


def test_a_partition_on_a_missing_disk_is_offline_until_it_returns() -> None:
    with World(1) as world:
        kept, lost = world.run(write_to_both(world))
        lose(world, "/b")

        async def without() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                assert await codes(client, lost) <= set(OFFLINE)
                assert await client.values("orders", partition=kept) == [b"%d" % kept]
                await client.create("later", partitions=2)
                assert await client.produce("later", b"v", partition=1) == 0

        async def with_it() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                assert await client.values("orders", partition=lost) == [b"%d" % lost]
                assert await client.produce("orders", b"v", partition=lost) == 1
                assert on_disk(world, f"orders-{lost}") == [f"/b/orders-{lost}"]
                assert await client.values("later", partition=1) == [b"v"]

        world.run(without())
        find_again(world)
        world.run(with_it())


def on_disk(world: World, name: str) -> list[str]:
    """Directories of this name."""
    return sorted({path.rpartition("/")[0] for path in world.disk.tree() if f"/{name}/" in path})


def test_a_topic_deleted_while_its_disk_was_missing_stays_deleted() -> None:
    with World(2) as world:
        _, lost = world.run(write_to_both(world))
        lose(world, "/b")

        async def without() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                await client.delete("orders")

        async def with_it() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                assert await codes(client, lost) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
                await client.create("orders", partitions=2)
                assert await client.values("orders", partition=lost) == []
                assert await client.produce("orders", b"new", partition=lost) == 0

        world.run(without())
        find_again(world)
        world.run(with_it())


@pytest.mark.xfail(
    strict=True,
    raises=LogExists,
    reason="the log manager refuses to start with two logs of one partition, although their topic ids tell "
    "which of them is a stray",
)
def test_a_topic_recreated_while_its_disk_was_missing_has_no_old_records() -> None:
    with World(3) as world:
        _, lost = world.run(write_to_both(world))
        lose(world, "/b")

        async def without() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                await client.delete("orders")
                await client.create("orders", partitions=2)
                await client.produce("orders", b"new", partition=lost)

        async def with_it() -> None:
            async with running(world, TWO_DISKS) as broker, client_of(broker) as client:
                assert await client.values("orders", partition=lost) == [b"new"]

        world.run(without())
        find_again(world)
        world.run(with_it())
