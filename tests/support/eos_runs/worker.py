"""Reads the input in a group, writes one record for each to the output, and commits both together.

A program of its own, see orders.py, in the manner of confluent-kafka's example eos_transactions: the records
of a short while are one transaction, and the offsets of what they were made from are part of it. When
partitions are taken from it, it commits what it has made of them; when they are lost, it aborts. After an
abort it goes back to where its group has committed.
"""

import random
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from support.eos_runs.journal import Journal
from support.eos_runs.making import (
    CALL_TIMEOUT_S,
    PARTS_ABORTED,
    PATIENCE_S,
    RECORDS_MAX,
    TRANSACTION_S_MAX,
    TRY_AGAIN_AFTER_S,
    group_settings,
    make_of,
)
from support.eos_runs.orders import RECONNECT_MS_MAX, Fatal, Orders, carry_out, told_to_leave
from support.eos_runs.plain import Plain
from support.eos_runs.transactions import MustAbort, Transactions

Found = TypeVar("Found")


class Delivery(Protocol):
    """Transactions, or what one does without them."""

    number: int
    is_open: bool

    def serve(self) -> None: ...
    def begin(self) -> None: ...
    def produce(self, topic: str, partition: int, value: bytes, *, of: int, number: int) -> None: ...
    def commit(self, offsets: list[TopicPartition], reader: Consumer) -> bool: ...
    def abort(self) -> None: ...
    def abort_what_is_complete(self, offsets: list[TopicPartition], reader: Consumer) -> None: ...


class Worker:
    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        self._rng = random.Random(orders.seed)
        self._consumer = Consumer(consumer_settings(orders))
        self._delivery: Delivery = (
            Transactions(orders, journal) if orders.transactional_id else Plain(orders, journal)
        )
        # Where the open transaction ends in each input partition.
        self._positions: dict[int, int] = {}
        self._records = 0
        self._commit_at = 0.0
        self._must_go_back = False
        # Input partitions of which no record has been read since they came here.
        self._just_assigned: set[int] = set()

    def run(self) -> None:
        self._delivery.serve()
        self._consumer.subscribe(
            [self._orders.input_topic],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )
        while not told_to_leave():
            message = self._poll()
            if self._must_go_back:
                # It was read at a place that is not where the group is: read again later.
                self._go_back()
            elif message is not None and self._is_where_the_group_is(message):
                self._transform(message)
            if self._delivery.is_open and (
                time.monotonic() >= self._commit_at or self._records >= RECORDS_MAX
            ):
                self._end()
        self._commit()
        self._consumer.close()
        self._journal.write("left")

    def _poll(self) -> Message | None:
        """A record, if there is one. Of a consumer that was fenced there is none any more."""
        message = self._consumer.poll(self._orders.poll_ms / 1000)
        error = None if message is None else message.error()
        if error is not None and error.fatal():
            raise Fatal(f"reading: {error}")
        return message if error is None else None

    def _transform(self, message: Message) -> None:
        if not self._delivery.is_open:
            self._delivery.begin()
            self._records = 0
            self._commit_at = time.monotonic() + self._rng.uniform(0.0, TRANSACTION_S_MAX)
        value, partition, offset = message.value() or b"", message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        place = f"partition {partition} offset {offset}"
        made = make_of(value, place, self._orders, self._delivery.number)
        try:
            self._delivery.produce(
                self._orders.output_topic, made.to, made.value, of=made.of, number=made.number
            )
        except MustAbort as refused:
            self._journal.write("trouble", refused)
            self._abort()
            return
        self._positions[partition] = offset + 1
        self._records += 1

    def _end(self) -> None:
        # Without transactions that would be a mistake of the worker.
        if self._orders.transactional_id and self._rng.random() < PARTS_ABORTED:
            self._delivery.abort_what_is_complete(self._offsets(), self._consumer)
            self._positions.clear()
            self._must_go_back = True
        else:
            self._commit()

    def _commit(self) -> None:
        if not self._delivery.is_open:
            return
        is_committed = self._delivery.commit(self._offsets(), self._consumer)
        self._positions.clear()
        self._must_go_back |= not is_committed

    def _offsets(self) -> list[TopicPartition]:
        """Of what the open transaction was made of."""
        topic = self._orders.input_topic
        return [TopicPartition(topic, where, at) for where, at in sorted(self._positions.items())]

    def _abort(self) -> None:
        if self._delivery.is_open:
            self._delivery.abort()
            self._positions.clear()
            self._must_go_back = True

    def _is_where_the_group_is(self, message: Message) -> bool:
        """Whether a partition that came here just now is read from where the group has committed.

        librdkafka 2.16 begins at the first record of a partition whose offset is pending in a transaction, if
        the group rebalances while it asks for the offset; with Kafka as with us.
        """
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        if partition not in self._just_assigned:
            return True
        [committed] = self._patiently(lambda: self._committed([TopicPartition(topic, partition)]))
        self._just_assigned.discard(partition)
        if offset >= committed.offset:
            return True
        self._journal.write("trouble", f"partition {partition} was read at {offset}, not {committed.offset}")
        self._patiently(lambda: self._consumer.seek(committed))
        return False

    def _go_back(self) -> None:
        """To where the group has committed, in every partition that is still here."""
        self._patiently(self._seek_to_committed)
        self._must_go_back = False

    def _seek_to_committed(self) -> None:
        for place in self._committed(self._consumer.assignment()):
            at = place.offset if place.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(TopicPartition(place.topic, place.partition, at))

    def _committed(self, places: list[TopicPartition]) -> list[TopicPartition]:
        found = self._consumer.committed(places, CALL_TIMEOUT_S) if places else []
        for place in found:
            if place.error is not None:
                raise KafkaException(place.error)
        return found

    def _patiently(self, call: Callable[[], Found]) -> Found:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call()
            except KafkaException as refused:
                if time.monotonic() > deadline:
                    raise Fatal(f"cannot find the place: {refused}") from refused
                time.sleep(TRY_AGAIN_AFTER_S)

    # What the consumer calls, within poll() and close().

    def _assigned(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._journal.write("assigned", *sorted(place.partition for place in places))
        self._just_assigned.update(place.partition for place in places)

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._commit()
        self._journal.write("revoked", *sorted(place.partition for place in places))

    def _lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._abort()
        self._journal.write("lost", *sorted(place.partition for place in places))


def consumer_settings(orders: Orders) -> dict[str, object]:
    chosen: dict[str, object] = {
        "bootstrap.servers": orders.address,
        "group.id": orders.group,
        "group.protocol": orders.protocol,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": orders.poll_ms,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
    }
    return chosen | group_settings(orders)


if __name__ == "__main__":
    carry_out(lambda orders, journal: Worker(orders, journal).run())
