"""Deliver committed batches to the listener, in order and exactly once, together with leader changes.

Batches are read back from the log, on the leader, too: so a new record takes the same path as after a
restart.
"""

from bisect import bisect_right
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.raft.batches import CommittedBatch, DamagedBatch, decode_batches
from barnabas.raft.driver.metadata_log import MetadataLog
from barnabas.raft.errors import MetadataUnreadable, metadata_damaged, metadata_failed
from barnabas.raft.facts import LeaderAndEpoch, OffsetAndEpoch
from barnabas.raft.snapshots import Snapshot, read_snapshot, snapshot_name
from barnabas.storage.errors import CorruptLog
from barnabas.storage.log import LogRead
from barnabas.storage.names import LOG
from barnabas.storage.warming import warmed

# Bytes read and delivered at once, before the loop runs other tasks.
_BYTES_AT_ONCE: Final = 256 * 1024


class QuorumListener(Protocol):
    """The consumer of the metadata. It is called on the loop, and an exception ends the quorum."""

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        """Replace all metadata by a snapshot."""

    def committed(self, batch: CommittedBatch) -> None:
        """Take the next batch. Control batches come without records, to advance the offset."""

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        """The leader has changed. If we lead, everything before our epoch has been delivered."""


class Delivery:
    """The position of the listener; next_offset is the next to deliver."""

    def __init__(self, log: MetadataLog, executor: Executor, listener: QuorumListener) -> None:
        self.next_offset = 0
        # The end and append time of the last batch, for snapshots of the delivered state.
        self.last = OffsetAndEpoch(0, 0)
        self.last_append_ms = 0
        # Bytes of batches since a snapshot was last loaded or written.
        self.bytes_since_snapshot = 0
        self._log: Final = log
        self._executor: Final = executor
        self._listener: Final = listener
        # A pending leader change, and the offset that must be delivered before it.
        self._notice: LeaderAndEpoch | None = None
        self._notice_after = 0

    def load(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        self._listener.load_snapshot(snapshot_id, (record for record, _ in snapshot.records()))
        self.next_offset = snapshot_id.offset
        self.last, self.last_append_ms = snapshot_id, snapshot.last_contained_ms
        self.bytes_since_snapshot = 0

    def tell_leader(self, leader: LeaderAndEpoch, *, after: int = 0) -> None:
        """Notify the listener once everything below `after` is delivered. A later call replaces this one."""
        self._notice, self._notice_after = leader, after

    async def deliver(self, upto: int) -> list[CommittedBatch]:
        """Deliver the next batches below `upto`, up to one read; return them."""
        self._tell_if_due()
        if self.next_offset < self._log.start_offset:
            # The log was restarted at a leader's snapshot.
            await self._load_latest()
        if self.next_offset >= upto:
            return []
        batches = await self._read(upto)
        for batch in batches:
            self._take(batch)
            self.next_offset = batch.last_offset + 1
            self.last = OffsetAndEpoch(self.next_offset, batch.epoch)
            self.last_append_ms = batch.append_time_ms
            self.bytes_since_snapshot += batch.size
        self._tell_if_due()
        return batches

    async def _read(self, upto: int) -> list[CommittedBatch]:
        """Read the next batches; MetadataUnreadable if they are damaged."""
        log = self._log.log
        read = partial(log.read, self.next_offset, upto=upto, bytes_max=_BYTES_AT_ONCE)
        try:
            found: LogRead = await warmed(log, self._executor, read)
            try:
                return decode_batches(found.read(), from_offset=self.next_offset, upto=upto)
            except DamagedBatch as wrong:
                raise self._corrupt(found, wrong) from None
        except CorruptLog as wrong:
            raise metadata_damaged(log.directory, wrong) from wrong
        except OSError as error:
            raise metadata_failed(log.directory, error) from error

    def _corrupt(self, found: LogRead, wrong: DamagedBatch) -> CorruptLog:
        """The error with the damaged file and position."""
        log, at = self._log.log, wrong.at
        segments = log.segments[bisect_right(log.bases, self.next_offset) - 1 :]
        for segment, part in zip(segments, found.ranges, strict=False):
            if at < part.size:
                return CorruptLog(segment.path(LOG), position=part.at + at, what=str(wrong))
            at -= part.size
        return CorruptLog(log.directory, position=at, what=str(wrong))

    def _take(self, batch: CommittedBatch) -> None:
        if batch.base_offset > self.next_offset:
            raise self._gap(batch.base_offset)
        try:
            self._listener.committed(batch)
        except BarnabasError as wrong:
            # The CRC is right, but the batch contradicts earlier records.
            log = self._log.log
            what = f"{log.directory}: batch at offset {batch.base_offset}: {wrong}"
            raise metadata_damaged(log.directory, what) from wrong

    def _gap(self, end: int) -> MetadataUnreadable:
        """The error for records that are missing up to the offset `end`: a segment has become shorter."""
        log = self._log.log
        segment = log.segments[bisect_right(log.bases, self.next_offset) - 1]
        what = f"records from offset {self.next_offset} to {end} are missing"
        wrong = CorruptLog(segment.path(LOG), position=segment.size, what=what)
        return metadata_damaged(log.directory, wrong)

    def _tell_if_due(self) -> None:
        if self._notice is not None and self.next_offset >= self._notice_after:
            notice, self._notice = self._notice, None
            self._listener.leader_changed(*notice)

    async def _load_latest(self) -> None:
        snapshot_id = self._log.latest_snapshot
        assert snapshot_id is not None, f"log starts at {self._log.start_offset} without a snapshot"
        log = self._log.log
        path = f"{log.directory}/{snapshot_name(snapshot_id)}"
        self.load(snapshot_id, await self._executor.run(partial(read_snapshot, log.fs, path)))
