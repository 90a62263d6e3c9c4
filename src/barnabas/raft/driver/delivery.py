"""What is committed goes to the listener, in order and once, and who leads goes with it.

Everything is read back from the log, at the leader too: a record that was just written takes the way that it
will take after a restart.
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

# Read and handed on at once; then others have a turn.
_BYTES_AT_ONCE: Final = 256 * 1024


class QuorumListener(Protocol):
    """Who wants to know the metadata. Called on the loop; what it raises ends the quorum."""

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        """Forget everything, and start from this."""

    def committed(self, batch: CommittedBatch) -> None:
        """The next batch. Control batches come without records, so that offsets go on."""

    def leader_changed(self, leader: int | None, epoch: int) -> None:
        """Somebody else leads, or nobody; or we do, and everything before our epoch has been delivered."""


class Delivery:
    """How far the listener is. next_offset is the first that it does not know."""

    def __init__(self, log: MetadataLog, executor: Executor, listener: QuorumListener) -> None:
        self.next_offset = 0
        # The epoch and the append time of the last batch: a snapshot of what is delivered needs them.
        self.last = OffsetAndEpoch(0, 0)
        self.last_append_ms = 0
        # Bytes of batches since the last snapshot that was loaded or written.
        self.bytes_since_snapshot = 0
        self._log: Final = log
        self._executor: Final = executor
        self._listener: Final = listener
        # Who leads, if the listener does not know it yet, and what must have been delivered before.
        self._notice: LeaderAndEpoch | None = None
        self._notice_after = 0

    def load(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        self._listener.load_snapshot(snapshot_id, (record for record, _ in snapshot.records()))
        self.next_offset = snapshot_id.offset
        self.last, self.last_append_ms = snapshot_id, snapshot.last_contained_ms
        self.bytes_since_snapshot = 0

    def tell_leader(self, leader: LeaderAndEpoch, *, after: int = 0) -> None:
        """The listener is to know this when everything before `after` is delivered. The last word counts."""
        self._notice, self._notice_after = leader, after

    async def deliver(self, upto: int) -> list[CommittedBatch]:
        """Hand over the next batches before `upto`, as many as are read at once; none if none are left."""
        self._tell_if_due()
        if self.next_offset < self._log.start_offset:
            # The log was started anew behind a leader's snapshot.
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
        """MetadataUnreadable if the next batches are damaged."""
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
        """The damage, with the file that it is in."""
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
            # Its CRC is right, and it contradicts the records before it.
            log = self._log.log
            what = f"{log.directory}: batch at offset {batch.base_offset}: {wrong}"
            raise metadata_damaged(log.directory, what) from wrong

    def _gap(self, end: int) -> MetadataUnreadable:
        """Records are missing up to the offset `end`: a segment is shorter than it was."""
        log = self._log.log
        segment = log.segments[bisect_right(log.bases, self.next_offset) - 1]
        what = f"the records from offset {self.next_offset} up to {end} are missing"
        wrong = CorruptLog(segment.path(LOG), position=segment.size, what=what)
        return metadata_damaged(log.directory, wrong)

    def _tell_if_due(self) -> None:
        if self._notice is not None and self.next_offset >= self._notice_after:
            notice, self._notice = self._notice, None
            self._listener.leader_changed(*notice)

    async def _load_latest(self) -> None:
        snapshot_id = self._log.latest_snapshot
        assert snapshot_id is not None, f"the log starts at {self._log.start_offset} without a snapshot"
        log = self._log.log
        path = f"{log.directory}/{snapshot_name(snapshot_id)}"
        self.load(snapshot_id, await self._executor.run(partial(read_snapshot, log.fs, path)))
