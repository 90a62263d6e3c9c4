"""The records of __transaction_state: the last one of an id holds its complete state."""

from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from struct import Struct, pack
from struct import error as StructError
from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.state import NO_EPOCH, NO_ID, NO_PARTITIONS, Txn, TxnState
from barnabas.protocol.stored.framing import TRANSACTION_STATE, encode_value
from barnabas.protocol.stored.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from barnabas.protocol.wire import write_uvarint

# The first record version with tagged fields: previous and next producer id, client version.
FLEXIBLE: Final = 1
_OLD_CLIENT: Final = 0
_KEY: Final = Struct(">hh")
_KEY_TYPE: Final = 0
_HEAD: Final = Struct(">hqhib")
_TAIL: Final = Struct(">qqB")
# A value without partitions: an empty or null array is one byte.
_IDLE: Final = Struct(">hqhibBqqB")
_PARTITIONS_AT: Final = _HEAD.size
_TAGGED_INT64: Final = Struct(">BBq")
_TAGGED_INT16: Final = Struct(">BBh")
_NULL: Final = b"\0"
_NONE: Final = b"\1"
_NO_TAGS: Final = b"\0"
_BY_TOPIC: Final = attrgetter("topic")
# Upper bounds: of a record with its batch, without id and partitions; of a partition, without its topic name.
_FRAME_BYTES: Final = 160
_PARTITION_BYTES: Final = 16
# Upper bound of the additional bytes per topic in the old version.
_OLD_TOPIC_BYTES: Final = 8
# Cached encoded partition sets: about the number of transactions that end at the same time.
_PACKED_MAX: Final = 256
# Maximum bytes of a character in UTF-8.
_CHARACTER_BYTES: Final = 4


class TxnRecord(NamedTuple):
    """The state of a transactional id; None is a tombstone."""

    transactional_id: str
    txn: Txn | None
    version: int = FLEXIBLE

    def encoded(self) -> tuple[bytes, bytes | None]:
        name = self.transactional_id.encode()
        key = _KEY.pack(_KEY_TYPE, len(name)) + name
        if self.txn is None:
            return key, None
        if self.version >= FLEXIBLE:
            return key, _packed(self.txn)
        return key, encode_value(_value(self.txn), self.version)


def record_version(transaction_version: int) -> int:
    """The record version for a finalized level of transaction.version."""
    return FLEXIBLE if transaction_version >= 1 else 0


def fit(txn: Txn, version: int) -> Txn:
    """Drop the fields that this record version does not have, because they would be lost in a load."""
    if version >= FLEXIBLE:
        return txn
    return txn._replace(
        prev_producer_id=NO_ID,
        next_producer_id=NO_ID,
        next_producer_epoch=NO_EPOCH,
        client_version=_OLD_CLIENT,
    )


def size_bound(transactional_id: str, txn: Txn) -> int:
    """Upper bound of the size of its record."""
    topics = sum(_CHARACTER_BYTES * len(tp.topic) + _PARTITION_BYTES for tp in txn.partitions)
    return _FRAME_BYTES + _CHARACTER_BYTES * len(transactional_id) + topics


def is_larger(transactional_id: str, txn: Txn, bytes_max: int) -> bool:
    """Whether its record, or a later one of the same transaction, may exceed `bytes_max`."""
    if size_bound(transactional_id, txn) <= bytes_max:
        return False
    # The bound is too high if many partitions share a topic, or names are ASCII: compute the exact size.
    topics = len({tp.topic for tp in txn.partitions})
    packed = len(_packed_partitions(txn.partitions)) + _OLD_TOPIC_BYTES * topics
    return _FRAME_BYTES + len(transactional_id.encode()) + packed > bytes_max


def decode_record(key: bytes, value: bytes | None) -> TxnRecord:
    """UnknownRecord if a later release wrote it, Malformed if it is corrupt."""
    transactional_id = TRANSACTION_STATE.decode_key(key).transactional_id
    if value is None:
        return TxnRecord(transactional_id, None)
    idle = _unpacked_idle(value)
    if idle is not None:
        return TxnRecord(transactional_id, idle)
    stored, version = TRANSACTION_STATE.decode_value(TransactionLogKey(), value)
    return TxnRecord(transactional_id, _txn(stored, transactional_id), version)


