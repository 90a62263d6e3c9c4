"""Admit a batch to a log: its header as a native object, and the checks before the append (compiled).

A produced batch is checked by its header and CRC. If it is not compressed, its record count and max timestamp
are compared with its records, because consumers and retention rely on them and a producer may send anything;
compressed records are not decompressed for that (docs/design/0007). The records are parsed only for topics
whose settings need it: compacted topics require keys, and message.timestamp.before.max.ms requires the
earliest timestamp.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64, mypyc_attr

from barnabas.base.checksum import Checksums
from barnabas.base.crc32c import crc32c
from barnabas.records.area import MIN_RECORD_SIZE
from barnabas.records.decode import BAD, read_varint
from barnabas.records.errors import InvalidBatch, batch_at
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_LENGTH_AT,
    CODEC_BITS,
    CONTROL_BIT,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
)
from barnabas.records.validate import check_batch, check_produced, check_records
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import BatchTooLarge, InvalidTimestamp, MissingKey
from barnabas.storage.files import Buffer

# From this size on a batch is written while a thread computes its CRC: 0.9 of a bare write instead of 0.8.
OVERLAP_BYTES: Final = 256 * 1024

_LAST_CODEC: Final[i64] = 4
_NO_LIMIT: Final[i64] = 0x7FFFFFFFFFFFFFFF
# Half of the largest i64: mypyc compiles a larger literal to a Python object.
_HALF_OF_MAX: Final = 0x3FFFFFFFFFFFFFFF
# The attribute bits that a client may set: codec and "transactional".
_CLIENT_ATTRIBUTES: Final[i64] = CODEC_BITS | TRANSACTIONAL_BIT
# The oldest max timestamp that is corrected; it lies before any plausible one.
_OLDEST: Final[i64] = -0x7FFEFFFFFFFFFFFF
# Returned by latest_delta() if the records do not match the header. No delta is that low.
_MISMATCH: Final[i64] = -0x7FFFFFFFFFFFFFFF


@mypyc_attr(acyclic=True)
class Batch:
    """The header fields of one batch that an append or a replay needs.

    records.header.BatchHeader has the same fields as a tuple. This class is for code that visits every batch:
    its fields are machine words, so reading one is not a call.
    """

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
        # Whether max_timestamp differs from the header, which then needs to be rewritten.
        self.is_corrected = False

    def is_control(self) -> bool:
        return (self.attributes & CONTROL_BIT) != 0


class Rules:
    """A topic's settings about incoming batches, as machine words for fast access."""

    def __init__(self, config: LogConfig) -> None:
        self.max_bytes: Final[i64] = config.max_message_bytes
        self.min_in_sync: Final[i64] = config.min_insync_replicas
        self.after_ms: Final[i64] = config.message_timestamp_after_max_ms
        self.before_ms: Final[i64] = config.message_timestamp_before_max_ms
        self.log_append_time: Final[bool] = config.log_append_time
        self.needs_keys: Final[bool] = config.compacts


def take_produced(
    data: Buffer, rules: Rules, now_ms: i64, start: i64 = -1, crc_follows: bool = False
) -> Batch:
    """Check that a producer sent one valid batch that obeys the topic's settings.

    If `data` is a view of a bytes object, `start` may say where it begins there, which saves a copy. With
    `crc_follows` the caller checks the CRC, before the batch becomes visible.
    """
    size: i64 = len(data)
    if size < HEADER_SIZE:
        check_produced(data)
    frame: Buffer = data
    at: i64 = 0
    if start >= 0 and isinstance(data, memoryview):
        whole = data.obj
        if isinstance(whole, bytes):
            frame = whole
            at = start
    batch = Batch(frame, at)
    if not _is_sound(batch, size) or not (crc_follows or batch.crc == crc32c(covered(data, size))):
        explain(data)
    if (batch.attributes & CODEC_BITS) == 0:
        compare_with_records(batch, data, frame, at)
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
    # The fast form of check_produced(), which is called for the error if this returns False. The max
    # timestamp of an uncompressed batch is not checked yet: it may be corrected.
    bits = batch.attributes & CODEC_BITS
    return (
        batch.size == size
        and batch.magic == MAGIC
        and batch.base_offset == 0
        and batch.count > 0
        and batch.last_delta == batch.count - 1
        and (batch.attributes & ~_CLIENT_ATTRIBUTES) == 0
        and bits <= _LAST_CODEC
        and (bits != 0 or batch.count * MIN_RECORD_SIZE <= size - HEADER_SIZE)
        and batch.base_timestamp >> 1 < _HALF_OF_MAX
        and (bits == 0 or batch.max_timestamp >> 1 < _HALF_OF_MAX)
        and (
            (batch.producer_id >= 0 and batch.base_sequence >= 0 and batch.producer_epoch >= 0)
            or (batch.producer_id < 0 and (batch.attributes & TRANSACTIONAL_BIT) == 0)
        )
    )


