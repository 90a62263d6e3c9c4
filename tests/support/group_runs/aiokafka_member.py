"""A member of a group with aiokafka: a program of its own, see orders.py.

aiokafka calls the listener from a task of its own. From the moment when a rebalance begins it gives out no
records, so what has been noted by then is all that there is to commit; the lock keeps that commit behind one
that is under way.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from support.group_runs.journal import Journal
from support.group_runs.orders import Orders, own_orders, told_to_leave


class AioKafkaMember(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._journal = Journal(orders.journal_path)
        self._leaves = False
        self._committing = asyncio.Lock()
        self._consumer = AIOKafkaConsumer(**_settings(orders))

    async def run(self) -> None:
        self._consumer.subscribe([self._orders.topic], listener=self)
        await self._consumer.start()
        loop = asyncio.get_running_loop()
        commit_at = loop.time()
        while not told_to_leave():
            await self._read()
            if loop.time() >= commit_at:
                await self._commit()
                commit_at = loop.time() + self._orders.commit_every_ms / 1000
        await self._commit()
        self._leaves = True
        self._journal.write("left")
        await self._consumer.stop()

    async def _read(self) -> None:
        found = await self._consumer.getmany(
            timeout_ms=self._orders.poll_ms, max_records=self._orders.records_max
        )
        for place, records in found.items():
            self._journal.read(place.partition, [(one.offset, one.value) for one in records])

    async def _commit(self) -> None:
        async with self._committing:
            if positions := dict(self._journal.unsaved):
                await self._commit_these(positions)

    async def _commit_these(self, positions: dict[int, int]) -> None:
        self._journal.committing(positions)
        try:
            await self._consumer.commit(
                {TopicPartition(self._orders.topic, where): at for where, at in positions.items()}
            )
        except KafkaError as refused:
            self._journal.write("refused", repr(refused))
            return
        self._journal.committed(positions)

    # What AIOKafkaConsumer calls.

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._journal.given("assigned", [place.partition for place in assigned])

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        if not self._leaves:
            await self._commit()
            self._journal.given("revoked", [place.partition for place in revoked])


def _settings(orders: Orders) -> dict[str, object]:
    chosen: dict[str, object] = {
        "bootstrap_servers": orders.address,
        "group_id": orders.group,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": orders.session_ms,
        "heartbeat_interval_ms": orders.heartbeat_ms,
        "fetch_max_wait_ms": orders.poll_ms,
    }
    if orders.instance is not None:
        chosen["group_instance_id"] = orders.instance
    return chosen


async def main() -> None:
    # The consumer looks for the loop that it is made in.
    await AioKafkaMember(own_orders()).run()


if __name__ == "__main__":
    asyncio.run(main())
