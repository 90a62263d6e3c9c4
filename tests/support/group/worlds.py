"""Members of groups in the simulated world, with the broker that ships."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.group.session import Callback
from barnabas.sim.world import World
from support.our_client.consumer_worlds import nothing_left
from support.our_client.peers import ADDRESS, ports_of
from support.stories import Client

QUICKLY: Final = {"group.initial.rebalance.delay.ms": 0}
PROTOCOLS: Final = (
    {"group_protocol": "classic", "partition_assignment_strategy": "range"},
    {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky"},
    {"group_protocol": "consumer"},
)
EAGER, COOPERATIVE, CONSUMER = PROTOCOLS


class Told:
    """What callbacks were told, in order: "+ 0 1", "- 0" or "! 1"."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def noting(self, sign: str) -> Callback:
        def note(tps: frozenset[TopicPartition]) -> None:
            self.lines.append(" ".join([sign, *(str(tp.partition) for tp in sorted(tps))]))

        return note

    @property
    def callbacks(self) -> dict[str, Callback]:
        return {
            "on_assigned": self.noting("+"),
            "on_revoked": self.noting("-"),
            "on_lost": self.noting("!"),
        }


def member_of(world: World, name: str = "member", **settings: Any) -> Consumer:
    named = {
        "auto_offset_reset": "earliest",
        "bootstrap_servers": ADDRESS,
        "group_id": "readers",
        "client_id": name,
        **settings,
    }
    return Consumer(ports=ports_of(world, name), **named)


@asynccontextmanager
async def member(
    world: World, name: str = "member", *, callbacks: dict[str, Callback] | None = None, **settings: Any
) -> AsyncIterator[Consumer]:
    """A member that subscribes to orders; after the block nothing of it is left."""
    before = set(asyncio.all_tasks())
    async with member_of(world, name, **settings) as consumer:
        await consumer.subscribe(["orders"], **(callbacks or {}))
        yield consumer
    nothing_left(consumer, before)


async def write(client: Client, count: int, *, partition: int = 0, first: int = 0) -> None:
    await client.produce(
        "orders", *(b"%d" % number for number in range(first, first + count)), partition=partition
    )


async def committed(consumer: Consumer, *partitions: int) -> list[int | None]:
    found = await consumer.committed([("orders", number) for number in partitions])
    return [None if one is None else one.offset for one in found.values()]


def numbers(consumer: Consumer) -> list[int]:
    return sorted(tp.partition for tp in consumer.assignment)
