"""One partition of __transaction_state as a shard: its records, its loading and its timers.

Requests are decided by initializing.py, adding.py and ending.py with the shard's table. The shell applies the
records of an outcome before it requests the next decision, so each decision sees the state left by the
previous one.
"""

import logging
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.coordinators.decision.outcome import Now, Outcome, Record
from barnabas.coordinators.decision.timers import TimerKey, Timers
from barnabas.coordinators.txn.expiration import TIMEOUTS, abort_timed_out, expire_unused_ids, start_timers
from barnabas.coordinators.txn.record import TxnRecord, decode_record
from barnabas.coordinators.txn.table import TxnTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.framing import UnknownRecord
from barnabas.records.decode import decode_batch
from barnabas.records.header import read_header

logger = logging.getLogger(__name__)


class TxnShard:
    """Implements Shard of coordinators/runtime/ports.py."""

    def __init__(self, table: TxnTable) -> None:
        self.table: Final = table

    @property
    def timers(self) -> Timers:
        return self.table.timers

    def __len__(self) -> int:
        """The number of transactional ids."""
        return len(self.table.txns)

    # Time

    def expire(self, key: TimerKey, now: Now) -> Outcome:
        if key == TIMEOUTS:
            return abort_timed_out(self.table, now)
        return expire_unused_ids(self.table, now)

    def abandon(self, code: ErrorCode) -> Outcome:
        """The shard is closed. It holds no pending requests."""
        return Outcome()

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
