"""Adding partitions to a transaction, and verifying them: AddPartitionsToTxn, AddOffsetsToTxn."""

from collections.abc import Collection, Set
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import Now, Outcome, ReplyTo, answered
from barnabas.coordinators.txn.answers import TxnError, offsets_answer, partitions_answer, result_of
from barnabas.coordinators.txn.record import FLEXIBLE, is_larger, record_version
from barnabas.coordinators.txn.state import EPOCH_EACH_FROM, Txn, TxnProducer, TxnState, with_partitions
from barnabas.coordinators.txn.table import TxnTable
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import AddOffsetsToTxnRequest, AddPartitionsToTxnTransaction

# Versions from here on are sent by brokers, for clients that use transactions version 2.
_FROM_BROKERS: Final = 4
_OLD_CLIENT: Final = 0
# Bound once, to save attribute lookups.
_NONE: Final = ErrorCode.NONE
_ABORTABLE: Final = ErrorCode.TRANSACTION_ABORTABLE
_ONGOING: Final = TxnState.ONGOING
_new_tuple: Final = tuple.__new__


def decide_add_partitions(
    table: TxnTable, asked: AddPartitionsToTxnTransaction, version: int, to: ReplyTo, now: Now
) -> Outcome:
    # Half of the cost of TopicPartition(...): the named tuple's own constructor is interpreted.
    partitions = {
        _new_tuple(TopicPartition, (topic.name, one)) for topic in asked.topics for one in topic.partitions
    }
    producer = TxnProducer(asked.transactional_id, asked.producer_id, asked.producer_epoch)
    outcome = Outcome()
    try:
        txn = _txn_of(table, producer, only_asks=asked.verify_only)
        if asked.verify_only:
            return answered(to, result_of(asked, lambda tp: _verified(txn, tp)))
        client_version = EPOCH_EACH_FROM if version >= _FROM_BROKERS else _OLD_CLIENT
        _add(table, outcome, asked.transactional_id, txn, partitions, client_version, now)
    except TxnError as error:
        return answered(to, partitions_answer(asked, error.code, version))
    outcome.answer(to, partitions_answer(asked, _NONE, version))
    return outcome


def decide_add_or_verify(
    table: TxnTable,
    producer: TxnProducer,
    partitions: Collection[TopicPartition],
    adds: bool,
    to: ReplyTo,
    now: Now,
) -> Outcome:
    """Add or verify partitions for a leader on this broker, without a request. Answers the code of each
    partition."""
    outcome = Outcome()
    try:
        txn = _txn_of(table, producer, only_asks=not adds)
        if not adds:
            return answered(to, {tp: _verified(txn, tp) for tp in partitions})
        _add(table, outcome, producer.transactional_id, txn, set(partitions), EPOCH_EACH_FROM, now)
    except TxnError as error:
        return answered(to, dict.fromkeys(partitions, error.code))
    outcome.answer(to, dict.fromkeys(partitions, _NONE))
    return outcome


def decide_add_offsets(
    table: TxnTable,
    request: AddOffsetsToTxnRequest,
    version: int,
    offsets_partition: TopicPartition,
    to: ReplyTo,
    now: Now,
) -> Outcome:
    producer = TxnProducer(request.transactional_id, request.producer_id, request.producer_epoch)
    outcome = Outcome()
    try:
        txn = _txn_of(table, producer, only_asks=False)
        _add(table, outcome, request.transactional_id, txn, {offsets_partition}, _OLD_CLIENT, now)
    except TxnError as error:
        return answered(to, offsets_answer(error.code, version))
    outcome.answer(to, offsets_answer(_NONE, version))
    return outcome


def _txn_of(table: TxnTable, asked: TxnProducer, *, only_asks: bool) -> Txn:
    """The transaction of a producer that may add partitions to it or verify them."""
    if not asked.transactional_id:
        raise TxnError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    txn = table.txns.get(asked.transactional_id)
    if txn is None:
        raise TxnError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "unknown transactional id")
    if txn.is_prepared and not only_asks:
        # Kafka checks this before the producer.
        raise _busy(txn)
    producer_id, epoch = txn.owner
    if asked.producer_id != producer_id:
        raise TxnError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"producer id is {asked.producer_id}, expected {producer_id}",
        )
    if asked.producer_epoch != epoch:
        raise TxnError(
            ErrorCode.PRODUCER_FENCED, f"producer epoch is {asked.producer_epoch}, expected {epoch}"
        )
    if txn.is_prepared:
        raise _busy(txn)
    if txn.is_kept:
        raise TxnError(
            ErrorCode.INVALID_TXN_STATE, "the transaction is prepared and can only be committed or aborted"
        )
    return txn


def _busy(txn: Txn) -> TxnError:
    return TxnError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction is in state {txn.state.title}")


def _verified(txn: Txn, tp: TopicPartition) -> ErrorCode:
    return _NONE if tp in txn.partitions else _ABORTABLE


def _add(
    table: TxnTable,
    outcome: Outcome,
    transactional_id: str,
    txn: Txn,
    partitions: Set[TopicPartition],
    client_version: int,
    now: Now,
) -> None:
    if txn.state is _ONGOING and partitions <= txn.partitions:
        return
    settings = table.settings
    if client_version >= EPOCH_EACH_FROM and record_version(settings.transaction_version) < FLEXIBLE:
        # Kafka fails here as well, and cannot use the id until the coordinator is reloaded.
        raise TxnError(ErrorCode.UNSUPPORTED_VERSION, "transaction.version is too low for this client")
    after = with_partitions(txn, partitions, client_version, now.ms)
    if is_larger(transactional_id, after, table.batch_bytes_max()):
        raise TxnError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "the transaction has too many partitions for one record"
        )
    table.write(outcome, transactional_id, after)
