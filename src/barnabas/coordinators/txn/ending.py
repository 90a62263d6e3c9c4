"""Ending a transaction: by EndTxn, or because its producer is fenced.

Clients of transactions version 2 (EndTxn v5) get an epoch for each transaction, so a late request has a stale
epoch. With older clients, a retry and the next request look the same. (KIP-890)

LAST_FENCE: a request can wait for a new producer id, but a timeout cannot. If a transaction with the last
epoch of its producer id times out, it is fenced with the one reserved epoch, and the new id is allocated when
a request needs it. Kafka allocates it immediately. The fenced producer mostly sees the same: EndTxn v5 that
aborts, and InitProducerId with the old id and epoch, return the new id with epoch 0; EndTxn v5 that commits
gets INVALID_TXN_STATE. The differences are:
- Adding partitions or offsets, and older EndTxn, with the old id: PRODUCER_FENCED, as for any stale epoch.
  Kafka no longer has that id: INVALID_PRODUCER_ID_MAPPING.
- InitProducerId with the old id and epoch after a reload of the coordinator, whose log does not contain the
  last epoch: UNKNOWN_SERVER_ERROR; Kafka: PRODUCER_FENCED. Neither returns an id.
- InitProducerId without id and epoch: epoch 0 of the new id; Kafka: epoch 1.
"""

from typing import Final

from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo, answered
from barnabas.coordinators.txn.answers import NEEDS_PRODUCER_ID, NeedsProducerId, TxnError, end_refused
from barnabas.coordinators.txn.record import FLEXIBLE, record_version
from barnabas.coordinators.txn.state import (
    EPOCH_EACH_FROM,
    EPOCH_MAX,
    Txn,
    TxnState,
    continued_with,
    fenced_by_old_server,
    given_new_id,
    is_exhausted,
    prepared,
    prepared_by_old_client,
)
from barnabas.coordinators.txn.table import TxnTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import EndTxnRequest, EndTxnResponse

# The first EndTxn version of transactions version 2.
_EPOCH_EACH_FROM: Final = 5
_ONGOING: Final = TxnState.ONGOING


def decide_end(
    table: TxnTable, request: EndTxnRequest, version: int, new_id: int | None, to: ReplyTo, now: Now
) -> Outcome:
    try:
        if not request.transactional_id:
            raise TxnError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        txn = table.txns.get(request.transactional_id)
        if txn is None:
            raise TxnError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "unknown transactional id")
        if version < _EPOCH_EACH_FROM:
            return _end_of_old_client(table, txn, request, to, now)
        return _end(table, txn, request, new_id, to, now)
    except NeedsProducerId:
        return NEEDS_PRODUCER_ID
    except TxnError as error:
        return answered(to, end_refused(error.code, version))


# Transactions version 1: the producer keeps its epoch


def _end_of_old_client(table: TxnTable, txn: Txn, request: EndTxnRequest, to: ReplyTo, now: Now) -> Outcome:
    producer_id, epoch = txn.owner
    if request.producer_id != producer_id:
        raise _wrong_id(request, txn)
    if request.producer_epoch != epoch:
        raise _fenced(request, txn)
    if txn.is_prepared:
        raise _busy(txn)
    outcome = Outcome()
    if txn.state is _ONGOING and not txn.is_kept:
        after = prepared_by_old_client(txn, commit=request.committed, now_ms=now.ms)
        table.write_end(outcome, request.transactional_id, after, now)
    elif txn.state is not _completed_by(request):
        raise _not_in_state(request, txn)
    outcome.answer(to, EndTxnResponse())
    return outcome


# Transactions version 2: the producer gets an epoch for each transaction


def _end(
    table: TxnTable, txn: Txn, request: EndTxnRequest, new_id: int | None, to: ReplyTo, now: Now
) -> Outcome:
    if txn.is_prepared:
        # Kafka checks this before the producer.
        raise _busy(txn)
    is_retry = _check_epoch(txn, request)
    if txn.state is _ONGOING:
        if request.committed and txn.producer_epoch == EPOCH_MAX:
            raise TxnError(ErrorCode.UNKNOWN_SERVER_ERROR, "no producer was given this epoch")
        return _end_now(table, txn, request, new_id, to, now)
    if is_retry:
        if txn.state is not _completed_by(request):
            raise _not_in_state(request, txn)
        return _repeat_response(table, txn, request, new_id, to, now)
    if request.committed:
        raise _not_in_state(request, txn)
    # A producer that does not know whether its transaction has started aborts it, and gets an epoch for which
    # no transaction can have started.
    return _end_now(table, txn, request, new_id, to, now)


