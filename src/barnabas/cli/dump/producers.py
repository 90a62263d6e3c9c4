"""Dump producer snapshots (.snapshot) and aborted transactions (.txnindex)."""

import os
from struct import Struct
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.cli.dump.java import optional_long, take_from_sequence
from barnabas.cli.dump.output import Output
from barnabas.cli.dump.source import DumpFailed, Source, start_offset
from barnabas.protocol.schema.codec import decode
from barnabas.protocol.stored.transactions import ProducerEntry, ProducerSnapshot
from barnabas.records.header import crc32c_of

SNAPSHOT_VERSION: Final = 1
# The checksum covers the bytes after itself.
_VERSION: Final = Struct(">h")
_CHECKED_FROM: Final = 6
# A snapshot is read into memory; this is enough for three million producers.
SNAPSHOT_BYTES_MAX: Final = 128 << 20

# Version, producer id, first, last and last stable offset. Kafka reads one byte of the two-byte version.
_ABORTED: Final = Struct(">bxqqqq")
_ABORTED_VERSION: Final = 0


class _Corrupt(Exception):
    """A snapshot is corrupt; the message is Kafka's. Never leaves this module."""


def dump_snapshot(path: str, output: Output) -> None:
    """Print one line per producer. A corrupt snapshot is not fatal: a broker can rebuild it."""
    with Source(path, size_max=SNAPSHOT_BYTES_MAX) as source:
        data = source.read(0, source.size)
    try:
        entries = _read_snapshot(data)
    except _Corrupt as wrong:
        output.notice(str(wrong))
        return
    for entry in entries:
        output.line(_describe(entry))


def _read_snapshot(data: bytes) -> list[ProducerEntry]:
    if len(data) < _VERSION.size:
        raise _Corrupt("Snapshot failed schema validation: null")
    (version,) = _VERSION.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise _Corrupt(
            f"Snapshot failed schema validation: Snapshot contained an unknown file version {version}"
        )
    try:
        snapshot, _ = decode(ProducerSnapshot, version, data, _VERSION.size)
    except Malformed as wrong:
        raise _Corrupt(f"Snapshot failed schema validation: {wrong}") from None
    crc = crc32c_of(data, _CHECKED_FROM, len(data))
    if crc != snapshot.crc:
        raise _Corrupt(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {snapshot.crc}. Computed crc: {crc}"
        )
    return snapshot.producer_entries


def _describe(entry: ProducerEntry) -> str:
    first = entry.current_txn_first_offset
    text = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.epoch}"
        f" coordinatorEpoch: {entry.coordinator_epoch}"
        f" currentTxnFirstOffset: {optional_long(first if first >= 0 else None)}"
        f" lastTimestamp: {entry.timestamp}"
    )
    # A producer with only a transaction marker has no batch.
    if entry.last_offset < 0:
        return text
    return (
        f"{text} firstSequence: {take_from_sequence(entry.last_sequence, entry.offset_delta)}"
        f" lastSequence: {entry.last_sequence} lastOffset: {entry.last_offset}"
        f" offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
    )


def dump_txn_index(path: str, output: Output) -> None:
    """Print one line per aborted transaction. A missing file is not an error: most segments have none."""
    start_offset(path)
    if not os.path.exists(path):
        return
    with Source(path) as source:
        count = source.size // _ABORTED.size
        # Check all versions first: Kafka prints nothing of a file with an unknown version.
        for number in range(count):
            version = _ABORTED.unpack(source.read(number * _ABORTED.size, _ABORTED.size))[0]
            if version > _ABORTED_VERSION:
                raise DumpFailed(path, f"entry {number} has version {version}, expected {_ABORTED_VERSION}")
        for number in range(count):
            version, producer, first, last, stable = _ABORTED.unpack(
                source.read(number * _ABORTED.size, _ABORTED.size)
            )
            output.line(
                f"version: {version} producerId: {producer} firstOffset: {first} lastOffset: {last}"
                f" lastStableOffset: {stable}"
            )
