"""Writes numbered records to every partition of the input, in transactions; some it aborts on purpose.

A program of its own, see orders.py. How far it has come is part of its transactions, too: as the offset of a
group that is only for this, the number that each partition gets next. So whoever takes over after a kill goes
on exactly there, and the input has every number once, beside what was aborted.
"""

import random
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.eos_runs.journal import Journal
from support.eos_runs.making import (
    CALL_TIMEOUT_S,
    EVERY_S,
    PATIENCE_S,
    SOURCE_PARTS_ABORTED,
    SOURCE_RECORDS_MAX,
    TRY_AGAIN_AFTER_S,
)
from support.eos_runs.orders import RECONNECT_MS_MAX, Fatal, Orders, carry_out, told_to_leave
from support.eos_runs.records import INPUT, Mark
from support.eos_runs.transactions import MustAbort, Transactions


class Source:
    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        self._rng = random.Random(orders.seed)
        self._transactions = Transactions(orders, journal)
        self._progress = Consumer(
            {
                "bootstrap.servers": orders.address,
                "group.id": orders.source_group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
            }
        )

    def run(self) -> None:
        self._transactions.serve()
        numbers = self._find_numbers()
        while not told_to_leave():
            numbers = self._write_some(numbers)
            time.sleep(EVERY_S)
        self._progress.close()
        self._journal.write("left")

    def _write_some(self, numbers: dict[int, int]) -> dict[int, int]:
        """One transaction. The numbers that come next: the same again if it was aborted."""
        self._transactions.begin()
        after = dict(numbers)
        topic = self._orders.input_topic
        try:
            for partition in range(self._orders.input_partitions):
                for _ in range(self._rng.randrange(SOURCE_RECORDS_MAX)):
                    self._write(partition, after[partition])
                    after[partition] += 1
        except MustAbort as refused:
            self._journal.write("trouble", refused)
            self._transactions.abort()
            return numbers
        offsets = [TopicPartition(topic, where, number) for where, number in after.items()]
        if self._rng.random() < SOURCE_PARTS_ABORTED:
            self._transactions.abort_what_is_complete(offsets, self._progress)
            return numbers
        return after if self._transactions.commit(offsets, self._progress) else numbers

    def _write(self, partition: int, number: int) -> None:
        orders = self._orders
        mark = Mark(INPUT, orders.run, partition, number, orders.life, self._transactions.number)
        self._transactions.produce(orders.input_topic, partition, mark.text(), of=partition, number=number)

    def _find_numbers(self) -> dict[int, int]:
        places = [
            TopicPartition(self._orders.input_topic, each) for each in range(self._orders.input_partitions)
        ]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = self._progress.committed(places, CALL_TIMEOUT_S)
                for place in found:
                    if place.error is not None:
                        raise KafkaException(place.error)
                return {place.partition: max(0, place.offset) for place in found}
            except KafkaException as refused:
                if time.monotonic() > deadline:
                    raise Fatal(f"cannot tell how far the input is: {refused}") from refused
                time.sleep(TRY_AGAIN_AFTER_S)


if __name__ == "__main__":
    carry_out(lambda orders, journal: Source(orders, journal).run())
