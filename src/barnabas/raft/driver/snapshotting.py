"""Write snapshots of the listener's state, and delete old snapshots and the log before them."""

from collections.abc import Iterable
from functools import partial

from barnabas.raft.driver.log_work import LogWork
from barnabas.raft.driver.metadata_log import MetadataLog
from barnabas.raft.errors import BadSnapshotId
from barnabas.raft.facts import OffsetAndEpoch
from barnabas.raft.settings import QuorumSettings
from barnabas.raft.snapshots import (
    SnapshotFile,
    new_log_start,
    read_snapshot,
    remove_snapshots,
    snapshot_batches,
    snapshot_name,
)
from barnabas.records.header import HEADER_SIZE, read_header
from barnabas.storage.removal import remove_all, retain
from barnabas.storage.warming import warmed


def check_snapshot_id(log: MetadataLog, snapshot_id: OffsetAndEpoch, high_watermark: int) -> None:
    """BadSnapshotId unless everything below it is committed, and its last record has that epoch."""
    offset, epoch = snapshot_id
    if snapshot_id in log.snapshots:
        return
    if not log.start_offset <= offset <= high_watermark or offset <= 0:
        why = f"log starts at {log.start_offset} and is committed up to {high_watermark}"
        raise BadSnapshotId(snapshot_id, why)
    found = log.log.epochs.epoch_for(offset - 1)
    if found != epoch:
        raise BadSnapshotId(snapshot_id, f"the record before it has epoch {found}")


async def write_snapshot(work: LogWork, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
    """Write a snapshot durably, batch by batch, letting the loop run in between."""
    log, run = work.log, work.executor.run
    if snapshot_id in log.snapshots:
        return
    last_contained_ms = await _append_time(work, snapshot_id.offset - 1)
    path = f"{log.log.directory}/{snapshot_name(snapshot_id)}"
    file = await run(partial(SnapshotFile, log.log.fs, path))
    try:
        for batch in snapshot_batches(
            records,
            epoch=snapshot_id.epoch,
            last_contained_ms=last_contained_ms,
            now_ms=work.clock.now_ms(),
        ):
            await run(partial(file.append, batch))
    except Exception:
        # The records could not be read or encoded, or the disk is full. Remove the partial file.
        await run(file.abandon)
        raise
    await run(file.freeze)
    log.snapshots = dict(sorted({**log.snapshots, snapshot_id: file.size}.items()))


async def _append_time(work: LogWork, offset: int) -> int:
    """The append time of the batch with this offset; 0 if it is not in the log any more."""
    log = work.log.log
    if offset < log.start_offset:
        return 0
    read = partial(log.read, offset, upto=log.end_offset, bytes_max=HEADER_SIZE)
    return read_header((await warmed(log, work.executor, read)).read()).max_timestamp


async def clean(work: LogWork, settings: QuorumSettings, ages: "SnapshotAges") -> None:
    """Delete old snapshots and the log before them, by the retention settings."""
    log = work.log
    await ages.learn(work)
    start = new_log_start(
        log.snapshots,
        log_size=log.log.size,
        max_bytes=settings.max_retention_bytes,
        max_age_ms=settings.max_retention_ms,
        age_ms=lambda snapshot_id: work.clock.now_ms() - ages.last_contained_ms(snapshot_id),
    )
    if start is None:
        return
    gone = [snapshot_id for snapshot_id in log.snapshots if snapshot_id < start]
    log.snapshots = {one: size for one, size in log.snapshots.items() if one >= start}
    log.log.advance_start(start.offset)
    files = await retain(log.log, work.executor, work.clock.now_ms())
    await work.executor.run(partial(remove_all, log.log.fs, files))
    await work.executor.run(partial(remove_snapshots, log.log.fs, log.log.directory, gone))


class SnapshotAges:
    """The append times of the last records in snapshots, read from their headers and cached."""

    def __init__(self) -> None:
        self._known: dict[OffsetAndEpoch, int] = {}

    def last_contained_ms(self, snapshot_id: OffsetAndEpoch) -> int:
        return self._known[snapshot_id]

    async def learn(self, work: LogWork) -> None:
        """Read the unknown ones, except that of the newest snapshot, which is never deleted."""
        log = work.log
        old = sorted(log.snapshots)[:-1]
        self._known = {one: at for one, at in self._known.items() if one in log.snapshots}
        for snapshot_id in old:
            if snapshot_id not in self._known:
                path = f"{log.log.directory}/{snapshot_name(snapshot_id)}"
                snapshot = await work.executor.run(partial(read_snapshot, log.log.fs, path))
                self._known[snapshot_id] = snapshot.last_contained_ms
