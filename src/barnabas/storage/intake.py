"""The checks of a batch before it is appended (compiled).

A produced batch is checked by its header and CRC. Its records are parsed only for topics whose settings need
it: compacted topics require keys, and message.timestamp.before.max.ms requires the earliest timestamp.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.base.crc32c import crc32c
from barnabas.records.area import MIN_RECORD_SIZE
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    MAGIC,
    TRANSACTIONAL_BIT,
)
from barnabas.records.timestamp import NO_TIMESTAMP, is_too_late
from barnabas.records.validate import check_batch, check_produced, check_records
from barnabas.storage.append_errors import BatchTooLarge, InvalidTimestamp, MissingKey
from barnabas.storage.config import LogConfig
from barnabas.storage.files import Buffer
from barnabas.storage.segment.batch import Batch

_LAST_CODEC: Final[i64] = 4
_NO_LIMIT: Final[i64] = 0x7FFFFFFFFFFFFFFF
# The attribute bits that a client may set: codec and "transactional".
_CLIENT_ATTRIBUTES: Final[i64] = CODEC_BITS | TRANSACTIONAL_BIT


class Rules:
    """A topic's settings about incoming batches, as machine words for fast access."""

    def __init__(self, config: LogConfig) -> None:
        self.max_bytes: Final[i64] = config.max_message_bytes
        self.min_in_sync: Final[i64] = config.min_insync_replicas
        self.after_ms: Final[i64] = config.message_timestamp_after_max_ms
        self.before_ms: Final[i64] = config.message_timestamp_before_max_ms
        self.log_append_time: Final[bool] = config.log_append_time
        self.needs_keys: Final[bool] = config.compacts


def take_produced(data: Buffer, rules: Rules, now_ms: i64, crc_follows: bool = False) -> Batch:
    """Check that a producer sent one valid batch that obeys the topic's settings.

    With `crc_follows` the caller checks the CRC, before the batch becomes visible.
    """
    size: i64 = len(data)
    if size < HEADER_SIZE:
        check_produced(data)
    batch = Batch(data, 0)
    if not _is_sound(batch, size) or not (crc_follows or batch.crc == crc32c(covered(data, size))):
        explain(data)
    if size > rules.max_bytes:
        raise BatchTooLarge(size=size, limit=rules.max_bytes, setting="max.message.bytes")
    _check_times(batch, data, rules, now_ms)
    if rules.needs_keys:
        null_key = check_records(data).first_null_key
        if null_key is not None:
            raise MissingKey(record=null_key)
    return batch


def covered(data: Buffer, size: i64) -> memoryview:
    """The part of a batch that its CRC covers."""
    return memoryview(data)[ATTRIBUTES_AT:size]


def explain(data: Buffer) -> None:
    """Raise the error for a batch that a fast check rejected."""
    check_produced(data)
    raise AssertionError("check_produced() accepts a batch that the fast check rejected")


def _is_sound(batch: Batch, size: i64) -> bool:
    # The fast form of check_produced(), which is called for the error if this returns False.
    return (
        batch.size == size
        and batch.magic == MAGIC
        and batch.base_offset == 0
        and batch.count > 0
        and batch.last_delta == batch.count - 1
        and (batch.attributes & ~_CLIENT_ATTRIBUTES) == 0
        and (batch.attributes & CODEC_BITS) <= _LAST_CODEC
        and ((batch.attributes & CODEC_BITS) != 0 or batch.count * MIN_RECORD_SIZE <= size - HEADER_SIZE)
        and not is_too_late(batch.base_timestamp)
        and not is_too_late(batch.max_timestamp)
        and (
            (batch.producer_id >= 0 and batch.base_sequence >= 0 and batch.producer_epoch >= 0)
            or (batch.producer_id < 0 and (batch.attributes & TRANSACTIONAL_BIT) == 0)
        )
    )


def _check_times(batch: Batch, data: Buffer, rules: Rules, now_ms: i64) -> None:
    if rules.log_append_time:
        return
    after = rules.after_ms
    latest = batch.max_timestamp
    # As in Kafka, an age that overflows 64 bits counts as too late.
    if after != _NO_LIMIT and (latest + _NO_LIMIT < now_ms if latest < 0 else latest - now_ms > after):
        raise InvalidTimestamp(timestamp=latest, now_ms=now_ms, before_ms=rules.before_ms, after_ms=after)
    before = rules.before_ms
    if before != _NO_LIMIT:
        earliest = check_records(data).min_timestamp
        if earliest != NO_TIMESTAMP and now_ms - earliest > before:
            raise InvalidTimestamp(timestamp=earliest, now_ms=now_ms, before_ms=before, after_ms=after)


def take_own(data: Buffer, at: i64) -> Batch:
    """Read one batch that this broker's coordinator or quorum leader has just built."""
    left: i64 = len(data) - at
    if left >= HEADER_SIZE:
        batch = Batch(data, at)
        if batch.magic == MAGIC and HEADER_SIZE <= batch.size <= left:
            return batch
    check_batch(data, at)
    raise AssertionError("check_batch() accepts a batch that the fast check rejected")


def take_replicated(data: Buffer, at: i64) -> Batch:
    """Check one batch fetched from the leader."""
    check_batch(data, at)
    return Batch(data, at)
