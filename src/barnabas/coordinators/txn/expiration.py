"""Timeouts: transactions that exceed their timeout are aborted, unused transactional ids expire.

Both are checked at intervals. Each check handles a bounded number; if more are left, the next check runs at
once.
"""

from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.txn.ending import abort
from barnabas.coordinators.txn.record import TxnRecord, record_version, size_bound
from barnabas.coordinators.txn.state import IDLE
from barnabas.coordinators.txn.table import TxnTable

TIMEOUTS: Final[TimerKey] = ("timeouts", "", "")
EXPIRATION: Final[TimerKey] = ("expiration", "", "")
EXPIRED_AT_ONCE_MAX: Final = 10_000


def start_timers(table: TxnTable, now: Now) -> None:
    table.timers.set(TIMEOUTS, now.tick_ms + table.settings.timeouts_interval_ms)
    table.timers.set(EXPIRATION, now.tick_ms + table.settings.expiration_interval_ms)


def abort_timed_out(table: TxnTable, now: Now) -> Outcome:
    """The records of an outcome are one batch of the log, so only as many transactions are aborted as fit."""
    outcome = Outcome()
    left_bytes = table.batch_bytes_max()
    next_ms = now.tick_ms + table.settings.timeouts_interval_ms
    for transactional_id in table.ongoing:
        txn = table.txns[transactional_id]
        if not txn.is_overdue(now.ms):
            continue
        # A transaction without partitions has two records: prepared and complete.
        left_bytes -= 2 * size_bound(transactional_id, txn)
        if left_bytes < 0 and outcome.records:
            next_ms = now.tick_ms
            break
        outcome.add(abort(table, transactional_id, txn, None, now))
    table.timers.set(TIMEOUTS, next_ms)
    return outcome


def expire_unused_ids(table: TxnTable, now: Now) -> Outcome:
    before_ms = now.ms - table.settings.id_expiration_ms
    version = record_version(table.settings.transaction_version)
    outcome = Outcome()
    next_ms = now.tick_ms + table.settings.expiration_interval_ms
    for transactional_id, txn in table.txns.items():
        if txn.last_update_ms <= before_ms and txn.state in IDLE:
            if len(outcome.records) == EXPIRED_AT_ONCE_MAX:
                next_ms = now.tick_ms
                break
            outcome.write(TxnRecord(transactional_id, None, version))
    table.timers.set(EXPIRATION, next_ms)
    return outcome
