"""An admin client in the simulated world, with a broker or without."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from barnabas.client.admin import Admin
from barnabas.sim.world import World
from support.brokers import running
from support.our_client.peers import ADDRESS, ports_of


def new_admin(world: World, **named: object) -> Admin:
    return Admin({"bootstrap.servers": ADDRESS}, ports=ports_of(world), **named)


@asynccontextmanager
async def administrated(
    world: World, settings: Mapping[str, object] | None = None, **named: object
) -> AsyncIterator[Admin]:
    """A broker that runs and an admin that has found it."""
    async with running(world, settings), new_admin(world, **named) as admin:
        yield admin
