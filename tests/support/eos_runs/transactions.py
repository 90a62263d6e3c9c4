"""A transactional producer of confluent-kafka, with the errors handled as its documentation asks.

What may be tried again is tried again, what asks for an abort is aborted, and what is fatal ends the process:
it is started again under the same transactional id. Every step is in the journal.
"""

import random
import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from support.eos_runs.journal import Journal
from support.eos_runs.making import CALL_TIMEOUT_S, LINGER_MS, PATIENCE_S, Written, hesitation_s
from support.eos_runs.orders import RECONNECT_MS_MAX, Fatal, Orders
from support.eos_runs.watchdog import Watchdog

SILENCE_S_MAX = 2 * CALL_TIMEOUT_S


class MustAbort(Exception):
    """The transaction can only be aborted."""


class Transactions:
    """One at a time; begun with the first record. Not for threads."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._journal = journal
        self._rng = random.Random(orders.seed)
        self._watchdog = Watchdog(journal, SILENCE_S_MAX)
        self._producer = Producer(
            {
                "bootstrap.servers": orders.address,
                "transactional.id": orders.transactional_id,
                "transaction.timeout.ms": orders.transaction_timeout_ms,
                "linger.ms": LINGER_MS,
                "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
            }
        )
        self.number = 0
        self.is_open = False
        self._written = Written()

    def serve(self) -> None:
        """Take the id over: what another process left open under it is ended before this returns."""
        try:
            self._insist(lambda: self._producer.init_transactions(CALL_TIMEOUT_S))
        except MustAbort as refused:
            raise Fatal(f"no transactions: {refused}") from refused
        self._journal.write("serving")

    def begin(self) -> None:
        try:
            self._insist(self._producer.begin_transaction)
        except MustAbort as refused:
            raise Fatal(f"not begun: {refused}") from refused
        self.number += 1
        self.is_open = True
        self._written.clear()

    def produce(self, topic: str, partition: int, value: bytes, *, of: int, number: int) -> None:
        """One record; it is made of input partition `of`, number `number`. MustAbort if it cannot be."""
        assert self.is_open
        self._written.add(of, number)
        self._insist(lambda: self._producer.produce(topic, value, partition=partition))
        self._insist(lambda: self._producer.poll(0))

    def commit(self, offsets: Sequence[TopicPartition], reader: Consumer) -> bool:
        """With the offsets of what the records were made of. Whether it is committed: else it is aborted."""
        self._written.tell(self._journal, self.number)
        try:
            self._send_offsets(offsets, reader)
            time.sleep(hesitation_s(self._rng))
            self._journal.write("committing", self.number)
            self._insist(lambda: self._producer.commit_transaction(CALL_TIMEOUT_S))
        except MustAbort as refused:
            self._journal.write("trouble", refused)
            self._abort()
            return False
        self._journal.write("committed", self.number)
        self.is_open = False
        return True

    def abort(self) -> None:
        self._written.tell(self._journal, self.number)
        self._abort()

    def abort_what_is_complete(self, offsets: Sequence[TopicPartition], reader: Consumer) -> None:
        """First its records and offsets get into the logs: there is something that must not be seen."""
        self._written.tell(self._journal, self.number)
        try:
            self._insist(lambda: self._producer.flush(CALL_TIMEOUT_S))
            self._send_offsets(offsets, reader)
        except MustAbort as refused:
            self._journal.write("trouble", refused)
        self._abort()

    def _send_offsets(self, offsets: Sequence[TopicPartition], reader: Consumer) -> None:
        member = reader.consumer_group_metadata()
        self._insist(
            lambda: self._producer.send_offsets_to_transaction(list(offsets), member, CALL_TIMEOUT_S)
        )

    def _abort(self) -> None:
        try:
            self._insist(lambda: self._producer.abort_transaction(CALL_TIMEOUT_S))
        except MustAbort as refused:
            # Not even that: what became of it is for the next process to find out.
            raise Fatal(f"not aborted: {refused}") from refused
        self._journal.write("aborted", self.number)
        self.is_open = False

    def _insist(self, call: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self._watchdog:
                    call()
                return
            except KafkaException as refused:
                if time.monotonic() > deadline:
                    raise Fatal(f"for {PATIENCE_S} s: {refused}") from refused
                self._judge(refused)

    @staticmethod
    def _judge(refused: KafkaException) -> None:
        """Comes back if the same may be tried again."""
        error: KafkaError = refused.args[0]
        if error.fatal():
            raise Fatal(str(error)) from refused
        if error.txn_requires_abort() or not error.retriable():
            raise MustAbort(str(error)) from refused