def _check_epoch(txn: Txn, request: EndTxnRequest) -> bool:
    """Whether the request is a retry after a lost response: it has the previous epoch."""
    producer_id, epoch = txn.owner
    is_over = txn.state in (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)
    is_old_id = (
        request.producer_id == txn.prev_producer_id and request.producer_epoch == EPOCH_MAX - 1 and epoch == 0
    )
    is_retry = is_old_id or request.producer_epoch + 1 == epoch
    if request.producer_id != producer_id and not is_old_id:
        raise _wrong_id(request, txn)
    if request.producer_epoch != epoch and not (is_over and is_retry):
        raise _fenced(request, txn)
    return is_retry


def _end_now(
    table: TxnTable, txn: Txn, request: EndTxnRequest, new_id: int | None, to: ReplyTo, now: Now
) -> Outcome:
    if record_version(table.settings.transaction_version) < FLEXIBLE:
        # Kafka fails here as well, and cannot use the id until the coordinator is reloaded.
        raise TxnError(ErrorCode.UNSUPPORTED_VERSION, "transaction.version is too low for this client")
    if is_exhausted(txn.owner[1]) and new_id is None:
        raise NeedsProducerId
    after = prepared(txn, commit=request.committed, new_id=new_id, now_ms=now.ms)
    # Without partitions there are two records, which may exceed the batch size limit.
    outcome = Outcome(is_tentative=not after.partitions)
    table.write_end(outcome, request.transactional_id, after, now)
    outcome.answer(to, _response(*continued_with(after)))
    return outcome


def _repeat_response(
    table: TxnTable, txn: Txn, request: EndTxnRequest, new_id: int | None, to: ReplyTo, now: Now
) -> Outcome:
    if txn.producer_epoch < EPOCH_MAX:
        return answered(to, _response(txn.producer_id, txn.producer_epoch))
    # The transaction timed out, see LAST_FENCE. The epoch that fenced it cannot be used.
    if new_id is None:
        raise NeedsProducerId
    after = given_new_id(txn, new_id, now.ms)
    outcome = Outcome()
    table.write(outcome, request.transactional_id, after)
    outcome.answer(to, _response(after.producer_id, after.producer_epoch))
    return outcome


def _response(producer_id: int, epoch: int) -> EndTxnResponse:
    return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)


# Fencing


def fence(table: TxnTable, transactional_id: str, txn: Txn, new_id: int | None, now: Now) -> Outcome:
    """Abort an ongoing transaction with a bumped epoch, which fences its producer.

    NeedsProducerId if no epoch is left and `new_id` is None.
    """
    is_last = table.settings.transaction_version >= EPOCH_EACH_FROM and is_exhausted(txn.owner[1])
    if is_last and new_id is None:
        raise NeedsProducerId
    return abort(table, transactional_id, txn, new_id, now)


def abort(table: TxnTable, transactional_id: str, txn: Txn, new_id: int | None, now: Now) -> Outcome:
    """fence() for a timeout, which cannot wait for a new id: see LAST_FENCE."""
    if table.settings.transaction_version >= EPOCH_EACH_FROM:
        after = prepared(txn, commit=False, new_id=new_id, now_ms=now.ms)
    else:
        after = fenced_by_old_server(txn, now.ms)
    outcome = Outcome()
    table.write_end(outcome, transactional_id, after, now)
    return outcome


# Errors


def _completed_by(request: EndTxnRequest) -> TxnState:
    return TxnState.COMPLETE_COMMIT if request.committed else TxnState.COMPLETE_ABORT


def _wrong_id(request: EndTxnRequest, txn: Txn) -> TxnError:
    return TxnError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"producer id is {request.producer_id}, expected {txn.owner[0]}",
    )


def _fenced(request: EndTxnRequest, txn: Txn) -> TxnError:
    return TxnError(
        ErrorCode.PRODUCER_FENCED, f"producer epoch is {request.producer_epoch}, expected {txn.owner[1]}"
    )


def _busy(txn: Txn) -> TxnError:
    return TxnError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction is in state {txn.state.title}")


def _not_in_state(request: EndTxnRequest, txn: Txn) -> TxnError:
    what = "commit" if request.committed else "abort"
    return TxnError(ErrorCode.INVALID_TXN_STATE, f"cannot {what} a transaction in state {txn.state.title}")
