"""Decode the records of a batch, even of a damaged one.

The kernel decodes valid batches. If it rejects one, the records are parsed again one by one, no more
strictly than Kafka's reader does, so that the records before the damage are printed.
"""

from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.cli.dump.batches import Batch
from barnabas.cli.dump.java import add_to_sequence, int32, int64, string
from barnabas.cli.dump.source import DumpFailed, Source
from barnabas.records.area import record_area
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import HEADER_SIZE, MAGIC, BatchHeader, Codec, TimestampType

NO_SEQUENCE: Final = -1
# A batch is decoded in memory. Brokers accept much smaller batches only.
BATCH_BYTES_MAX: Final = MAX_DECOMPRESSED


class Shown(NamedTuple):
    """The printed fields of a record."""

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    header_keys: list[str]


class Decoded(NamedTuple):
    """The readable records, and the error of the record after them."""

    records: list[Shown]
    failure: str | None


def decode_records(source: Source, batch: Batch, header: BatchHeader) -> Decoded:
    """Decode a batch. Errors in its records are returned after the records before them, not raised."""
    if batch.size < HEADER_SIZE:
        raise DumpFailed(source.path, f"batch at byte {batch.position} is shorter than its header")
    if header.count == 0:
        return Decoded([], None)
    if batch.size > BATCH_BYTES_MAX:
        raise DumpFailed(
            source.path,
            f"batch at byte {batch.position} has {batch.size} bytes, maximum is {BATCH_BYTES_MAX}",
        )
    data = source.read(batch.position, batch.size)
    try:
        if header.magic == MAGIC:
            return Decoded(_decode_valid(data, header), None)
    except CorruptBatch:
        pass
    except Malformed as wrong:
        return Decoded([], _at(batch, wrong.what))
    return _decode_damaged(data, batch, header)


def _decode_valid(data: bytes, header: BatchHeader) -> list[Shown]:
    base_offset, base = header.base_offset, header.base_sequence
    return [
        Shown(
            record.offset,
            record.timestamp,
            add_to_sequence(base, record.offset - base_offset) if base >= 0 else NO_SEQUENCE,
            record.key,
            record.value,
            [name for name, _ in record.headers],
        )
        for record in decode_batch(data)
    ]


def _decode_damaged(data: bytes, batch: Batch, header: BatchHeader) -> Decoded:
    if header.count < 0:
        return Decoded([], _at(batch, f"record count {header.count} is negative"))
    try:
        area, at, end = record_area(data, 0, header)
    except Malformed as wrong:
        return Decoded([], _at(batch, wrong.what))
    records: list[Shown] = []
    parser = _Parser(area, at, end, header)
    try:
        for _ in range(header.count):
            records.append(parser.record())
        if parser.at != end:
            # Kafka checks for remaining bytes before it returns the last record.
            records.pop()
            raise _CorruptRecord(f"{end - parser.at} bytes remain after the last record")
    except _CorruptRecord as wrong:
        # Kafka reads all compressed records before it returns the first; others one by one.
        shown = records if header.codec is Codec.NONE else []
        return Decoded(shown, _at(batch, f"record {len(records)}: {wrong}"))
    return Decoded(records, None)


def _at(batch: Batch, what: str) -> str:
    return f"cannot decode the batch at byte {batch.position}: {what}"


class _CorruptRecord(Exception):
    """A record that Kafka's reader rejects, too. Never leaves this module."""


class _Parser:
    """Reads one record after another as Java does, including integer overflows."""

    def __init__(self, data: bytes, at: int, end: int, header: BatchHeader) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.base_offset = header.base_offset
        self.base_sequence = header.base_sequence
        self.base_timestamp = header.base_timestamp
        is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        self.append_time = header.max_timestamp if is_append_time else None

    def record(self) -> Shown:
        size = self.varint()
        start = self.at
        if not 0 < size <= self.end - start:
            raise _CorruptRecord(f"record length {size} is out of range (1 to {self.end - start})")
        self.at += 1  # attributes; none are defined
        timestamp = int64(self.base_timestamp + self.varlong())
        delta = self.varint()
        key, value = self.nullable(), self.nullable()
        header_keys = self.header_keys()
        if self.at - start != size:
            raise _CorruptRecord(f"record length is {size}, but its fields take {self.at - start} bytes")
        return Shown(
            int64(self.base_offset + delta),
            timestamp if self.append_time is None else self.append_time,
            add_to_sequence(self.base_sequence, delta) if self.base_sequence >= 0 else NO_SEQUENCE,
            key,
            value,
            header_keys,
        )

    def header_keys(self) -> list[str]:
        count = self.varint()
        if not 0 <= count <= self.end - self.at:
            raise _CorruptRecord(f"header count {count} is out of range (0 to {self.end - self.at})")
        keys = []
        for _ in range(count):
            key = self.nullable()
            if key is None:
                raise _CorruptRecord("header key is null")
            keys.append(string(key))
            self.nullable()
        return keys

    def nullable(self) -> bytes | None:
        size = self.varint()
        if size < 0:
            return None
        if size > self.end - self.at:
            raise _CorruptRecord(f"field of {size} bytes exceeds the {self.end - self.at} bytes left")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        raw = self.unsigned(5) & 0xFFFFFFFF
        return int32(raw >> 1 ^ -(raw & 1))

    def varlong(self) -> int:
        raw = self.unsigned(10) & 0xFFFFFFFFFFFFFFFF
        return int64(raw >> 1 ^ -(raw & 1))

    def unsigned(self, bytes_max: int) -> int:
        value = 0
        for index in range(bytes_max):
            if self.at >= self.end:
                raise _CorruptRecord("record is truncated")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise _CorruptRecord(f"varint has more than {bytes_max} bytes")
