"""The producer state of one log, for idempotence and transactions (compiled, pure).

The log calls check() before an append and appended() after it; markers have a pair of their own. check()
changes nothing and appended() rejects nothing, so recovery replays a log with appended() alone. rules.py has
the checks, state.py one producer, open_txns.py the transactions that are not stable yet.

Five batches per producer are remembered. As in Kafka, the number of producers is not limited: expire()
forgets those that have been inactive for long, unless they have an open transaction.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from mypy_extensions import i64

from barnabas.records.header import CONTROL_BIT, NO_SEQUENCE, TRANSACTIONAL_BIT
from barnabas.storage.intake import Batch
from barnabas.storage.producers import rules
from barnabas.storage.producers.open_txns import CompletedTxn, OpenTxns
from barnabas.storage.producers.state import (
    SEQUENCE_MASK,
    Duplicate,
    LastRecord,
    ProducerEntry,
    ProducerState,
    Verification,
    restore,
)

__all__ = ["CompletedTxn", "Duplicate", "LastRecord", "Origin", "ProducerEntry", "Producers", "Verification"]


class Origin(IntEnum):
    """The source of an append, which determines the checks."""

    CLIENT = 0
    COORDINATOR = 1
    REPLICATION = 2
    RAFT_LEADER = 3


_CLIENT: Final = Origin.CLIENT
_REPLICATION: Final = Origin.REPLICATION
_CONTROL: Final[i64] = CONTROL_BIT
_TRANSACTIONAL: Final[i64] = TRANSACTIONAL_BIT
_NO_SEQUENCE: Final[i64] = NO_SEQUENCE
_NONE: Final[i64] = -1

# The state of every producer that is not in the table; never changed.
_UNKNOWN: Final = ProducerState()


class Producers:
    """All producers of one log, and its transactions. Tables are created lazily: most logs need none."""

    __slots__ = ("_table", "_txns", "_verifying", "end_offset")

    def __init__(self) -> None:
        # The state covers the log up to this offset.
        self.end_offset: i64 = 0
        self._table: dict[int, ProducerState] | None = None
        self._txns: OpenTxns | None = None
        self._verifying: dict[int, Verification] | None = None

    def __len__(self) -> int:
        return 0 if self._table is None else len(self._table)

    @property
    def is_empty(self) -> bool:
        """No producer is known, and no completed transaction waits for the high watermark."""
        return self._table is None and (self._txns is None or self._txns.none_completed())

    def check(
        self,
        batch: Batch,
        origin: Origin,
        verification: Verification | None = None,
        must_verify: bool = False,
    ) -> Duplicate | None:
        """Check a batch before the append. Return a Duplicate if it was appended before.

        Raises ProducerRefused. Control batches are for check_marker(). With `must_verify`, a transaction's
        first batch needs the result of start_verification().
        """
        producer_id: int = batch.producer_id
        attributes = batch.attributes
        epoch = batch.producer_epoch
        sequence = batch.base_sequence
        if producer_id < 0 or attributes & _CONTROL:
            return None
        producer = self._find(producer_id)
        transactional = attributes & _TRANSACTIONAL != 0
        # The leader has checked replicated batches.
        if origin is not _REPLICATION:
            if origin is _CLIENT and epoch == producer.epoch:
                duplicate = producer.find(sequence, (sequence + batch.last_delta) & SEQUENCE_MASK)
                if duplicate is not None:
                    return duplicate
            rules.check_epoch(producer_id, producer, epoch)
            waiting = self._verification(producer_id)
            if must_verify and transactional:
                rules.check_verified(producer_id, producer, epoch, waiting, verification)
            if origin is _CLIENT:
                rules.check_sequence(producer_id, producer, epoch, sequence, waiting)
        rules.check_transactional(producer_id, producer, transactional)
        return None

    def appended(self, batch: Batch, base_offset: i64) -> None:
        """Update the state for a batch at `base_offset`.

        The batch may still have the producer's own base offset. A control batch only moves the end offset:
        those of the quorum have no producer, markers are for marker_appended(), and a marker that compaction
        has emptied has no effect any more.
        """
        producer_id: int = batch.producer_id
        attributes = batch.attributes
        sequence = batch.base_sequence
        delta = batch.last_delta
        last_offset = base_offset + delta
        assert last_offset >= self.end_offset, f"batch up to {last_offset}, state up to {self.end_offset}"
        self.end_offset = last_offset + 1
        if producer_id < 0 or attributes & _CONTROL:
            return
        producer = self._find_or_add(producer_id)
        # Coordinators write without sequences.
        if sequence != _NO_SEQUENCE:
            sequence = (sequence + delta) & SEQUENCE_MASK
        producer.set_epoch(batch.producer_epoch)
        producer.add(sequence, last_offset, delta, batch.max_timestamp)
        if attributes & _TRANSACTIONAL:
            if producer.txn_first_offset < 0:
                producer.txn_first_offset = base_offset
                self._transactions().begin(producer_id, base_offset)
            self._verification_is_over(producer_id)

    def check_marker(
        self,
        producer_id: int,
        producer_epoch: i64,
        coordinator_epoch: i64,
        origin: Origin,
        transaction_version: i64 = 0,
    ) -> None:
        """Check a marker before the append. The version is that of WriteTxnMarkers."""
        if origin is not _REPLICATION:
            rules.check_marker(
                producer_id, self._find(producer_id), producer_epoch, coordinator_epoch, transaction_version
            )

    def marker_appended(
        self,
        *,
        producer_id: int,
        producer_epoch: i64,
        coordinator_epoch: i64,
        aborted: bool,
        offset: i64,
        timestamp: i64,
    ) -> CompletedTxn | None:
        """Update the state for a marker at `offset`. None if its transaction has no records here."""
        assert offset >= self.end_offset, f"marker at {offset}, state up to {self.end_offset}"
        self.end_offset = offset + 1
        producer = self._find_or_add(producer_id)
        producer.set_epoch(producer_epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.timestamp = timestamp
        self._verification_is_over(producer_id)
        if producer.txn_first_offset < 0:
            return None
        completed = CompletedTxn(producer_id, producer.txn_first_offset, offset, aborted)
        producer.txn_first_offset = _NONE
        self._transactions().complete(completed)
        return completed

    def last_stable_after(self, completed: CompletedTxn) -> int:
        """The last stable offset after this transaction, for its entry in the aborted index.

        Call it before the next append.
        """
        return self._transactions().last_stable_after(completed)

    def first_open_offset(self) -> int | None:
        """The first unstable offset: the start of the earliest transaction that is open, or whose marker is
        not below the high watermark yet."""
        return None if self._txns is None else self._txns.first_offset()

    def high_watermark_moved(self, to: i64) -> None:
        """Mark transactions whose markers are below `to` as stable."""
        if self._txns is not None:
            self._txns.stable_below(to)

    def has_open_transaction(self, producer_id: int, epoch: i64) -> bool:
        producer = self._find(producer_id)
        return producer.txn_first_offset >= 0 and producer.epoch == epoch

    def start_verification(
        self, producer_id: int, *, sequence: i64, epoch: i64, now_ms: i64, epoch_bump: bool
    ) -> Verification | None:
        """The verification that check() requires for a transaction's first batch.

        The caller first asks the coordinator. None if the transaction is open already. `epoch_bump` means
        that the producer gets an epoch per transaction.
        """
        rules.check_epoch(producer_id, self._find(producer_id), epoch)
        if self.has_open_transaction(producer_id, epoch):
            return None
        if self._verifying is None:
            self._verifying = {}
        waiting = self._verifying.get(producer_id)
        if waiting is None:
            waiting = Verification(sequence, epoch, now_ms, epoch_bump)
            self._verifying[producer_id] = waiting
        waiting.again(sequence, epoch)
        return waiting

    def expire(self, now_ms: i64, *, after_ms: i64) -> int:
        """Forget producers that have written nothing for `after_ms`; return how many."""
        # No difference of timestamps: they may be any number, and it could overflow.
        before = now_ms - after_ms
        if self._verifying is not None:
            waiting = self._verifying
            for producer_id in [key for key, one in waiting.items() if one.started_ms <= before]:
                del waiting[producer_id]
        table = self._table
        if table is None:
            return 0
        gone = [key for key, one in table.items() if one.txn_first_offset < 0 and one.timestamp <= before]
        for producer_id in gone:
            del table[producer_id]
        if not table:
            self._table = None
        return len(gone)

    def entries(self) -> list[ProducerEntry]:
        """Every producer, in order of arrival."""
        return [] if self._table is None else [one.entry(key) for key, one in self._table.items()]

    def last_written(self) -> dict[int, LastRecord]:
        """The batches that compaction must keep, even without records, to preserve sequences."""
        return {entry.producer_id: entry.last_record() for entry in self.entries()}

    def load(self, entries: Sequence[ProducerEntry], end_offset: i64) -> None:
        """Load a snapshot at `end_offset`. Producer ids and open offsets in it must be unique."""
        self.start_at(end_offset)
        if entries:
            self._table = {entry.producer_id: restore(entry) for entry in entries}
            self._transactions().load(
                [(e.txn_first_offset, e.producer_id) for e in entries if e.txn_first_offset >= 0]
            )

    def drop_all(self) -> None:
        """Forget all producers; the end offset stays."""
        self._table = None
        self._txns = None
        self._verifying = None

    def start_at(self, offset: i64) -> None:
        """Forget all producers and continue at `offset`, where an emptied log restarts."""
        self.drop_all()
        self.end_offset = offset

    def _find(self, producer_id: int) -> ProducerState:
        return _UNKNOWN if self._table is None else self._table.get(producer_id, _UNKNOWN)

    def _find_or_add(self, producer_id: int) -> ProducerState:
        if self._table is None:
            self._table = {}
        producer = self._table.get(producer_id)
        if producer is None:
            producer = ProducerState()
            self._table[producer_id] = producer
        return producer

    def _transactions(self) -> OpenTxns:
        if self._txns is None:
            self._txns = OpenTxns()
        return self._txns

    def _verification(self, producer_id: int) -> Verification | None:
        return None if self._verifying is None else self._verifying.get(producer_id)

    def _verification_is_over(self, producer_id: int) -> None:
        if self._verifying is not None:
            self._verifying.pop(producer_id, None)
