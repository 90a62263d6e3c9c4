"""The controller knows in which log directory each replica is, from the broker that put it there."""

from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.stories import Client, told, until

TWO_DISKS = {"log.dirs": "/a,/b"}


def placed(broker: Broker, topic: str) -> list[str]:
    """Where the metadata says that each partition is."""
    paths = {directory.id: directory.path for directory in broker.logs.directories}
    partitions = broker.services.image.topics[topic].partitions
    return [paths.get(one.directories[0], "nowhere") for one in partitions]


def found(broker: Broker, topic: str) -> list[str]:
    """Where each partition is."""
    logs = sorted((tp.partition, log) for tp, log in broker.logs.logs.items() if tp.topic == topic)
    return [broker.logs.home(log).path for _, log in logs]


@told(TWO_DISKS)
async def test_the_metadata_says_where_each_replica_is(world: World, broker: Broker, client: Client) -> None:
    await client.create("orders", partitions=5)

    await until(lambda: "nowhere" not in placed(broker, "orders"))

    assert placed(broker, "orders") == found(broker, "orders")
    assert sorted(set(placed(broker, "orders"))) == ["/a", "/b"]


@told()
async def test_a_broker_with_one_directory_sends_no_directory_report(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders", partitions=5)

    assert placed(broker, "orders") == ["/data"] * 5
