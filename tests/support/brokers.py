"""The broker that ships, in the simulated world: its own disk, clock, network and dice."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from barnabas.base.checksum import InlineChecksums
from barnabas.server.broker import Broker
from barnabas.server.cluster.formatting import format_storage, identity_of
from barnabas.server.ports import Ports
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.sim.disk import SimDisk
from barnabas.sim.world import World
from support.wire.frames import RawClient

CLUSTER_ID = "8UFBlDBzRM2WGJual5ztlg"
DATA = "/data"
PORT = 9092


def broker_settings(settings: Mapping[str, object] | None = None) -> BrokerSettings:
    given = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{PORT},CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:0",
        "log.dirs": DATA,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 2,
        **(settings or {}),
    }
    return BrokerSettings.parse({name: str(value) for name, value in given.items()})


def make_broker(world: World, settings: BrokerSettings, disk: SimDisk | None = None) -> Broker:
    """A broker on the world's disk, formatted if it was not."""
    disk = disk or world.disk
    if identity_of(disk, settings) is None:
        format_storage(
            disk, settings, cluster_id=CLUSTER_ID, rng=world.dice("format"), now_ms=world.clock.now_ms()
        )
    ports = Ports(
        fs=disk,
        clock=world.clock,
        executor=world.executor,
        checksums=InlineChecksums(),
        # Every start throws dice of its own: no two have the same incarnation id.
        rng=world.dice(f"broker {world.rng.random()}"),
        hostname="127.0.0.1",
    )
    return Broker(settings, ports, cluster_id=CLUSTER_ID)


@asynccontextmanager
async def running(world: World, settings: Mapping[str, object] | None = None) -> AsyncIterator[Broker]:
    """Started, until the end of the block; then stopped cleanly."""
    broker = make_broker(world, broker_settings(settings))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@asynccontextmanager
async def connected(broker: Broker) -> AsyncIterator[RawClient]:
    client = await RawClient.connect("127.0.0.1", broker.listeners[0].port)
    try:
        yield client
    finally:
        client.close()
