"""Snapshots of the metadata: `<end offset>-<epoch>.checkpoint` next to the log, and `bootstrap.checkpoint`.

A snapshot is a small log: a control batch with the header, batches of records, a control batch with the
footer. It is written under a temporary name and renamed when it is complete. The format is Kafka's. Reading
and writing block on the disk: call them in the executor.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.base.values import value
from barnabas.protocol.stored.control import SnapshotFooterRecord, SnapshotHeaderRecord
from barnabas.protocol.stored.framing import decode_control, encode_control
from barnabas.raft.batches import decode_values, encode_record
from barnabas.raft.facts import OffsetAndEpoch
from barnabas.records.builder import BatchBuilder
from barnabas.records.control import ControlType, build_control_batch, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import BatchHeader
from barnabas.records.record import Record
from barnabas.records.validate import check_batch
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem

SUFFIX: Final = ".checkpoint"
PARTIAL: Final = ".part"
DELETED: Final = ".deleted"
BOOTSTRAP: Final = "bootstrap.checkpoint"

# Kafka fills batches up to 8 MiB. Readers do not care, and with smaller ones the loop can run other tasks in
# between.
SNAPSHOT_BATCH_BYTES: Final = 256 * 1024

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_UNFINISHED: Final = re.compile(r"[0-9]{20}-[0-9]{10}.*\.checkpoint\.(?:part|deleted)")
_OFFSET_MAX: Final = 2**63 - 1
_EPOCH_MAX: Final = 2**31 - 1


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{SUFFIX}"


def parse_snapshot_name(name: str) -> OffsetAndEpoch | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    offset, epoch = int(found[1]), int(found[2])
    return OffsetAndEpoch(offset, epoch) if offset <= _OFFSET_MAX and epoch <= _EPOCH_MAX else None


def list_snapshots(fs: FileSystem, directory: str) -> dict[OffsetAndEpoch, int]:
    """The complete snapshots in order, with their sizes."""
    found = {}
    for entry in fs.entries(directory):
        snapshot_id = None if entry.is_directory else parse_snapshot_name(entry.name)
        if snapshot_id is not None:
            found[snapshot_id] = entry.size
    return dict(sorted(found.items()))


def remove_unfinished(fs: FileSystem, directory: str) -> None:
    """Remove files that were being written or deleted when the broker stopped."""
    for entry in fs.entries(directory):
        if not entry.is_directory and _UNFINISHED.fullmatch(entry.name):
            fs.remove(f"{directory}/{entry.name}")


def remove_snapshots(fs: FileSystem, directory: str, gone: Iterable[OffsetAndEpoch]) -> None:
    for snapshot_id in gone:
        fs.remove(f"{directory}/{snapshot_name(snapshot_id)}")


# Reading


@value
class Snapshot:
    """A snapshot that was read, with valid CRCs, header and footer."""

    path: str
    last_contained_ms: int
    data: bytes
    # Positions of the batches with records.
    batches: tuple[int, ...]

    def records(self) -> Iterator[tuple[object, int]]:
        """Yield the records with their versions. CorruptFile if one is invalid."""
        for at in self.batches:
            try:
                yield from decode_values(self.data, at)
            except Malformed as wrong:
                raise CorruptFile(self.path, f"batch at byte {at}: {wrong}") from None


def read_snapshot(fs: FileSystem, path: str) -> Snapshot:
    """Read and check a whole snapshot. CorruptFile if it is invalid."""
    data = fs.read(path)
    last_contained_ms: int | None = None
    has_footer = False
    batches = []
    at = 0
    while at < len(data):
        header = _check(data, at, path)
        if has_footer:
            raise CorruptFile(path, f"data follows the footer at byte {at}")
        if last_contained_ms is None:
            last_contained_ms = _read_header(data, at, header, path)
        elif header.is_control:
            has_footer = _control_type(data, at, path) == ControlType.SNAPSHOT_FOOTER
        else:
            batches.append(at)
        at += header.size
    if last_contained_ms is None or not has_footer:
        raise CorruptFile(path, "snapshot has no footer")
    return Snapshot(path, last_contained_ms, data, tuple(batches))


def read_part(fs: FileSystem, path: str, position: int, size: int) -> bytes:
    """Read a part of a snapshot for another node, without checks."""
    file = fs.open(path)
    try:
        return file.read(position, size)
    finally:
        file.close()


def _check(data: bytes, at: int, path: str) -> BatchHeader:
    try:
        return check_batch(data, at)
    except Malformed as wrong:
        raise CorruptFile(path, str(wrong)) from None


def _read_header(data: bytes, at: int, header: BatchHeader, path: str) -> int:
    if not header.is_control or _control_type(data, at, path) != ControlType.SNAPSHOT_HEADER:
        raise CorruptFile(path, "snapshot has no header")
    try:
        message = decode_control(ControlType.SNAPSHOT_HEADER, _first(data, at, path).value or b"").message
    except Malformed as wrong:
        raise CorruptFile(path, str(wrong)) from None
    assert isinstance(message, SnapshotHeaderRecord), f"{message} is not a snapshot header"
    return message.last_contained_log_timestamp


def _control_type(data: bytes, at: int, path: str) -> int:
    try:
        return read_control_type(_first(data, at, path).key)
    except Malformed as wrong:
        raise CorruptFile(path, str(wrong)) from None


def _first(data: bytes, at: int, path: str) -> Record:
    """The first record of a control batch, which has its type."""
    try:
        records = decode_batch(data, at)
    except Malformed as wrong:
        raise CorruptFile(path, str(wrong)) from None
    if not records:
        raise CorruptFile(path, f"control batch at byte {at} is empty")
    return records[0]


# Writing


def snapshot_batches(
    records: Iterable[object], *, epoch: int, last_contained_ms: int, now_ms: int
) -> Iterator[bytes]:
    """Yield the batches of a snapshot, with offsets from 0."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_ms)
    yield _control(ControlType.SNAPSHOT_HEADER, header, offset=0, epoch=epoch, now_ms=now_ms)
    offset = 1
    builder = BatchBuilder(max_bytes=SNAPSHOT_BATCH_BYTES, base_offset=offset, leader_epoch=epoch)
    for record in records:
        value = encode_record(record)
        if not builder.append(now_ms, None, value):
            yield builder.build()
            offset += builder.count
            builder = BatchBuilder(max_bytes=SNAPSHOT_BATCH_BYTES, base_offset=offset, leader_epoch=epoch)
            builder.append(now_ms, None, value)
    if builder.count:
        yield builder.build()
        offset += builder.count
    footer = SnapshotFooterRecord(version=0)
    yield _control(ControlType.SNAPSHOT_FOOTER, footer, offset=offset, epoch=epoch, now_ms=now_ms)


