"""The header of one batch as a native object (compiled), for appends and replay.

records.header.BatchHeader has the same fields as a tuple. This class is for code that visits every batch: its
fields are machine words, so reading one is not a call.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64, mypyc_attr

from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_LENGTH_AT,
    CONTROL_BIT,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_EXCLUDES,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
)
from barnabas.storage.files import Buffer


@mypyc_attr(acyclic=True)
class Batch:
    """The header fields of one checked batch that an append needs."""

    def __init__(self, data: Buffer, at: i64) -> None:
        # Read field by field: Struct.unpack would create an object for each.
        head, start = (data, at) if isinstance(data, bytes) else (bytes(data[at : at + HEADER_SIZE]), i64(0))
        self.at: Final = at
        self.base_offset: Final[i64] = read_i64_be(head, start)
        self.size: Final[i64] = LENGTH_EXCLUDES + i64(read_i32_be(head, start + BATCH_LENGTH_AT))
        self.leader_epoch: Final[i64] = i64(read_i32_be(head, start + LEADER_EPOCH_AT))
        self.magic: Final[i64] = head[start + MAGIC_AT]
        self.crc: Final[i64] = i64(read_i32_be(head, start + CRC_AT)) & 0xFFFFFFFF
        self.attributes: Final[i64] = i64(read_i16_be(head, start + ATTRIBUTES_AT))
        self.last_delta: Final[i64] = i64(read_i32_be(head, start + LAST_OFFSET_DELTA_AT))
        self.base_timestamp: Final[i64] = read_i64_be(head, start + BASE_TIMESTAMP_AT)
        self.max_timestamp: i64 = read_i64_be(head, start + MAX_TIMESTAMP_AT)
        self.producer_id: Final[i64] = read_i64_be(head, start + PRODUCER_ID_AT)
        self.producer_epoch: Final[i64] = i64(read_i16_be(head, start + PRODUCER_EPOCH_AT))
        self.base_sequence: Final[i64] = i64(read_i32_be(head, start + BASE_SEQUENCE_AT))
        self.count: Final[i64] = i64(read_i32_be(head, start + COUNT_AT))

    def is_control(self) -> bool:
        return (self.attributes & CONTROL_BIT) != 0