def _packed(txn: Txn) -> bytes:
    """The value in the flexible version, packed by hand: every transaction writes three."""
    head = _HEAD.pack(FLEXIBLE, txn.producer_id, txn.producer_epoch, txn.timeout_ms, txn.state)
    tags = 0
    tagged = b""
    if txn.prev_producer_id != NO_ID:
        tags += 1
        tagged = _TAGGED_INT64.pack(0, 8, txn.prev_producer_id)
    if txn.next_producer_id != NO_ID:
        tags += 1
        tagged += _TAGGED_INT64.pack(1, 8, txn.next_producer_id)
    if txn.client_version != _OLD_CLIENT:
        tags += 1
        tagged += _TAGGED_INT16.pack(2, 2, txn.client_version)
    if txn.next_producer_epoch != NO_EPOCH:
        tags += 1
        tagged += _TAGGED_INT16.pack(3, 2, txn.next_producer_epoch)
    partitions = _NULL if txn.state is TxnState.EMPTY else _packed_partitions(txn.partitions)
    return head + partitions + _TAIL.pack(txn.last_update_ms, txn.start_ms, tags) + tagged


@lru_cache(maxsize=_PACKED_MAX)
def _packed_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    """Cached, because an ending transaction is written several times with the same partitions."""
    if not partitions:
        return _NONE
    parts = [b""]
    topics = 0
    for topic, those in groupby(sorted(partitions), key=_BY_TOPIC):
        topics += 1
        name = topic.encode()
        numbers = [tp.partition for tp in those]
        parts += (
            write_uvarint(len(name) + 1),
            name,
            write_uvarint(len(numbers) + 1),
            pack(f">{len(numbers)}i", *numbers),
            _NO_TAGS,
        )
    parts[0] = write_uvarint(topics + 1)
    return b"".join(parts)


def _unpacked_idle(value: bytes) -> Txn | None:
    """Decode by hand a flexible value without partitions: a load decodes one for every id.

    None for any other or unusual value, which the generic codec decodes.
    """
    if len(value) < _IDLE.size or value[_PARTITIONS_AT] > _NONE[0]:
        return None
    version, producer_id, epoch, timeout_ms, status, _, updated_ms, start_ms, tags = _IDLE.unpack_from(value)
    prev_id = NO_ID
    client_version = _OLD_CLIENT
    at = _IDLE.size
    try:
        for _ in range(tags):
            if value[at] == 0 and value[at + 1] == 8 and at == _IDLE.size:
                _, _, prev_id = _TAGGED_INT64.unpack_from(value, at)
                at += _TAGGED_INT64.size
            elif value[at] == 2 and value[at + 1] == 2 and client_version == _OLD_CLIENT:
                _, _, client_version = _TAGGED_INT16.unpack_from(value, at)
                at += _TAGGED_INT16.size
            else:
                return None
        state = TxnState(status)
    except (IndexError, StructError, ValueError):
        return None
    if version != FLEXIBLE or at != len(value):
        return None
    return Txn(
        producer_id,
        epoch,
        prev_id,
        NO_ID,
        NO_EPOCH,
        NO_EPOCH,
        timeout_ms,
        state,
        NO_PARTITIONS,
        start_ms,
        updated_ms,
        client_version,
    )


def _value(txn: Txn) -> TransactionLogValue:
    """The value for the generic codec, which writes the old version."""
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


def _txn(stored: TransactionLogValue, transactional_id: str) -> Txn:
    try:
        state = TxnState(stored.transaction_status)
    except ValueError:
        raise Malformed(
            f"unknown state {stored.transaction_status}", where=f"transactional id {transactional_id!r}"
        ) from None
    return Txn(
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        prev_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        next_producer_epoch=stored.next_producer_epoch,
        last_producer_epoch=NO_EPOCH,
        timeout_ms=stored.transaction_timeout_ms,
        state=state,
        partitions=NO_PARTITIONS if state is TxnState.EMPTY else _partitions(stored.transaction_partitions),
        start_ms=stored.transaction_start_timestamp_ms,
        last_update_ms=stored.transaction_last_update_timestamp_ms,
        client_version=stored.client_transaction_version,
    )


def _partitions(topics: list[PartitionsSchema] | None) -> frozenset[TopicPartition]:
    if not topics:
        return NO_PARTITIONS
    return frozenset(TopicPartition(topic.topic, one) for topic in topics for one in topic.partition_ids)
