"""Dump a .log or .checkpoint file: a line for each batch, and optionally one for each record."""

import os
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.cli.dump.batches import (
    LAST_LEGACY_MAGIC,
    Batch,
    LegacyMessage,
    clip,
    print_batch,
    print_legacy,
    read_header,
    timestamp_type,
    walk,
)
from barnabas.cli.dump.decoders import CannotDecode, Decoder
from barnabas.cli.dump.java import INT_MAX, boolean, int64
from barnabas.cli.dump.output import Findings, Output
from barnabas.cli.dump.records import BATCH_BYTES_MAX, NO_SEQUENCE, Shown, decode_records
from barnabas.cli.dump.source import DumpFailed, Source, absolute_path, parse_long, start_offset
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.stored.framing import decode_control
from barnabas.records.control import TRANSACTION_MARKERS, ControlType, read_control_type
from barnabas.records.header import CODEC_BITS, LENGTH_EXCLUDES, BatchHeader, Codec
from barnabas.storage.names import LOG

BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
# Positions of the digits in OFFSET-EPOCH.checkpoint, the name of a metadata snapshot.
_OFFSET_DIGITS: Final = slice(0, 20)
_EPOCH_DIGITS: Final = slice(21, 31)
# Position of the key in a message of version 0 and of version 1, which has a timestamp before it.
_LEGACY_KEY_AT: Final = (6, 14)
_SIZE: Final = Struct(">i")

# Kafka prints a colon after the first title only.
_TITLES: Final = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


class LogOptions(NamedTuple):
    """Which parts of a log are printed."""

    deep: bool
    contents: bool
    skip_metadata: bool
    bytes_max: int


def dump_log(path: str, decoder: Decoder, options: LogOptions, findings: Findings, output: Output) -> None:
    output.line(_title(path))
    with Source(path) as source:
        start, end = clip(source, 0, options.bytes_max)
        records = _RecordPrinter(source, decoder, options, findings, output) if options.deep else None
        position = 0
        for batch in walk(source, start, end):
            if batch.magic <= LAST_LEGACY_MAGIC:
                message = print_legacy(source, batch, output)
                if records is not None:
                    records.print_legacy(batch, message)
            else:
                header = read_header(source, batch)
                print_batch(source, batch, header, output)
                if records is not None:
                    records.print_records(batch, header)
            position = batch.position + batch.size
        # With --max-bytes the walk ends early on purpose.
        if position < end and options.bytes_max == INT_MAX:
            output.line(f"Found {end - position} invalid bytes at the end of {os.path.basename(path)}")


def _title(path: str) -> str:
    name = os.path.basename(path)
    if name.endswith(LOG):
        return f"Log starting offset: {start_offset(path)}"
    if name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot"
    offset, epoch = parse_long(path, name[_OFFSET_DIGITS]), parse_long(path, name[_EPOCH_DIGITS])
    if not -INT_MAX - 1 <= epoch <= INT_MAX:
        raise DumpFailed(path, f"epoch {epoch} in the file name is out of range")
    return f"Snapshot end offset: {offset}, epoch: {epoch}"


class _RecordPrinter:
    """Prints records, and reports offsets that are not consecutive."""

    def __init__(
        self, source: Source, decoder: Decoder, options: LogOptions, findings: Findings, output: Output
    ) -> None:
        self._source = source
        self._path = absolute_path(source.path)
        self._decoder = decoder
        self._options = options
        self._findings = findings
        self._output = output
        # As in Kafka's tool, so a log that does not start at 0 has a gap at its start.
        self._last_offset = -1

    def print_records(self, batch: Batch, header: BatchHeader) -> None:
        decoded = decode_records(self._source, batch, header)
        kind = timestamp_type(header)
        for record in decoded.records:
            self._follow(record.offset)
            if not self._options.skip_metadata:
                self._output.write(
                    f"| offset: {record.offset} {kind}: {record.timestamp} keySize: {_size(record.key)}"
                    f" valueSize: {_size(record.value)} sequence: {record.sequence}"
                    f" headerKeys: [{','.join(record.header_keys)}]"
                )
                if header.is_control:
                    self._output.write(_describe_control(self._source.path, record))
            if self._options.contents and not header.is_control:
                self._output.write(self._contents(record))
            self._output.write("\n")
        if decoded.failure is not None:
            raise DumpFailed(self._source.path, decoded.failure)

    def print_legacy(self, batch: Batch, message: LegacyMessage) -> None:
        record = self._legacy_record(batch, message)
        self._follow(record.offset)
        if not self._options.skip_metadata:
            self._output.write(
                f"| offset: {record.offset} {message.timestamp_type}: {record.timestamp}"
                f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
                f" isValid: {boolean(message.is_valid)} crc: {message.crc}"
            )
        if self._options.contents:
            self._output.write(self._contents(record))
        self._output.write("\n")

    def _legacy_record(self, batch: Batch, message: LegacyMessage) -> Shown:
        if message.attributes & CODEC_BITS != Codec.NONE or batch.size > BATCH_BYTES_MAX:
            # Brokers since 4.0 do not read this format; only uncompressed messages are printed.
            raise DumpFailed(
                self._source.path,
                f"version {message.magic} message at byte {batch.position} is compressed or too large",
            )
        data = self._source.read(batch.position + LENGTH_EXCLUDES, batch.length)
        key, at = self._sized(batch, data, _LEGACY_KEY_AT[message.magic])
        value, _ = self._sized(batch, data, at)
        return Shown(batch.offset, message.timestamp, NO_SEQUENCE, key, value, [])

    def _sized(self, batch: Batch, data: bytes, at: int) -> tuple[bytes | None, int]:
        if at + _SIZE.size > len(data):
            raise DumpFailed(self._source.path, f"message at byte {batch.position} is truncated")
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        if size > len(data) - at:
            raise DumpFailed(self._source.path, f"message at byte {batch.position} is truncated")
        return (None, at) if size < 0 else (data[at : at + size], at + size)

    def _follow(self, offset: int) -> None:
        if offset != int64(self._last_offset + 1):
            self._findings.gap(self._path, self._last_offset, offset)
        self._last_offset = offset

    def _contents(self, record: Shown) -> str:
        try:
            key, value = self._decoder(record)
        except CannotDecode as wrong:
            raise DumpFailed(self._source.path, f"record {record.offset}: {wrong}") from None
        prefix = "| " if self._options.skip_metadata else " "
        text = ""
        if key is not None:
            text = f"{prefix}key: {key}"
            prefix = " "
        return text if value is None else f"{text}{prefix}payload: {value}"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _describe_control(path: str, record: Shown) -> str:
    """Return the part of a record's line about its control type.

    Kafka's tool decodes every LeaderChange as version 0 and fails on version 1, which has directory ids. This
    one decodes both.
    """
    try:
        kind = read_control_type(record.key)
        if not isinstance(kind, ControlType):
            return f" controlType: UNKNOWN({kind})"
        if record.value is None:
            raise Malformed("value is missing", where=f"control record {kind.name}")
        message, version = decode_control(kind, record.value)
    except Malformed as wrong:
        raise DumpFailed(path, f"record {record.offset}: {wrong}") from None
    if kind in TRANSACTION_MARKERS:
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {message.coordinator_epoch}"
    return f" {_TITLES[kind]} {json_text(to_json(message, version))}"
