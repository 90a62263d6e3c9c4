"""Errors of transactions, and the consequence of each error code of the coordinator. Pure.

Each error has a `remedy` that says how to continue:

ABORT        the transaction can no longer be committed: abort it and begin again
BEGIN_AGAIN  the transaction was aborted, and nothing of it is visible: begin again
ASK_AGAIN    the outcome is unknown: repeat the same call, which is safe
GIVE_UP      the producer can no longer be used: close it

The categories follow KIP-1050. The producer itself retries transient errors.

A Verdict is the consequence of an error code for the transaction. Retriable codes are not handled here: the
request is repeated until the deadline. A code in no set means that the transaction must be aborted; if the
producer is unusable, the abort fails. For EndTxn such a code means that the outcome is unknown.
"""

from enum import Enum
from typing import ClassVar, Final

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import ClientError
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.protocol.error_codes import ErrorCode

_DOUBT: Final = "; the outcome of the last transaction is unknown"


FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FORGOTTEN: Final = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID})
# A repeated commit that had succeeded returns NONE. INVALID_TXN_STATE: aborted after its timeout.
_NOT_COMMITTED: Final = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE})
_BROKEN: Final = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
# The group does not know this member or generation: another member may own its partitions.
NOT_THE_MEMBER: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
# Codes for a producer whose transaction was ended by the coordinator or another process.
TRANSACTION_ENDED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


class Remedy(Enum):
    ABORT = "abort the transaction"
    BEGIN_AGAIN = "begin again"
    ASK_AGAIN = "ask again"
    GIVE_UP = "close this producer"


class TransactionError(ClientError):
    """Base class of errors about the transactions of one transactional.id."""

    remedy: ClassVar[Remedy]

    def __init__(self, transactional_id: str, what: str) -> None:
        super().__init__(f"transactional.id {transactional_id}: {what}")
        self.transactional_id = transactional_id


class NotTransactional(ClientError):
    """A transaction call on a producer without transactional.id."""

    def __init__(self) -> None:
        super().__init__("this producer is not transactional: set transactional.id")


class TwoPhaseCommitOff(ClientError):
    """Preparing transactions needs transaction.two.phase.commit.enable."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not possible: set transaction.two.phase.commit.enable")
        self.what = what


class NoTransaction(ClientError):
    """A transactional producer sends, commits and aborts only within a transaction."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} is not possible: {why}")
        self.what = what
        self.why = why


