"""The transactional ids of one partition of __transaction_state.

The entry point to initializing.py, adding.py, ending.py, expiration.py and admin.py. The shell applies
the records of an outcome before it requests the next decision, so each decision sees the state left by the
previous one.
"""

import logging
from collections.abc import Collection, Iterator
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import Now, Outcome, Record, ReplyTo
from barnabas.coordinators.decision.timers import TimerKey, Timers
from barnabas.coordinators.txn.adding import decide_add_offsets, decide_add_partitions, decide_let_in
from barnabas.coordinators.txn.admin import Wanted, describe, list_of
from barnabas.coordinators.txn.ending import decide_end
from barnabas.coordinators.txn.expiration import TIMEOUTS, abort_timed_out, expire_unused_ids, start_timers
from barnabas.coordinators.txn.initializing import decide_init
from barnabas.coordinators.txn.record import TxnRecord, decode_record
from barnabas.coordinators.txn.state import TxnProducer
from barnabas.coordinators.txn.table import TxnTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponseTransactionState,
)
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
)
from barnabas.protocol.stored.framing import UnknownRecord
from barnabas.records.decode import decode_batch
from barnabas.records.header import read_header

logger = logging.getLogger(__name__)


class TxnShard:
    """Requests and timers return an Outcome; queries return their result.

    A refusal is an answer with Kafka's error code. The markers of ended transactions are in `table`.
    """

    def __init__(self, table: TxnTable) -> None:
        self.table: Final = table

    @property
    def timers(self) -> Timers:
        return self.table.timers

    def __len__(self) -> int:
        """The number of transactional ids."""
        return len(self.table.txns)

    # Producers

    def init(
        self, request: InitProducerIdRequest, version: int, new_id: int | None, to: ReplyTo, now: Now
    ) -> Outcome:
        """`new_id` is an unused producer id. Answers an InitProducerIdResponse."""
        return decide_init(self.table, request, version, new_id, to, now)

    def add_partitions(
        self, asked: AddPartitionsToTxnTransaction, version: int, to: ReplyTo, now: Now
    ) -> Outcome:
        """Adds partitions, or verifies them if verify_only. Answers an AddPartitionsToTxnResult."""
        return decide_add_partitions(self.table, asked, version, to, now)

    def let_in(
        self, producer: TxnProducer, partitions: Collection[TopicPartition], adds: bool, to: ReplyTo, now: Now
    ) -> Outcome:
        """For a leader on this broker with batches of a transaction: add its partitions, or verify them.

        Answers the code of each."""
        return decide_let_in(self.table, producer, partitions, adds, to, now)

    def add_offsets(
        self,
        request: AddOffsetsToTxnRequest,
        version: int,
        offsets_partition: TopicPartition,
        to: ReplyTo,
        now: Now,
    ) -> Outcome:
        """Add the group's partition of __consumer_offsets. Answers an AddOffsetsToTxnResponse."""
        return decide_add_offsets(self.table, request, version, offsets_partition, to, now)

    def end(self, request: EndTxnRequest, version: int, new_id: int | None, to: ReplyTo, now: Now) -> Outcome:
        """`new_id` as in init(). Answers an EndTxnResponse; the markers follow."""
        return decide_end(self.table, request, version, new_id, to, now)

    # Time

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        if key == TIMEOUTS:
            return abort_timed_out(self.table, now)
        return expire_unused_ids(self.table, now)

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard is closed. It holds no pending requests."""
        return Outcome()

    # Administration

    def describe(self, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
        return describe(self.table, transactional_id)

    def list(self, wanted: Wanted, now: Now) -> Iterator[ListTransactionsResponseTransactionState | None]:
        """transactions_of() in admin.py lists all shards."""
        return list_of(self.table, wanted, now)

    # Records

    def apply(self, record: Record) -> None:
        assert isinstance(record, TxnRecord), f"unexpected record: {record!r}"
        self.table.put(record.transactional_id, record.txn)

    def replay(self, batch: bytes) -> None:
        """Apply a batch of the log while loading. Malformed if it cannot be decoded."""
        if read_header(batch).is_control:
            return
        for record in decode_batch(batch):
            if record.key is None:
                raise Malformed("has no key", where=f"record {record.offset} of __transaction_state")
            try:
                self.apply(decode_record(record.key, record.value))
            except UnknownRecord as unknown:
                # Written by a later release; it stays in the log for that release.
                logger.warning("record skipped error=%s", unknown)

    def loaded(self, now: Now) -> Outcome:
        """All batches have been replayed: request the markers of prepared transactions, and start the
        timers."""
        start_timers(self.table, now)
        outcome = Outcome()
        for transactional_id, txn in self.table.txns.items():
            if txn.is_prepared:
                self.table.request_markers(outcome, transactional_id, txn)
        return outcome

    def durable(self) -> dict[str, object]:
        """The state that the records describe, as a comparable value."""
        return {transactional_id: txn.durable() for transactional_id, txn in self.table.txns.items()}
