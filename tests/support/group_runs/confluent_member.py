"""A member of a group with confluent-kafka (librdkafka): a program of its own, see orders.py."""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.group_runs.journal import Journal
from support.group_runs.orders import Orders, own_orders, told_to_leave

COMMIT_TRIES_MAX = 5


class ConfluentMember:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._journal = Journal(orders.journal_path)
        self._consumer = Consumer(_settings(orders))
        self._leaves = False

    def run(self) -> None:
        self._consumer.subscribe(
            [self._orders.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        commit_at = time.monotonic()
        while not told_to_leave():
            self._note(self._consumer.consume(self._orders.records_max, self._orders.poll_ms / 1000))
            if time.monotonic() >= commit_at:
                self._commit()
                commit_at = time.monotonic() + self._orders.commit_every_ms / 1000
        self._commit()
        self._leaves = True
        self._journal.write("left")
        self._consumer.close()

    def _note(self, messages: list[Any]) -> None:
        found: dict[int, list[tuple[int, bytes]]] = {}
        for message in messages:
            if message.error() is None:
                found.setdefault(message.partition(), []).append((message.offset(), message.value()))
        for partition, records in found.items():
            self._journal.read(partition, records)

    def _commit(self) -> None:
        for _ in range(COMMIT_TRIES_MAX):
            positions = dict(self._journal.unsaved)
            if not positions:
                return
            places = [TopicPartition(self._orders.topic, where, at) for where, at in positions.items()]
            self._journal.committing(positions)
            try:
                for place in self._consumer.commit(offsets=places, asynchronous=False):
                    if place.error is not None:
                        raise KafkaException(place.error)
            except KafkaException as refused:
                # As a program would: it is tried again, because the epoch may have changed meanwhile.
                self._journal.write("refused", refused)
                time.sleep(self._orders.poll_ms / 1000)
                continue
            self._journal.committed(positions)

    def _assigned(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._journal.given("assigned", [place.partition for place in places])

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        if not self._leaves:
            self._commit()
            self._journal.given("revoked", [place.partition for place in places])

    def _lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        if not self._leaves:
            self._journal.given("lost", [place.partition for place in places])


def _settings(orders: Orders) -> dict[str, object]:
    chosen: dict[str, object] = {
        "bootstrap.servers": orders.address,
        "group.id": orders.group,
        "group.protocol": orders.protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": orders.poll_ms,
    }
    if orders.protocol == "classic":
        # The broker says them in the new protocol.
        chosen["session.timeout.ms"] = orders.session_ms
        chosen["heartbeat.interval.ms"] = orders.heartbeat_ms
    if orders.assignor:
        name = "partition.assignment.strategy" if orders.protocol == "classic" else "group.remote.assignor"
        chosen[name] = orders.assignor
    if orders.instance is not None:
        chosen["group.instance.id"] = orders.instance
    return chosen


if __name__ == "__main__":
    ConfluentMember(own_orders()).run()
