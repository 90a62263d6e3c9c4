"""The records of __transaction_state: the last one of an id is all that there is to know of it."""

from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.state import NO_EPOCH, NO_ID, NO_PARTITIONS, Txn, TxnState
from barnabas.protocol.stored.framing import TRANSACTION_STATE, encode_key, encode_value
from barnabas.protocol.stored.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue

# The first that has tagged fields: previous and next producer id, and the version of the client.
FLEXIBLE: Final = 1
_OLD_CLIENT: Final = 0
_BY_TOPIC: Final = attrgetter("topic")
# Of a record at most, besides the id and the partitions; of a partition, besides the name of its topic.
_FRAME_BYTES: Final = 160
_PARTITION_BYTES: Final = 16
# Of a character in UTF-8.
_CHARACTER_BYTES: Final = 4


class TxnRecord(NamedTuple):
    """What an id is from now on; without it, the id is forgotten."""

    transactional_id: str
    txn: Txn | None
    version: int = FLEXIBLE

    def encoded(self) -> tuple[bytes, bytes | None]:
        key = encode_key(TransactionLogKey(transactional_id=self.transactional_id))
        return key, None if self.txn is None else encode_value(_value(self.txn), self.version)


def record_version(transaction_version: int) -> int:
    """In which version values are written at a finalized level of transaction.version."""
    return FLEXIBLE if transaction_version >= 1 else 0


def fit(txn: Txn, version: int) -> Txn:
    """What a record of this version can tell: nothing else is known after a load, so nobody builds on it."""
    if version >= FLEXIBLE:
        return txn
    return txn._replace(
        prev_producer_id=NO_ID,
        next_producer_id=NO_ID,
        next_producer_epoch=NO_EPOCH,
        client_version=_OLD_CLIENT,
    )


def size_bound(transactional_id: str, txn: Txn) -> int:
    """So many bytes its record takes at most."""
    topics = sum(_CHARACTER_BYTES * len(tp.topic) + _PARTITION_BYTES for tp in txn.partitions)
    return _FRAME_BYTES + _CHARACTER_BYTES * len(transactional_id) + topics


def decode_record(key: bytes, value: bytes | None) -> TxnRecord:
    """UnknownRecord if a later release wrote it, Malformed if nobody did."""
    transactional_id = TRANSACTION_STATE.decode_key(key).transactional_id
    if value is None:
        return TxnRecord(transactional_id, None)
    told, version = TRANSACTION_STATE.decode_value(TransactionLogKey(), value)
    return TxnRecord(transactional_id, _txn(told, transactional_id), version)


def _value(txn: Txn) -> TransactionLogValue:
    partitions = None
    if txn.state is not TxnState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=[tp.partition for tp in those])
            for topic, those in groupby(sorted(txn.partitions), key=_BY_TOPIC)
        ]
    return TransactionLogValue(
        producer_id=txn.producer_id,
        previous_producer_id=txn.prev_producer_id,
        next_producer_id=txn.next_producer_id,
        producer_epoch=txn.producer_epoch,
        next_producer_epoch=txn.next_producer_epoch,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_status=txn.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=txn.last_update_ms,
        transaction_start_timestamp_ms=txn.start_ms,
        client_transaction_version=txn.client_version,
    )


def _txn(told: TransactionLogValue, transactional_id: str) -> Txn:
    try:
        state = TxnState(told.transaction_status)
    except ValueError:
        raise Malformed(
            f"no such state {told.transaction_status}", where=f"transactional id {transactional_id!r}"
        ) from None
    return Txn(
        producer_id=told.producer_id,
        producer_epoch=told.producer_epoch,
        prev_producer_id=told.previous_producer_id,
        next_producer_id=told.next_producer_id,
        next_producer_epoch=told.next_producer_epoch,
        last_producer_epoch=NO_EPOCH,
        timeout_ms=told.transaction_timeout_ms,
        state=state,
        partitions=NO_PARTITIONS if state is TxnState.EMPTY else _partitions(told.transaction_partitions),
        start_ms=told.transaction_start_timestamp_ms,
        last_update_ms=told.transaction_last_update_timestamp_ms,
        client_version=told.client_transaction_version,
    )


def _partitions(topics: list[PartitionsSchema] | None) -> frozenset[TopicPartition]:
    if not topics:
        return NO_PARTITIONS
    return frozenset(TopicPartition(topic.topic, one) for topic in topics for one in topic.partition_ids)
