"""The steps of transactions.py without transactions: records are delivered, then offsets are committed.

A process that is killed between the two leaves records that are made once more. It is here to show that the
checker would see it.
"""

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from support.eos_runs.journal import Journal
from support.eos_runs.making import LINGER_MS
from support.eos_runs.orders import RECONNECT_MS_MAX, Fatal, Orders

FLUSH_TIMEOUT_S = 60.0


class Plain:
    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._journal = journal
        self._producer = Producer(
            {
                "bootstrap.servers": orders.address,
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
            }
        )
        self.number = 0
        self.is_open = False

    def serve(self) -> None:
        self._journal.write("serving")

    def begin(self) -> None:
        self.number += 1
        self.is_open = True

    def produce(self, topic: str, partition: int, value: bytes, *, of: int, number: int) -> None:
        self._journal.wrote(self.number, of, [number])
        self._producer.produce(topic, value, partition=partition)
        self._producer.poll(0)

    def commit(self, offsets: Sequence[TopicPartition], reader: Consumer) -> bool:
        self._journal.write("committing", self.number)
        if self._producer.flush(FLUSH_TIMEOUT_S):
            raise Fatal("not everything was delivered")
        self.is_open = False
        try:
            reader.commit(offsets=list(offsets), asynchronous=False)
        except KafkaException as refused:
            self._journal.write("trouble", refused)
            return False
        self._journal.write("committed", self.number)
        return True

    def abort(self) -> None:
        """There is no such thing: what was written is written."""
        self._producer.flush(FLUSH_TIMEOUT_S)
        self.is_open = False

    def abort_what_is_complete(self, offsets: Sequence[TopicPartition], reader: Consumer) -> None:
        self.abort()