def compare_with_records(batch: Batch, data: Buffer, frame: Buffer, at: i64) -> None:
    """Compare the header of the uncompressed batch `data`, at frame[at:], with its records.

    InvalidBatch if the record count is wrong. A wrong max timestamp is corrected in `batch`.
    """
    if not isinstance(frame, bytes):
        frame = bytes(frame)
    base = batch.base_timestamp
    delta = latest_delta(frame, at + RECORDS_AT, at + batch.size, batch.count)
    if delta == _MISMATCH:
        # Errors of the header and the CRC take precedence.
        check_produced(data)
        raise InvalidBatch(
            f"batch does not hold the {batch.count} records that its header says", where="records"
        )
    last = base + delta
    if base == NO_TIMESTAMP or (last == batch.max_timestamp and last >= NO_TIMESTAMP):
        if batch.max_timestamp >> 1 >= _HALF_OF_MAX:
            explain(data)
        return
    # Compiled, an overflow wraps around to a sign that neither part has; interpreted, the sum has more than
    # 64 bits.
    if ((base ^ last) & (delta ^ last)) < 0 or last >> 63 > 0 or last >> 63 < -1:
        raise InvalidBatch(
            f"max timestamp {int(base) + int(delta)} is out of range (64 bits)", where="records"
        )
    if last < _OLDEST:
        # Leave it to the check of the time, which rejects a batch whose age does not fit into 64 bits.
        if batch.max_timestamp >> 1 >= _HALF_OF_MAX:
            explain(data)
        return
    if last >> 1 >= _HALF_OF_MAX:
        check_produced(data)
        raise InvalidBatch(f"timestamps {base} to {last} are out of range", where=batch_at(0))
    # If all records are from before 1970, the batch has no max timestamp, as in Kafka.
    batch.max_timestamp = last if last > NO_TIMESTAMP else NO_TIMESTAMP
    batch.is_corrected = True


def latest_delta(data: bytes, at: i64, end: i64, count: i64) -> i64:
    """The largest timestamp delta of `count` records; _MISMATCH if they do not fill data[at:end] exactly.

    It reads only lengths and timestamps, so that a broker can afford it for every batch. check_records()
    checks everything.
    """
    latest: i64 = _MISMATCH
    while count > 0:
        length: i64 = data[at] if at < end else 0x80
        body: i64 = at + 1
        if length >= 0x80:
            length, body = read_varint(data, at, end)
            if body == BAD:
                return _MISMATCH
        else:
            # Fast path for records of up to 63 bytes. The zigzag of a length is never odd.
            if length & 1:
                return _MISMATCH
            length >>= 1
        if length < MIN_RECORD_SIZE - 1 or length > end - body:
            return _MISMATCH
        delta: i64 = data[body + 1]
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, past = read_varint(data, body + 1, body + length)
            if past == BAD:
                return _MISMATCH
        if delta > latest:
            latest = delta
        at = body + length
        count -= 1
    return latest if at == end else _MISMATCH


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


class PendingChecksum:
    """The CRC of a large batch, which a thread computes while the batch is written."""

    def __init__(self, checksums: Checksums, data: Buffer) -> None:
        self._checksums = checksums
        self._is_pending = True
        self._is_wrong = False
        # The CRC in the header, once it was read.
        self.expected: i64 = -1
        checksums.begin(covered(data, len(data)))

    def matches(self) -> bool:
        """Wait for the CRC. True if the header was not read: then there is another error."""
        if self._is_pending:
            # Each begin() needs exactly one end(), even if that fails.
            self._is_pending = False
            found: i64 = self._checksums.end()
            self._is_wrong = self.expected >= 0 and found != self.expected
        return not self._is_wrong


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
