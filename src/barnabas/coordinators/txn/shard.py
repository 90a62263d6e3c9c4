"""The transactional ids of one partition of __transaction_state.

This is the door; what is behind it: initializing.py, adding.py, ending.py, marking.py, aging.py, admin.py.
Every decision is made from the state that the one before it has left: the shell applies the records of an
outcome before it asks for the next.
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
from barnabas.coordinators.txn.aging import TIMEOUTS, abort_overdue, forget_unused, start_aging
from barnabas.coordinators.txn.ending import decide_end
from barnabas.coordinators.txn.ground import TxnGround
from barnabas.coordinators.txn.initializing import decide_init
from barnabas.coordinators.txn.markers import MarkersToWrite
from barnabas.coordinators.txn.marking import ask_for_markers, awaited, decide_markers_written
from barnabas.coordinators.txn.record import TxnRecord, decode_record
from barnabas.coordinators.txn.state import TxnProducer
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
    """Every call but apply() and replay() returns an Outcome to be carried out, or what is asked for.

    What is refused is an answer with Kafka's code. NeedsProducerId is raised before anything has changed.
    """

    def __init__(self, ground: TxnGround) -> None:
        self.ground: Final = ground

    @property
    def timers(self) -> Timers:
        return self.ground.timers

    def __len__(self) -> int:
        """How many transactional ids there are."""
        return len(self.ground.txns)

    # Producers

    def init(
        self, request: InitProducerIdRequest, version: int, new_id: int | None, to: ReplyTo, now: Now
    ) -> Outcome:
        """`new_id` is a producer id that nobody has. Answers an InitProducerIdResponse."""
        return decide_init(self.ground, request, version, new_id, to, now)

    def add_partitions(
        self, asked: AddPartitionsToTxnTransaction, version: int, to: ReplyTo, now: Now
    ) -> Outcome:
        """Also for verify_only. Answers an AddPartitionsToTxnResult."""
        return decide_add_partitions(self.ground, asked, version, to, now)

    def let_in(
        self, producer: TxnProducer, partitions: Collection[TopicPartition], adds: bool, to: ReplyTo, now: Now
    ) -> Outcome:
        """For a leader with batches of that transaction: its partitions are added, or else it is said whether
        they are in it. Answers the code of each."""
        return decide_let_in(self.ground, producer, partitions, adds, to, now)

    def add_offsets(
        self,
        request: AddOffsetsToTxnRequest,
        version: int,
        offsets_partition: TopicPartition,
        to: ReplyTo,
        now: Now,
    ) -> Outcome:
        """Where the group has its offsets becomes part. Answers an AddOffsetsToTxnResponse."""
        return decide_add_offsets(self.ground, request, version, offsets_partition, to, now)

    def end(self, request: EndTxnRequest, version: int, new_id: int | None, to: ReplyTo, now: Now) -> Outcome:
        """`new_id` as above. Answers an EndTxnResponse; the markers follow."""
        return decide_end(self.ground, request, version, new_id, to, now)

    # Markers and time

    def markers_written(
        self, ended: MarkersToWrite, partitions: Collection[TopicPartition], now: Now
    ) -> Outcome:
        """These partitions have theirs, or do not exist any more."""
        return decide_markers_written(self.ground, ended, partitions, now)

    def awaits(self, ended: MarkersToWrite) -> bool:
        """Whether these markers are still to be written: the very ones that were asked for, in this life.

        A marker that is written later could end the next transaction of an old client.
        """
        return awaited(self.ground, ended) is not None

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        if key == TIMEOUTS:
            return abort_overdue(self.ground, now)
        return forget_unused(self.ground, now)

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard goes away. Nobody waits in it."""
        return Outcome()

    # Administration

    def describe(self, transactional_id: str) -> DescribeTransactionsResponseTransactionState:
        return describe(self.ground, transactional_id)

    def list(self, wanted: Wanted, now: Now) -> Iterator[ListTransactionsResponseTransactionState | None]:
        """Of all shards at once: transactions_of() in admin.py."""
        return list_of(self.ground, wanted, now)

    # Records

    def apply(self, record: Record) -> None:
        assert isinstance(record, TxnRecord), f"a record that nobody knows: {record!r}"
        self.ground.put(record.transactional_id, record.txn)

    def replay(self, batch: bytes) -> None:
        """Take a batch of the log, while loading. Malformed if it is not one of ours."""
        if read_header(batch).is_control:
            return
        for record in decode_batch(batch):
            if record.key is None:
                raise Malformed("has no key", where=f"record {record.offset} of __transaction_state")
            try:
                self.apply(decode_record(record.key, record.value))
            except UnknownRecord as unknown:
                # A later release may have written it. It stays in the log for that release.
                logger.warning("record skipped error=%s", unknown)

    def loaded(self, now: Now) -> Outcome:
        """All batches have been replayed: what was prepared goes on, and time begins."""
        start_aging(self.ground, now)
        outcome = Outcome()
        for transactional_id, txn in self.ground.txns.items():
            if txn.is_prepared:
                ask_for_markers(self.ground, outcome, transactional_id, txn)
        return outcome

    def durable(self) -> dict[str, object]:
        """What the records tell of, as a value to compare."""
        return {transactional_id: txn.durable() for transactional_id, txn in self.ground.txns.items()}