def _control(kind: ControlType, message: object, *, offset: int, epoch: int, now_ms: int) -> bytes:
    return build_control_batch(
        kind, encode_control(message), timestamp=now_ms, base_offset=offset, leader_epoch=epoch
    )


class SnapshotFile:
    """A snapshot being written. Until freeze() it has a temporary name, and a restart removes it."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.path: Final = path
        self.size = 0
        self._fs = fs
        self._part = path + PARTIAL
        self._file = fs.open(self._part, create=True)
        self._file.truncate(0)

    def append(self, batch: bytes) -> None:
        self._file.write(self.size, [batch])
        self.size += len(batch)

    def freeze(self) -> None:
        """Sync the complete snapshot, and rename it durably."""
        self._file.sync()
        self._file.close()
        self._fs.rename(self._part, self.path)
        self._fs.sync_directory(self.path.rpartition("/")[0])

    def abandon(self) -> None:
        self._file.close()
        self._fs.remove(self._part)


def read_bootstrap(fs: FileSystem, directory: str) -> list[object] | None:
    """The initial records of a formatted log directory; None without the file."""
    try:
        snapshot = read_snapshot(fs, f"{directory}/{BOOTSTRAP}")
    except FileNotFoundError:
        return None
    return [record for record, _ in snapshot.records()]


def write_bootstrap(fs: FileSystem, directory: str, records: Iterable[object], *, now_ms: int) -> None:
    file = SnapshotFile(fs, f"{directory}/{BOOTSTRAP}")
    for batch in snapshot_batches(records, epoch=0, last_contained_ms=0, now_ms=now_ms):
        file.append(batch)
    file.freeze()


def new_log_start(
    snapshots: Mapping[OffsetAndEpoch, int],
    *,
    log_size: int,
    max_bytes: int,
    max_age_ms: int,
    age_ms: Callable[[OffsetAndEpoch], int],
) -> OffsetAndEpoch | None:
    """The snapshot at which the log may start; None to keep everything. A limit of -1 means no limit.

    As in Kafka, while there are at least two snapshots, the oldest is deleted if log and snapshots together
    are too large, or if its content is too old.
    """
    total = log_size + sum(snapshots.values())
    start: OffsetAndEpoch | None = None
    for oldest, following in pairwise(sorted(snapshots)):
        too_large = max_bytes >= 0 and total > max_bytes
        if not too_large and not (max_age_ms >= 0 and age_ms(oldest) > max_age_ms):
            break
        total -= snapshots[oldest]
        start = following
    return start
