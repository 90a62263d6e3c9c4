"""InitProducerId with a transactional id: the last producer owns it, all earlier ones are fenced.

A producer may send the id and epoch it had: then it continues as the same producer, or is refused. An ongoing
transaction is aborted first, unless keep_prepared_txn is set, which is experimental. (KIP-939)
"""

from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo, answered
from barnabas.coordinators.txn.answers import NEEDS_PRODUCER_ID, NeedsProducerId, TxnError, init_refused
from barnabas.coordinators.txn.ending import fence
from barnabas.coordinators.txn.state import (
    EPOCH_EACH_FROM,
    EPOCH_MAX,
    NO_EPOCH,
    NO_ID,
    TWO_PHASE_TIMEOUT_MS,
    Txn,
    TxnState,
    begun_anew,
    created,
    is_exhausted,
    kept,
)
from barnabas.coordinators.txn.table import TxnSettings, TxnTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse


def decide_init(
    table: TxnTable,
    request: InitProducerIdRequest,
    version: int,
    new_id: int | None,
    to: ReplyTo,
    now: Now,
) -> Outcome:
    try:
        return _decide(table, request, version, new_id, to, now)
    except NeedsProducerId:
        return NEEDS_PRODUCER_ID
    except TxnError as error:
        return answered(to, init_refused(error.code, version))


def _decide(
    table: TxnTable,
    request: InitProducerIdRequest,
    version: int,
    new_id: int | None,
    to: ReplyTo,
    now: Now,
) -> Outcome:
    timeout_ms = _check_request(table.settings, request)
    transactional_id = request.transactional_id or ""
    txn = table.txns.get(transactional_id)
    if txn is None:
        after = created(_required(new_id), timeout_ms, now.ms)
    else:
        _check_producer(txn, request)
        if txn.state is not TxnState.ONGOING:
            after = _next_producer(txn, request, timeout_ms, new_id, now)
        elif request.keep_prepared_txn:
            after = _keep(txn, request, new_id, now)
        else:
            # The fencing epoch is not returned. The retry, when the abort is complete, gets the next one.
            outcome = fence(table, transactional_id, txn, new_id, now)
            outcome.answer(to, init_refused(ErrorCode.CONCURRENT_TRANSACTIONS, version))
            return outcome
    # The transactional id may exceed the batch size limit.
    outcome = Outcome(is_tentative=True)
    table.write(outcome, transactional_id, after)
    outcome.answer(to, _response(after))
    return outcome


def _check_request(settings: TxnSettings, request: InitProducerIdRequest) -> int:
    """The timeout of future transactions."""
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
        raise TxnError(ErrorCode.INVALID_REQUEST, "producer id and epoch must be given together")
    if not request.transactional_id:
        raise TxnError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.enable2_pc and not settings.two_phase_commit:
        raise TxnError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transaction.two.phase.commit.enable is false"
        )
    if request.keep_prepared_txn and not (
        settings.two_phase_commit and settings.transaction_version >= EPOCH_EACH_FROM
    ):
        raise TxnError(
            ErrorCode.UNSUPPORTED_VERSION,
            "keep_prepared_txn needs two-phase commit and transaction.version 2",
        )
    if request.enable2_pc:
        return TWO_PHASE_TIMEOUT_MS
    if not 0 < request.transaction_timeout_ms <= settings.timeout_max_ms:
        raise TxnError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"timeout {request.transaction_timeout_ms} ms is out of range (1 to {settings.timeout_max_ms})",
        )
    return request.transaction_timeout_ms


def _check_producer(txn: Txn, request: InitProducerIdRequest) -> None:
    if txn.is_prepared:
        # Kafka checks this before the producer.
        raise TxnError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction is in state {txn.state.title}")
    if request.producer_id in (NO_ID, txn.producer_id, txn.owner[0]):
        return
    # The response with the next id may have been lost.
    is_retry = request.producer_id == txn.prev_producer_id and is_exhausted(request.producer_epoch)
    if not is_retry:
        raise TxnError(
            ErrorCode.PRODUCER_FENCED, f"producer id is {request.producer_id}, expected {txn.owner[0]}"
        )


def _next_producer(
    txn: Txn, request: InitProducerIdRequest, timeout_ms: int, new_id: int | None, now: Now
) -> Txn:
    sends_epoch = request.producer_epoch != NO_EPOCH
    last_epoch = NO_EPOCH
    if is_exhausted(txn.producer_epoch):
        if sends_epoch and not _is_last_of_its_id(txn, request.producer_epoch):
            # Kafka fails here as well: no epoch is left.
            raise TxnError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"producer epochs are exhausted at {txn.producer_epoch}"
            )
        producer_id, epoch = _required(new_id), 0
        if sends_epoch:
            last_epoch = request.producer_epoch
    else:
        producer_id, epoch = txn.producer_id, txn.producer_epoch + 1
        if sends_epoch:
            last_epoch = request.producer_epoch
            if request.producer_epoch == txn.last_producer_epoch != txn.producer_epoch:
                # A retry: the response to the same request was lost.
                epoch = txn.producer_epoch
            elif request.producer_epoch != txn.producer_epoch:
                raise TxnError(
                    ErrorCode.PRODUCER_FENCED,
                    f"epoch {request.producer_epoch} is neither {txn.producer_epoch} nor the previous one",
                )
    return begun_anew(
        txn,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        now_ms=now.ms,
    )


def _is_last_of_its_id(txn: Txn, epoch: int) -> bool:
    """Includes an epoch that timed out and was fenced with the reserved one. See LAST_FENCE in ending.py."""
    return epoch == txn.producer_epoch or (
        txn.producer_epoch == EPOCH_MAX and epoch == EPOCH_MAX - 1 == txn.last_producer_epoch
    )


def _keep(txn: Txn, request: InitProducerIdRequest, new_id: int | None, now: Now) -> Txn:
    """Give the producer a new id or epoch with which it commits or aborts the records of the current one."""
    producer_id, epoch = txn.owner
    if request.producer_epoch != NO_EPOCH and (request.producer_id, request.producer_epoch) != txn.owner:
        raise TxnError(
            ErrorCode.PRODUCER_FENCED, f"producer epoch is {request.producer_epoch}, expected {epoch}"
        )
    if is_exhausted(epoch):
        return kept(txn, next_id=_required(new_id), next_epoch=0, now_ms=now.ms)
    return kept(txn, next_id=producer_id, next_epoch=epoch + 1, now_ms=now.ms)


def _response(txn: Txn) -> InitProducerIdResponse:
    producer_id, epoch = txn.owner
    if not txn.is_kept:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)
    return InitProducerIdResponse(
        producer_id=producer_id,
        producer_epoch=epoch,
        ongoing_txn_producer_id=txn.producer_id,
        ongoing_txn_producer_epoch=txn.producer_epoch,
    )


def _required(new_id: int | None) -> int:
    if new_id is None:
        raise NeedsProducerId
    return new_id
