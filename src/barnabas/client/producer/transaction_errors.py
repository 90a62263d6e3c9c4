"""What can go wrong with a transaction, and what is to be done about it: each error has a `remedy`.

ABORT        nothing of this transaction can be committed any more: abort it, and begin again
BEGIN_AGAIN  it was aborted: nothing of it is visible, and the next one may go well
ASK_AGAIN    whether it was committed is not known; the same call asks again, and does no harm
GIVE_UP      this producer can do no more: close it

Groups like those of KIP-1050. What may go well a moment later is tried again by the producer itself.
"""

from enum import Enum
from typing import ClassVar, Final

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import ClientError
from barnabas.client.producer.handed_over import OpenTransaction

_DOUBT: Final = "; the outcome of the last transaction is unknown"


class Remedy(Enum):
    ABORT = "abort the transaction"
    BEGIN_AGAIN = "begin again"
    ASK_AGAIN = "ask again"
    GIVE_UP = "close this producer"


class TransactionError(ClientError):
    """The root of what is said about transactions of one transactional.id."""

    remedy: ClassVar[Remedy]

    def __init__(self, transactional_id: str, what: str) -> None:
        super().__init__(f"transactional.id {transactional_id}: {what}")
        self.transactional_id = transactional_id


class NotTransactional(ClientError):
    """A transaction was asked of a producer that has no transactional.id."""

    def __init__(self) -> None:
        super().__init__("this producer is not transactional: set transactional.id")


class TwoPhaseCommitOff(ClientError):
    """Transactions are prepared, and kept over a restart, only by a producer that was made for it."""

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
    """It can only be aborted. `because` is what went wrong first.

    If it was about records, `tp` and `records` say which: so many, that went together to that partition.
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
    """It was open for longer than transaction.timeout.ms, and the coordinator has aborted it."""

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
    """Nothing of it is visible to who reads committed records. `because` is why, None if it was asked for."""

    remedy = Remedy.BEGIN_AGAIN

    def __init__(self, transactional_id: str, because: BaseException | None = None) -> None:
        super().__init__(
            transactional_id, "the transaction was aborted" + ("" if because is None else f": {because}")
        )
        self.because = because
        self.__cause__ = because


class OutcomeUnknown(TransactionError):
    """The coordinator was asked to commit, and did not say in time whether it did: commit asks again."""

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
    """Another producer has come with the same transactional.id, or the transaction took too long.

    `timeout_ms` is 0 where it is not known. If `in_doubt`, an earlier request to commit was not answered, and
    may have been done.
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
    """A transaction that was handed over was not ended: its id has gone on to another epoch.

    A newer producer has come with the id, and what was open then is aborted. In version 1 of transactions the
    coordinator says the same of one that took longer than its time-out.
    """

    def __init__(self, opened: OpenTransaction, *, is_v2: bool, in_doubt: bool) -> None:
        super().__init__(opened.transactional_id, open_ms=0, timeout_ms=0, in_doubt=in_doubt)
        late = "" if is_v2 else ", or the transaction exceeded its transaction.timeout.ms"
        doubt = "; an earlier commit request was not answered and may have succeeded" if in_doubt else ""
        self.args = (f"cannot end the {opened}: another producer uses this id now{late}{doubt}",)
        self.opened = opened


class TransactionNotOpen(TransactionError):
    """A transaction that was handed over can not be ended so: it is not open.

    If `commit`, nothing of it is visible to who reads committed records.
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
    """The coordinator does not let this producer go on: `because` is its refusal.

    If `in_doubt`, an earlier request to commit was not answered, and may have been done.
    """

    remedy = Remedy.GIVE_UP

    def __init__(self, transactional_id: str, because: ClientError, *, in_doubt: bool = False) -> None:
        super().__init__(transactional_id, f"{because}{_DOUBT if in_doubt else ''}")
        self.because = because
        self.in_doubt = in_doubt
        self.__cause__ = because


class SequenceLost(ClientError):
    """A broker misses what was sent before a batch, so the transaction can not be whole."""

    def __init__(self) -> None:
        super().__init__(
            "a broker is missing earlier records of this producer, or does not know its producer id"
        )


class OffsetsInDoubt(ClientError):
    """Sending offsets to a transaction was given up in the middle: perhaps they are in it."""

    def __init__(self, group_id: str) -> None:
        super().__init__(f"it is unknown whether the transaction contains the offsets of group {group_id}")
        self.group_id = group_id
