"""Timeouts: transactions that exceed their timeout are aborted, unused transactional ids expire.

Both are checked at intervals. Each check handles a bounded number; if more are left, the next check runs at
once.
"""

from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.txn.ending import abort
from barnabas.coordinators.txn.ground import TxnGround
from barnabas.coordinators.txn.record import TxnRecord, record_version, size_bound
from barnabas.coordinators.txn.state import IDLE

TIMEOUTS: Final[TimerKey] = ("timeouts", "", "")
EXPIRATION: Final[TimerKey] = ("expiration", "", "")
FORGOTTEN_AT_ONCE_MAX: Final = 10_000


def start_aging(ground: TxnGround, now: Now) -> None:
    ground.timers.set(TIMEOUTS, now.tick_ms + ground.settings.timeouts_interval_ms)
    ground.timers.set(EXPIRATION, now.tick_ms + ground.settings.expiration_interval_ms)


def abort_overdue(ground: TxnGround, now: Now) -> Outcome:
    """The records of an outcome are one batch of the log, so only as many transactions are aborted as fit."""
    outcome = Outcome()
    left_bytes = ground.batch_bytes_max()
    next_ms = now.tick_ms + ground.settings.timeouts_interval_ms
    for transactional_id in ground.ongoing:
        txn = ground.txns[transactional_id]
        if not txn.is_overdue(now.ms):
            continue
        # A transaction without partitions has two records: prepared and complete.
        left_bytes -= 2 * size_bound(transactional_id, txn)
        if left_bytes < 0 and outcome.records:
            next_ms = now.tick_ms
            break
        outcome.add(abort(ground, transactional_id, txn, None, now))
    ground.timers.set(TIMEOUTS, next_ms)
    return outcome


def forget_unused(ground: TxnGround, now: Now) -> Outcome:
    before_ms = now.ms - ground.settings.id_expiration_ms
    version = record_version(ground.settings.transaction_version)
    outcome = Outcome()
    next_ms = now.tick_ms + ground.settings.expiration_interval_ms
    for transactional_id, txn in ground.txns.items():
        if txn.last_update_ms <= before_ms and txn.state in IDLE:
            if len(outcome.records) == FORGOTTEN_AT_ONCE_MAX:
                next_ms = now.tick_ms
                break
            outcome.write(TxnRecord(transactional_id, None, version))
    ground.timers.set(EXPIRATION, next_ms)
    return outcome
