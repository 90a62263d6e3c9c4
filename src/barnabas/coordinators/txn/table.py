"""The transactional ids of one shard, and the markers that their ended transactions still need.

Decisions read this table and write records with it. Only put(), which applies a record, changes the ids.
"""

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.txn.record import TxnRecord, fit, record_version
from barnabas.coordinators.txn.state import Txn, TxnState, completed


@value(kw_only=True)
class TxnSettings:
    """Replaced as a whole when a setting changes. The defaults are Kafka's."""

    # transaction.max.timeout.ms
    timeout_max_ms: int = 900_000
    # transactional.id.expiration.ms
    id_expiration_ms: int = 604_800_000
    # transaction.abort.timed.out.transaction.cleanup.interval.ms
    timeouts_interval_ms: int = 10_000
    # transaction.remove.expired.transaction.cleanup.interval.ms
    expiration_interval_ms: int = 3_600_000
    # transaction.two.phase.commit.enable
    two_phase_commit: bool = False
    # The finalized level of the feature transaction.version; 2 is transactions version 2 (KIP-890).
    transaction_version: int = 2


class MarkersToWrite(NamedTuple):
    """Sent to `table.markers` when the decision is committed, and again after a load."""

    transactional_id: str
    producer_id: int
    # The epoch of the markers: with transactions version 2 it is one above that of the records.
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int


class PendingMarkers:
    """A prepared transaction and its partitions without a marker.

    Only in memory: after a load all markers are written again.
    """

    __slots__ = ("ended", "missing")

    def __init__(self, ended: MarkersToWrite) -> None:
        self.ended: Final = ended
        self.missing: Final = set(ended.partitions)


class TxnTable:
    """The shell replaces `settings`. `markers` receives markers to write; `epoch` is our leader epoch.

    `batch_bytes_max` returns the current maximum size of a batch.
    """

    def __init__(
        self, settings: TxnSettings, markers: ReplyTo, epoch: int, batch_bytes_max: Callable[[], int]
    ) -> None:
        self.settings = settings
        self.markers: Final = markers
        self.epoch: Final = epoch
        self.batch_bytes_max: Final = batch_bytes_max
        self.timers: Final = Timers()
        # Only put() changes these two. Ongoing transactions are in the order in which they started.
        self.txns: Final[dict[str, Txn]] = {}
        self.ongoing: Final[dict[str, None]] = {}
        # Prepared transactions whose markers are being written, by transactional id.
        self.pending_markers: Final[dict[str, PendingMarkers]] = {}

    # Records

    def write(self, outcome: Outcome, transactional_id: str, txn: Txn) -> None:
        version = record_version(self.settings.transaction_version)
        outcome.write(TxnRecord(transactional_id, fit(txn, version), version))

    def put(self, transactional_id: str, txn: Txn | None) -> None:
        """Apply a record that was written or loaded."""
        if txn is None or not txn.is_prepared:
            self.pending_markers.pop(transactional_id, None)
        if txn is not None and txn.state is TxnState.ONGOING:
            self.ongoing[transactional_id] = None
        else:
            self.ongoing.pop(transactional_id, None)
        if txn is None:
            self.txns.pop(transactional_id, None)
        else:
            self.txns[transactional_id] = txn

    # Ended transactions

    def write_end(self, outcome: Outcome, transactional_id: str, txn: Txn, now: Now) -> None:
        """Write the prepared state and request the markers. Without partitions the transaction is complete at
        once."""
        self.write(outcome, transactional_id, txn)
        if txn.partitions:
            self.request_markers(outcome, transactional_id, txn)
        else:
            self.write(outcome, transactional_id, completed(txn, now.ms))

    def request_markers(self, outcome: Outcome, transactional_id: str, txn: Txn) -> None:
        assert txn.is_prepared, f"no markers in state {txn.state.title}"
        ended = MarkersToWrite(
            transactional_id=transactional_id,
            producer_id=txn.producer_id,
            producer_epoch=txn.producer_epoch,
            commit=txn.state is TxnState.PREPARE_COMMIT,
            coordinator_epoch=self.epoch,
            partitions=txn.partitions,
            transaction_version=txn.client_version,
        )
        self.pending_markers[transactional_id] = PendingMarkers(ended)
        outcome.answer(self.markers, ended)

    def is_pending(self, ended: MarkersToWrite) -> bool:
        """Whether these markers are still to be written: the same request, since the last load.

        A late marker could end the next transaction of an old client. Compared by identity: old clients end
        many transactions with one epoch, so another request may be equal.
        """
        pending = self.pending_markers.get(ended.transactional_id)
        return pending is not None and pending.ended is ended

    def markers_written(
        self, ended: MarkersToWrite, partitions: Collection[TopicPartition], now: Now
    ) -> Outcome:
        """The markers of these partitions were written, or the partitions no longer exist.

        With the last one the transaction is complete. A late report for a transaction that is already
        complete changes nothing.
        """
        outcome = Outcome()
        if self.is_pending(ended):
            missing = self.pending_markers[ended.transactional_id].missing
            missing.difference_update(partitions)
            if not missing:
                txn = self.txns[ended.transactional_id]
                self.write(outcome, ended.transactional_id, completed(txn, now.ms))
        return outcome
