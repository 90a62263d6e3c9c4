"""A member of a group with kafka-python: a program of its own, see orders.py."""

import time
from collections.abc import Iterable
from typing import Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from support.group_runs.journal import Journal, Positions
from support.group_runs.orders import Orders, own_orders, told_to_leave

# Longer than for others: kafka-python 3.0 joins anew if the answer to a join comes between two polls, and may
# then fall silent until its session is over.
POLL_MS = 500


class KafkaPythonMember(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._journal = Journal(orders.journal_path)
        self._leaves = False
        self._consumer = KafkaConsumer(**_settings(orders))

    def run(self) -> None:
        self._consumer.subscribe([self._orders.topic], listener=self)
        commit_at = time.monotonic()
        while not told_to_leave():
            found = self._consumer.poll(POLL_MS, max_records=self._orders.records_max)
            for place, records in found.items():
                self._journal.read(place.partition, [(one.offset, one.value) for one in records])
            if time.monotonic() >= commit_at:
                self._commit()
                commit_at = time.monotonic() + self._orders.commit_every_ms / 1000
        self._commit()
        self._leaves = True
        self._journal.write("left")
        self._consumer.close()

    def _commit(self) -> None:
        positions = dict(self._journal.unsaved)
        if not positions:
            return
        self._journal.committing(positions)
        try:
            self._consumer.commit(self._places(positions))
        except KafkaError as refused:
            self._journal.write("refused", repr(refused))
            return
        self._journal.committed(positions)

    def _places(self, positions: Positions) -> dict[Any, Any]:
        return {
            TopicPartition(self._orders.topic, where): OffsetAndMetadata(at, "", -1)
            for where, at in positions.items()
        }

    # What KafkaConsumer calls, within poll(): there it must not block, so it has a commit of its own.

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._journal.given("assigned", [place.partition for place in assigned])

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        if self._leaves:
            return
        if positions := dict(self._journal.unsaved):
            self._journal.committing(positions)
            try:
                await self._consumer.commit_async(self._places(positions))
            except KafkaError as refused:
                self._journal.write("refused", repr(refused))
            else:
                self._journal.committed(positions)
        self._journal.given("revoked", [place.partition for place in revoked])

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        if not self._leaves:
            self._journal.given("lost", [place.partition for place in lost])


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


if __name__ == "__main__":
    KafkaPythonMember(own_orders()).run()
