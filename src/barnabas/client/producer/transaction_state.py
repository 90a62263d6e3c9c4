"""The state machine of a producer's transactions. Pure.

    NEW -> READY -> OPEN -> FLUSHING -> COMMITTING -> READY
                     |  MUST_ABORT  ->  ABORTING   -> READY, or NEW if another epoch is needed first
    any of them -> BROKEN, when nothing can go on

With two-phase commit (KIP-939), FLUSHING can lead to PREPARED, and so can NEW if a prepared transaction is
kept. From PREPARED only the user goes on to COMMITTING or ABORTING.

FLUSHING can also lead to HANDED_OVER: another process ends the transaction, and this producer is done. From
NEW a transaction of another producer can be joined; it is then OPEN here, too.

In version 2 of transactions (KIP-890) Produce adds its partition implicitly, and each transaction has its own
epoch, from the response to the last EndTxn. In version 1 partitions and groups are added first.
"""

from enum import Enum
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction import NOTHING_PREPARED, OpenTransaction, PreparedTransaction
from barnabas.client.producer.transaction_errors import (
    TRANSACTION_ENDED,
    MustAbort,
    NoTransaction,
    ProducerFenced,
    TransactionError,
    TransactionOpen,
    TransactionTimedOut,
)
from barnabas.protocol.api_keys import ApiKey

# Last versions of these requests that use version 1 of transactions; later ones use version 2.
V1_UNTIL: Final = {ApiKey.PRODUCE: 11, ApiKey.END_TXN: 4, ApiKey.TXN_OFFSET_COMMIT: 4}


class Phase(Enum):
    NEW = "the producer has no producer id yet"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    FLUSHING = "the transaction is being committed"
    PREPARED = "the transaction is prepared and must be completed"
    HANDED_OVER = "the transaction was handed over: close this producer"
    MUST_ABORT = "the transaction can only be aborted"
    COMMITTING = "the outcome of the last commit is not known yet"
    ABORTING = "the transaction is being aborted"
    BROKEN = "this producer has failed: close it"


_UNENDED = (Phase.OPEN, Phase.FLUSHING, Phase.MUST_ABORT)


