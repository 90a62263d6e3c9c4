"""Open the metadata log, its newest snapshot and the last election. Blocks on the disk.

A missing directory is created. A directory of Kafka is taken over: it has no recovery point, so recovery
truncates only what looks like a torn end of the last segment.
"""

from bisect import bisect_right
from typing import Final, NamedTuple

from barnabas.raft.driver.metadata_log import MetadataLog, write_recovery_point
from barnabas.raft.errors import MissingSnapshot
from barnabas.raft.facts import METADATA, METADATA_TOPIC_ID, Election, OffsetAndEpoch
from barnabas.raft.quorum_state import read_quorum_state
from barnabas.raft.snapshots import (
    Snapshot,
    list_snapshots,
    read_snapshot,
    remove_snapshots,
    remove_unfinished,
    snapshot_name,
)
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.checkpoints import RECOVERY_POINTS, read_offsets
from barnabas.storage.directory.partition_metadata import read_partition_metadata, write_partition_metadata
from barnabas.storage.errors import CorruptFile, is_full
from barnabas.storage.files import FileSystem, NotCached
from barnabas.storage.log import Log
from barnabas.storage.names import LOG, directory_name, split_name
from barnabas.storage.recovery import open_log
from barnabas.storage.segment.segment import Segment

_REWRITTEN_AT_ONCE_BYTES: Final = 1024 * 1024


class OpenedQuorum(NamedTuple):
    """The opened log. The findings are for operators."""

    log: MetadataLog
    election: Election | None
    snapshot_id: OffsetAndEpoch | None
    snapshot: Snapshot | None
    findings: list[str]


def open_metadata_log(fs: FileSystem, parent: str, config: LogConfig, *, now_ms: int) -> OpenedQuorum:
    """Open `__cluster_metadata-0` in a log directory. For the executor."""
    directory = f"{parent}/{directory_name(METADATA)}"
    findings: list[str] = []
    recovery_point = _prepare(fs, parent, directory, findings)
    election = read_quorum_state(fs, directory)
    opened = open_log(
        fs,
        METADATA,
        directory,
        config,
        clean=False,
        recovery_point=recovery_point,
        start_offset=0,
        now_ms=now_ms,
    )
    opened.log.topic_id = METADATA_TOPIC_ID
    _make_durable(opened.log, recovery_point or 0)
    findings += opened.findings
    start = opened.log.start_offset
    snapshots = _snapshots(fs, directory, start)
    snapshot_id, snapshot = _newest(fs, directory, snapshots, start, findings)
    if start > 0 and (snapshot_id is None or snapshot_id.offset < start):
        raise MissingSnapshot(directory, log_start=start, newest=snapshot_id)
    log = MetadataLog(opened.log, snapshots)
    return OpenedQuorum(log, election, snapshot_id, snapshot, findings)


def _make_durable(log: Log, recovery_point: int) -> None:
    """Write everything above the recovery point again, and sync it, before this node acknowledges it.

    After a kill the last records may only be in the page cache. After a failed sync the kernel counts their
    pages as clean, and only a new write makes the next sync write them.
    """
    if recovery_point < log.end_offset:
        first = max(0, bisect_right(log.bases, recovery_point) - 1)
        for segment in log.segments[first:]:
            file = segment.open()
            try:
                for at in range(_position(segment, recovery_point), segment.size, _REWRITTEN_AT_ONCE_BYTES):
                    file.write(at, [file.read(at, min(_REWRITTEN_AT_ONCE_BYTES, segment.size - at))])
            except OSError as error:
                # A file system that copies on write needs room for this.
                if not is_full(error):
                    raise
            file.sync()
    log.fs.sync_directory(log.directory)


def _position(segment: Segment, offset: int) -> int:
    """The byte at which the batch with an offset begins; 0 if the file must be read to find it."""
    try:
        found = segment.find(max(offset, segment.base_offset))
    except NotCached:
        return 0
    return segment.size if found is None else found.position


def _prepare(fs: FileSystem, parent: str, directory: str, findings: list[str]) -> int | None:
    """Create missing files of the directory; return the recovery point, None if unknown."""
    fs.make_directory(directory)
    topic_id = read_partition_metadata(fs, directory)
    if topic_id is None:
        write_partition_metadata(fs, directory, METADATA_TOPIC_ID)
    elif topic_id != METADATA_TOPIC_ID:
        raise CorruptFile(f"{directory}/partition.metadata", "topic id is not that of __cluster_metadata")
    path = f"{directory}/{RECOVERY_POINTS}"
    try:
        offsets = read_offsets(fs, path)
    except CorruptFile as wrong:
        findings.append(f"{wrong}: recovery point unknown, reading the whole log")
        offsets = None
    if offsets is not None and METADATA in offsets:
        return offsets[METADATA]
    if any((split_name(entry.name) or (0, ""))[1] == LOG for entry in fs.entries(directory)):
        return None
    # A new log. From here on only data below a written recovery point is trusted.
    write_recovery_point(fs, directory, 0)
    fs.sync_directory(parent)
    return 0


def _snapshots(fs: FileSystem, directory: str, log_start: int) -> dict[OffsetAndEpoch, int]:
    """The snapshots of the log. Those below its start are useless."""
    remove_unfinished(fs, directory)
    found = list_snapshots(fs, directory)
    stale = [snapshot_id for snapshot_id in found if snapshot_id.offset < log_start]
    # Remove them only if there is a newer one: otherwise an operator needs what is left.
    if len(stale) < len(found):
        remove_snapshots(fs, directory, stale)
    return {snapshot_id: size for snapshot_id, size in found.items() if snapshot_id not in stale}


def _newest(
    fs: FileSystem,
    directory: str,
    snapshots: dict[OffsetAndEpoch, int],
    log_start: int,
    findings: list[str],
) -> tuple[OffsetAndEpoch | None, Snapshot | None]:
    """The newest readable snapshot. With an older one, more of the log is replayed."""
    damaged: CorruptFile | None = None
    for snapshot_id in sorted(snapshots, reverse=True):
        try:
            return snapshot_id, read_snapshot(fs, f"{directory}/{snapshot_name(snapshot_id)}")
        except CorruptFile as wrong:
            findings.append(f"{wrong}: ignored")
            damaged = damaged or wrong
            del snapshots[snapshot_id]
    if damaged is not None and log_start > 0:
        raise damaged
    return None, None