class TransactionOpen(ClientError):
    """A producer has one transaction at a time."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f"transactional.id {transactional_id}: the previous transaction has not ended yet")
        self.transactional_id = transactional_id


class MustAbort(TransactionError):
    """The transaction can only be aborted. `because` is the first error.

    If a batch failed, `tp` is its partition and `records` its record count.
    """

    remedy = Remedy.ABORT

    def __init__(
        self,
        transactional_id: str,
        because: BaseException,
        *,
        tp: TopicPartition | None = None,
        records: int = 0,
    ) -> None:
        which = "" if tp is None else f"{records} records for {tp} were not written: "
        super().__init__(transactional_id, f"the transaction can only be aborted: {which}{because}")
        self.because = because
        self.tp = tp
        self.records = records
        self.__cause__ = because


class TransactionTimedOut(MustAbort):
    """The transaction exceeded transaction.timeout.ms, and the coordinator aborted it."""

    def __init__(
        self,
        transactional_id: str,
        because: BaseException,
        *,
        open_ms: int,
        timeout_ms: int,
        tp: TopicPartition | None = None,
        records: int = 0,
    ) -> None:
        super().__init__(transactional_id, because, tp=tp, records=records)
        self.args = (f"{self.args[0]}; open for {open_ms} ms, with transaction.timeout.ms={timeout_ms}",)
        self.open_ms = open_ms
        self.timeout_ms = timeout_ms


class TransactionAborted(TransactionError):
    """The transaction was aborted. `because` is the reason, None if the user requested it."""

    remedy = Remedy.BEGIN_AGAIN

    def __init__(self, transactional_id: str, because: BaseException | None = None) -> None:
        super().__init__(
            transactional_id, "the transaction was aborted" + ("" if because is None else f": {because}")
        )
        self.because = because
        self.__cause__ = because


class OutcomeUnknown(TransactionError):
    """EndTxn had no response in time, so the outcome is unknown: repeat the call."""

    remedy = Remedy.ASK_AGAIN

    def __init__(self, transactional_id: str, *, commit: bool, timeout_ms: float, last: Exception) -> None:
        asked = "commit" if commit else "abort"
        super().__init__(
            transactional_id,
            f"{asked} not confirmed within {timeout_ms:.0f} ms, outcome unknown: {asked} again; {last}",
        )
        self.commit = commit
        self.timeout_ms = timeout_ms
        self.last = last


class ProducerFenced(TransactionError):
    """A newer producer uses the same transactional.id, or the transaction exceeded its timeout.

    `timeout_ms` is 0 if unknown. If `in_doubt`, an earlier commit request had no response and may have
    succeeded.
    """

    remedy = Remedy.GIVE_UP

    def __init__(
        self, transactional_id: str, *, open_ms: int, timeout_ms: int, in_doubt: bool = False
    ) -> None:
        late = 0 < timeout_ms <= open_ms
        super().__init__(
            transactional_id,
            "another producer uses this id now"
            + (
                f", or the transaction was aborted after {open_ms} ms (timeout {timeout_ms} ms)"
                if late
                else ""
            )
            + (_DOUBT if in_doubt else ""),
        )
        self.open_ms = open_ms
        self.timeout_ms = timeout_ms
        self.in_doubt = in_doubt


class FencedBeforeItsEnd(ProducerFenced):
    """A transaction that was handed over could not be ended: its transactional.id has a newer epoch.

    A newer producer uses the id, and the transaction is aborted. In version 1 of transactions the coordinator
    returns the same code for a transaction that exceeded its timeout.
    """

    def __init__(self, opened: OpenTransaction, *, is_v2: bool, in_doubt: bool) -> None:
        super().__init__(opened.transactional_id, open_ms=0, timeout_ms=0, in_doubt=in_doubt)
        late = "" if is_v2 else ", or the transaction exceeded its transaction.timeout.ms"
        doubt = "; an earlier commit request was not answered and may have succeeded" if in_doubt else ""
        self.args = (f"cannot end the {opened}: another producer uses this id now{late}{doubt}",)
        self.opened = opened


class TransactionNotOpen(TransactionError):
    """A transaction that was handed over is not open, so it cannot be committed or aborted.

    If `commit`, nothing of it is visible to read_committed consumers.
    """

    remedy = Remedy.BEGIN_AGAIN

    def __init__(self, opened: OpenTransaction, *, commit: bool, because: ClientError) -> None:
        asked = "committed" if commit else "aborted"
        ended = "aborted, by timeout or by another client" if commit else "committed by another client"
        super().__init__(opened.transactional_id, because.args[0])
        self.args = (f"the {opened} cannot be {asked}: it is empty, or was {ended}: {because}",)
        self.opened = opened
        self.commit = commit
        self.because = because
        self.__cause__ = because


class TransactionsFailed(TransactionError):
    """The coordinator rejects this producer for good; `because` is its error.

    If `in_doubt`, an earlier commit request had no response and may have succeeded.
    """

    remedy = Remedy.GIVE_UP

    def __init__(self, transactional_id: str, because: ClientError, *, in_doubt: bool = False) -> None:
        super().__init__(transactional_id, f"{because}{_DOUBT if in_doubt else ''}")
        self.because = because
        self.in_doubt = in_doubt
        self.__cause__ = because


class SequenceLost(ClientError):
    """A broker is missing earlier batches, so the transaction would be incomplete."""

    def __init__(self) -> None:
        super().__init__(
            "a broker is missing earlier records of this producer, or does not know its producer id"
        )


class OffsetsInDoubt(ClientError):
    """send_offsets() was interrupted: the offsets may be in the transaction."""

    def __init__(self, group_id: str) -> None:
        super().__init__(f"it is unknown whether the transaction contains the offsets of group {group_id}")
        self.group_id = group_id


class Verdict(Enum):
    ABORT = "the transaction can only be aborted"
    FORGOTTEN = "the coordinator no longer knows the producer: there is nothing to abort"
    FENCED = "another producer uses the id"
    BROKEN = "the producer is unusable"
    # Only for EndTxn.
    DONE = "there is nothing to abort"
    UNKNOWN = "the outcome is unknown"


def verdict_within(code: ErrorCode, *, is_v2: bool) -> Verdict:
    """For requests that add to a transaction, and for Produce."""
    if code in FENCED:
        # A transaction that timed out has the same code. In version 2 EndTxn tells the two apart, and the
        # producer can continue; in version 1 it cannot.
        return Verdict.ABORT if is_v2 else Verdict.FENCED
    if code in _FORGOTTEN:
        return Verdict.FORGOTTEN
    if code in _BROKEN:
        return Verdict.BROKEN
    return Verdict.ABORT


def verdict_without_coordinator(code: ErrorCode) -> Verdict:
    """For EndTxn if FindCoordinator failed."""
    return Verdict.BROKEN if code in _BROKEN else Verdict.UNKNOWN


def verdict_of_end(code: ErrorCode, *, commit: bool, is_sure: bool) -> Verdict:
    """For EndTxn. `is_sure`: the coordinator has confirmed that the transaction exists."""
    if code in FENCED:
        return Verdict.FENCED
    if code in _FORGOTTEN:
        return Verdict.FORGOTTEN
    if code is ErrorCode.INVALID_TXN_STATE and not commit and not is_sure:
        # The request that would have begun the transaction never reached the coordinator.
        return Verdict.DONE
    if commit and code in _NOT_COMMITTED:
        return Verdict.ABORT
    if code in _BROKEN or code is ErrorCode.INVALID_TXN_STATE:
        return Verdict.BROKEN
    return Verdict.UNKNOWN
