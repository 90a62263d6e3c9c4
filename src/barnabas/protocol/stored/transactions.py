"""Records of __transaction_state, and the snapshot of a partition's producers."""

from barnabas.protocol.schema.fields import array, int8, int16, int32, int64, string, uint32
from barnabas.protocol.schema.struct import message, struct


@message("key", key=0, versions="0", flexible="none")
class TransactionLogKey:
    transactional_id: str = string()


@struct
class PartitionsSchema:
    topic: str = string()
    partition_ids: list[int] = array(int32)


@message("value", key=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """v1 flexible, previous_producer_id, next_producer_id, next_producer_epoch, client_transaction_version"""

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, null="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2)


@struct
class ProducerEntry:
    producer_id: int = int64()
    epoch: int = int16()
    last_sequence: int = int32()
    last_offset: int = int64()
    offset_delta: int = int32()
    timestamp: int = int64()
    coordinator_epoch: int = int32()
    current_txn_first_offset: int = int64()


@message("data", versions="1", flexible="none")
class ProducerSnapshot:
    """The content of a .snapshot file, after its version number."""

    crc: int = uint32()
    producer_entries: list[ProducerEntry] = array(ProducerEntry)