class TransactionState:
    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        self.id = transactional_id
        self.timeout_ms = timeout_ms
        self.phase = Phase.NEW
        self.identity: Identity | None = None
        self.is_v2 = False
        # The open transaction is the first one under this producer id and epoch.
        self.is_fresh = False
        self._is_used = True
        # Counts transactions: a call that waited in one must not continue in the next.
        self.number = 0
        self.partitions: set[TopicPartition] = set()
        self.groups: set[str] = set()
        # The coordinator may know this transaction, so EndTxn is required.
        self.may_exist = False
        # The coordinator has confirmed that the transaction exists.
        self.exists = False
        # The sequences in the logs of this epoch are unknown, so the next transaction needs a new epoch.
        self.needs_epoch = False
        # The coordinator has forgotten this producer: there is nothing to abort.
        self.is_forgotten = False
        # An EndTxn request had no response.
        self.in_doubt = False
        # Set until the prepared transaction has ended.
        self.prepared = NOTHING_PREPARED
        self.abort_reason: MustAbort | None = None
        self.fatal_error: TransactionError | None = None
        self._opened_ms = 0

    # Checks

    @property
    def is_unended(self) -> bool:
        """Whether it is open and not prepared or handed over, so that it may be aborted implicitly."""
        return self.phase in _UNENDED

    @property
    def may_send(self) -> bool:
        """Whether batches may go to brokers."""
        return self.phase in (Phase.OPEN, Phase.FLUSHING)

    @property
    def may_be_committed(self) -> bool:
        """Whether a commit request had no response."""
        return self.in_doubt and self.phase is Phase.COMMITTING

    def check(self, what: str) -> None:
        """Raise unless records and offsets can be added now."""
        self.check_usable()
        if self.phase is Phase.MUST_ABORT:
            assert self.abort_reason is not None, "MUST_ABORT has a reason"
            raise self.abort_reason.with_traceback(None)
        if self.phase is not Phase.OPEN:
            raise NoTransaction(what, self.phase.value)

    def check_usable(self) -> None:
        if self.fatal_error is not None:
            raise self.fatal_error.with_traceback(None)

    # Transitions

    def initialized(self, identity: Identity) -> None:
        assert self.phase is Phase.NEW, self.phase
        self._take(identity)
        self.needs_epoch = self.is_forgotten = False
        self.phase = Phase.READY

    def _take(self, identity: Identity) -> None:
        self.identity = identity
        self._is_used = False

    def adopt_prepared(self, prepared: PreparedTransaction, now_ms: int) -> None:
        """Take over a transaction that another producer of this id prepared."""
        # Only version 2 of transactions has prepared transactions.
        self.begin(now_ms, is_v2=True)
        self.may_exist = self.exists = True
        self.prepared = prepared
        self.phase = Phase.PREPARED

    def begin(self, now_ms: int, *, is_v2: bool) -> None:
        self.check_usable()
        if self.phase is not Phase.READY:
            raise TransactionOpen(self.id)
        self.phase = Phase.OPEN
        self.is_v2 = is_v2
        self.is_fresh, self._is_used = not self._is_used, True
        self.number += 1
        self._opened_ms = now_ms
        self.may_exist = self.exists = self.in_doubt = False
        self.partitions, self.groups = set(), set()

    def begin_anew(self) -> None:
        """Discard an empty transaction so that the next one begins under a new epoch."""
        assert self.phase is Phase.OPEN, self.phase
        assert not self.may_exist, "the transaction is not empty"
        self.phase = Phase.NEW

    def join(self, identity: Identity, now_ms: int, *, is_v2: bool) -> None:
        """Write into the open transaction of another producer."""
        self.initialized(identity)
        self.begin(now_ms, is_v2=is_v2)
        # Other producers may write into it.
        self.may_exist = True
        # Other producers use sequences of this epoch. In version 2 EndTxn returns a new epoch.
        self.needs_epoch = True

    def hand_over(self) -> OpenTransaction:
        assert self.phase is Phase.FLUSHING, self.phase
        assert self.identity is not None, "a flushing transaction has a producer id"
        self.phase = Phase.HANDED_OVER
        return OpenTransaction(self.id, *self.identity)

    def flush(self, what: str = "commit") -> None:
        self.check(what)
        self.phase = Phase.FLUSHING

    def unflush(self) -> None:
        """Reopen a transaction whose commit was cancelled before EndTxn was sent."""
        if self.phase is Phase.FLUSHING:
            self.phase = Phase.OPEN

    def prepare(self) -> PreparedTransaction:
        assert self.phase is Phase.FLUSHING, self.phase
        assert self.identity is not None, "a flushing transaction has a producer id"
        # An empty transaction has no epoch of its own: the next one uses the same, and a stored identity
        # must not match it.
        self.prepared = PreparedTransaction(*self.identity) if self.may_exist else NOTHING_PREPARED
        self.phase = Phase.PREPARED
        return self.prepared

    def decides_commit(self, stored: PreparedTransaction) -> bool:
        """Whether the prepared transaction equals `stored`. The same call may be repeated."""
        self.check_usable()
        commit = stored == self.prepared
        begun = Phase.COMMITTING if commit else Phase.ABORTING
        if self.phase is not Phase.PREPARED and not (self.prepared and self.phase is begun):
            raise NoTransaction("complete", self.phase.value)
        return commit

    def commit(self) -> None:
        assert self.phase in (Phase.FLUSHING, Phase.PREPARED), self.phase
        self.phase = Phase.COMMITTING

    def abort(self) -> None:
        self.check_usable()
        if self.phase is Phase.ABORTING:
            return
        if not self.is_unended and self.phase is not Phase.PREPARED:
            raise NoTransaction("abort", self.phase.value)
        self.phase = Phase.ABORTING

    def ended(self, identity: Identity | None = None) -> None:
        """Note the end of the transaction, and the new epoch if the response has one."""
        assert self.phase in (Phase.COMMITTING, Phase.ABORTING), self.phase
        if identity is not None:
            self._take(identity)
            self.needs_epoch = False
        self.abort_reason = None
        self.prepared = NOTHING_PREPARED
        self.phase = Phase.NEW if self.needs_epoch or self.is_forgotten else Phase.READY

    # Errors

    def must_abort(
        self, because: BaseException, now_ms: int, *, tp: TopicPartition | None = None, records: int = 0
    ) -> MustAbort:
        """Require an abort. Only the first reason is kept: later ones follow from it."""
        if self.abort_reason is None:
            open_ms = now_ms - self._opened_ms
            if open_ms >= self.timeout_ms and getattr(because, "code", None) in TRANSACTION_ENDED:
                self.abort_reason = TransactionTimedOut(
                    self.id, because, open_ms=open_ms, timeout_ms=self.timeout_ms, tp=tp, records=records
                )
            else:
                self.abort_reason = MustAbort(self.id, because, tp=tp, records=records)
        if self.phase in (Phase.OPEN, Phase.FLUSHING, Phase.COMMITTING):
            self.phase = Phase.MUST_ABORT
        return self.abort_reason

    def fence(self, now_ms: int) -> ProducerFenced:
        error = ProducerFenced(
            self.id,
            open_ms=now_ms - self._opened_ms if self.number else 0,
            timeout_ms=self.timeout_ms,
            in_doubt=self.may_be_committed,
        )
        self.fail(error)
        return error

    def fail(self, error: TransactionError) -> None:
        self.phase = Phase.BROKEN
        if self.fatal_error is None:
            self.fatal_error = error
