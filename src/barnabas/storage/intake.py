"""What a leader asks of a batch before it takes it in (compiled).

A produced batch is checked from its header and its CRC. Only topics whose settings speak of single records
(compacted ones need keys, an oldest allowed timestamp) have the records walked.
"""

from struct import Struct
from typing import Final

from crc32c import crc32c
from mypy_extensions import i64

from barnabas.records.area import MIN_RECORD_SIZE
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_EXCLUDES,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from barnabas.records.timestamp import is_out_of_range
from barnabas.records.validate import check_batch, check_produced, check_records
from barnabas.storage.append_errors import BatchTooLarge, InvalidTimestamp, MissingKey
from barnabas.storage.config import LogConfig
from barnabas.storage.files import Buffer

# The same fields as BatchHeader, which is read only where somebody needs the whole of it.
_HEADER: Final = Struct(">qiibIhiqqqhii")
_LAST_CODEC: Final[i64] = 4
_NO_LIMIT: Final[i64] = 0x7FFFFFFFFFFFFFFF
# What a client may set: codec and "transactional".
_CLIENT_ATTRIBUTES: Final[i64] = CODEC_BITS | TRANSACTIONAL_BIT


class Batch:
    """The facts of one checked batch that appending it needs."""

    def __init__(self, data: Buffer, at: i64) -> None:
        fields = _HEADER.unpack_from(data, at)
        self.at: Final = at
        self.base_offset: Final[i64] = fields[0]
        length: i64 = fields[1]
        self.size: Final[i64] = LENGTH_EXCLUDES + length
        self.leader_epoch: Final[i64] = fields[2]
        self.attributes: Final[i64] = fields[5]
        self.last_delta: Final[i64] = fields[6]
        self.base_timestamp: Final[i64] = fields[7]
        self.max_timestamp: i64 = fields[8]
        self.producer_id: Final[i64] = fields[9]
        self.producer_epoch: Final[i64] = fields[10]
        self.base_sequence: Final[i64] = fields[11]
        self.count: Final[i64] = fields[12]
        self.magic: Final[i64] = fields[3]
        self.crc: Final[i64] = fields[4]

    def is_control(self) -> bool:
        return (self.attributes & CONTROL_BIT) != 0


def take_produced(data: Buffer, config: LogConfig, now_ms: i64) -> Batch:
    """Check what a producer sent for one partition: one batch that obeys the protocol and the topic."""
    size: i64 = len(data)
    if size < HEADER_SIZE:
        check_produced(data)
    batch = Batch(data, 0)
    if not _is_sound(batch, data, size):
        check_produced(data)
        raise AssertionError("a batch that check_produced() takes was refused")
    if size > config.max_message_bytes:
        raise BatchTooLarge(size=size, limit=config.max_message_bytes, setting="max.message.bytes")
    _check_times(batch, data, config, now_ms)
    if config.compacts:
        null_key = check_records(data).first_null_key
        if null_key is not None:
            raise MissingKey(record=null_key)
    return batch


def _is_sound(batch: Batch, data: Buffer, size: i64) -> bool:
    # The short form of check_produced(), which is asked to explain when this says no.
    return (
        batch.size == size
        and batch.magic == MAGIC
        and batch.base_offset == 0
        and batch.count > 0
        and batch.last_delta == batch.count - 1
        and (batch.attributes & ~_CLIENT_ATTRIBUTES) == 0
        and (batch.attributes & CODEC_BITS) <= _LAST_CODEC
        and ((batch.attributes & CODEC_BITS) != 0 or batch.count * MIN_RECORD_SIZE <= size - HEADER_SIZE)
        and not is_out_of_range(batch.base_timestamp)
        and not is_out_of_range(batch.max_timestamp)
        and (
            (batch.producer_id >= 0 and batch.base_sequence >= 0 and batch.producer_epoch >= 0)
            or (batch.producer_id < 0 and (batch.attributes & TRANSACTIONAL_BIT) == 0)
        )
        and batch.crc == crc32c(memoryview(data)[ATTRIBUTES_AT:size])
    )


def _check_times(batch: Batch, data: Buffer, config: LogConfig, now_ms: i64) -> None:
    if config.log_append_time:
        return
    after: i64 = config.message_timestamp_after_max_ms
    if after != _NO_LIMIT and batch.max_timestamp - now_ms > after:
        raise InvalidTimestamp(
            timestamp=batch.max_timestamp,
            now_ms=now_ms,
            setting="message.timestamp.after.max.ms",
            limit=after,
        )
    before: i64 = config.message_timestamp_before_max_ms
    if before != _NO_LIMIT:
        earliest = check_records(data).min_timestamp
        if earliest >= 0 and now_ms - earliest > before:
            raise InvalidTimestamp(
                timestamp=earliest, now_ms=now_ms, setting="message.timestamp.before.max.ms", limit=before
            )


def take_written(data: Buffer, at: i64) -> Batch:
    """Check one batch of our own (a coordinator, the quorum's leader) or of a leader that we follow."""
    check_batch(data, at)
    return Batch(data, at)


def whole_header(data: Buffer, at: i64) -> BatchHeader:
    return read_header(data, at)
