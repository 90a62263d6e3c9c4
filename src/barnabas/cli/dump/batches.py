"""Find the batches of a file, and print one line for each with the content of its header, valid or not.

A batch that is longer than the rest of the file ends the walk: a torn tail is not an error. A length that is
too small for any message format is an error.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.crc32c import crc32c
from barnabas.cli.dump.java import add_to_sequence, boolean, int64, optional_long
from barnabas.cli.dump.output import Output
from barnabas.cli.dump.source import WINDOW_BYTES, DumpFailed, Source
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER,
    HEADER_SIZE,
    LENGTH_EXCLUDES,
    BatchHeader,
    Codec,
)

# Base offset, length, leader epoch and magic: enough to find the end of a batch and its format.
_PROLOGUE: Final = Struct(">qiib")
# CRC, magic, attributes and timestamp of a version 1 message; version 0 has no timestamp.
_LEGACY: Final = Struct(">IbBq")
# The minimum length of any message format.
SMALLEST_LENGTH: Final = 14
LAST_LEGACY_MAGIC: Final = 1

_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


class Batch(NamedTuple):
    """Position, offset, length and magic of a batch."""

    position: int
    offset: int
    length: int
    magic: int

    @property
    def size(self) -> int:
        return LENGTH_EXCLUDES + self.length


def walk(source: Source, start: int, end: int) -> Iterator[Batch]:
    """Yield the batches between two positions. A batch that extends past `end` ends the walk."""
    at = start
    while at < end - _PROLOGUE.size:
        prologue = source.read(at, _PROLOGUE.size)
        if len(prologue) < _PROLOGUE.size:
            raise DumpFailed(source.path, f"file was truncated at byte {at} during the dump")
        offset, length, _, magic = _PROLOGUE.unpack(prologue)
        if length < SMALLEST_LENGTH:
            raise DumpFailed(
                source.path,
                f"batch at byte {at} has length {length}, expected at least {SMALLEST_LENGTH}",
            )
        if at > end - LENGTH_EXCLUDES - length:
            return
        yield Batch(at, offset, length, magic)
        at += LENGTH_EXCLUDES + length


def clip(source: Source, position: int, size: int) -> tuple[int, int]:
    """Return start and end of the part of a log file from `position` on, at most `size` bytes."""
    if not 0 <= position <= source.size:
        raise DumpFailed(source.path, f"position {position} is outside the file of {source.size} bytes")
    if size < 0:
        raise DumpFailed(source.path, f"size limit {size} is negative")
    return position, min(position + size, source.size)


def read_header(source: Source, batch: Batch) -> BatchHeader:
    """Read all header fields of a batch of version 2 or later, even if its length is smaller."""
    data = source.read(batch.position, HEADER_SIZE)
    if len(data) < HEADER_SIZE:
        raise DumpFailed(source.path, f"header of the batch at byte {batch.position} is truncated")
    return BatchHeader._make(HEADER.unpack(data))


def last_offset(source: Source, batch: Batch) -> int:
    if batch.magic <= LAST_LEGACY_MAGIC:
        return batch.offset
    header = read_header(source, batch)
    return int64(header.base_offset + header.last_offset_delta)


# Lines


def print_batch(source: Source, batch: Batch, header: BatchHeader, output: Output) -> None:
    output.write(
        f"baseOffset: {header.base_offset} lastOffset: {int64(header.last_offset)} count: {header.count}"
        f" baseSequence: {header.base_sequence} lastSequence: {_last_sequence(header)}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.leader_epoch} isTransactional: {boolean(header.is_transactional)}"
        f" isControl: {boolean(header.is_control)} deleteHorizonMs: {optional_long(header.delete_horizon_ms)}"
    )
    codec = codec_name(source, batch, header.attributes & CODEC_BITS)
    valid = batch.size >= HEADER_SIZE and _crc32c(source, batch) == header.crc
    output.line(
        f" position: {batch.position} {timestamp_type(header)}: {header.max_timestamp} size: {batch.size}"
        f" magic: {batch.magic} compresscodec: {codec} crc: {header.crc} isvalid: {boolean(valid)}"
    )


def _last_sequence(header: BatchHeader) -> int:
    if header.base_sequence == -1:
        return -1
    return add_to_sequence(header.base_sequence, header.last_offset_delta)


def timestamp_type(header: BatchHeader) -> str:
    return _TIMESTAMP_TYPES[header.timestamp_type]


def codec_name(source: Source, batch: Batch, bits: int) -> str:
    if bits > Codec.ZSTD:
        raise DumpFailed(source.path, f"batch at byte {batch.position} has unknown compression codec {bits}")
    return Codec(bits).name.lower()


def _crc32c(source: Source, batch: Batch) -> int:
    crc = 0
    for piece in _pieces(source, batch.position + ATTRIBUTES_AT, batch.position + batch.size):
        crc = crc32c(piece, crc)
    return crc


def _pieces(source: Source, at: int, end: int) -> Iterator[bytes]:
    """Yield a batch in windows, because it may be as large as the file."""
    while at < end:
        piece = source.read(at, min(WINDOW_BYTES, end - at))
        if not piece:
            raise DumpFailed(source.path, f"file was truncated at byte {at} during the dump")
        yield piece
        at += len(piece)


# Messages of the formats before version 2


class LegacyMessage(NamedTuple):
    """The fields before the key. Version 0 has no timestamp."""

    crc: int
    magic: int
    attributes: int
    timestamp: int
    timestamp_type: str
    is_valid: bool


def print_legacy(source: Source, batch: Batch, output: Output) -> LegacyMessage:
    """Print the line of a message of version 0 or 1, as Kafka's tool does."""
    output.write(f"offset: {batch.offset}")
    message = _read_legacy(source, batch)
    codec = codec_name(source, batch, message.attributes & CODEC_BITS)
    output.line(
        f" position: {batch.position} {message.timestamp_type}: {message.timestamp} size: {batch.size}"
        f" magic: {batch.magic} compresscodec: {codec} crc: {message.crc}"
        f" isvalid: {boolean(message.is_valid)}"
    )
    return message


def _read_legacy(source: Source, batch: Batch) -> LegacyMessage:
    start, end = batch.position + LENGTH_EXCLUDES, batch.position + batch.size
    data = source.read(start, _LEGACY.size)
    if batch.magic < 0 or len(data) < _LEGACY.size:
        raise DumpFailed(
            source.path, f"batch at byte {batch.position} is truncated or has invalid magic {batch.magic}"
        )
    crc, magic, attributes, timestamp = _LEGACY.unpack(data)
    computed = 0
    for piece in _pieces(source, start + 4, end):
        computed = zlib.crc32(piece, computed)
    if magic == 0:
        return LegacyMessage(crc, magic, attributes, -1, "NoTimestampType", computed == crc)
    kind = _TIMESTAMP_TYPES[attributes >> 3 & 1]
    return LegacyMessage(crc, magic, attributes, timestamp, kind, computed == crc)
