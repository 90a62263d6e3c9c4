"""The content of a .snapshot file about a partition's producers, after its version number."""

from barnabas.protocol.schema.fields import array, int16, int32, int64, uint32
from barnabas.protocol.schema.struct import message, struct


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
    crc: int = uint32()
    producer_entries: list[ProducerEntry] = array(ProducerEntry)
