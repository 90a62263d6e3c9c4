"""One partition's log (compiled): append, read, roll, high watermark and last stable offset.

Only the event loop accesses a log, and nothing here blocks on the disk: reads raise NotCached instead.
Blocking operations are in flush.py, truncation.py, removal.py and cleaner/; recovery.py opens a log,
lookup.py finds offsets by time. An OSError goes to the caller and leaves the log unchanged.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from mypy_extensions import i64, mypyc_attr

from barnabas.base.checksum import Checksums
from barnabas.base.crc32c import crc32c
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.records.header import LENGTH_EXCLUDES, PREFIX, PREFIX_SIZE, stamp
from barnabas.storage.config import LogConfig
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.errors import (
    BatchTooLarge,
    CorruptLog,
    LogClosed,
    OffsetOutOfRange,
    StorageError,
    UnexpectedOffset,
)
from barnabas.storage.files import Buffer, FileRange, FileSystem, NotCached
from barnabas.storage.intake import (
    OVERLAP_BYTES,
    Batch,
    PendingChecksum,
    Rules,
    explain,
    take_own,
    take_produced,
    take_replicated,
)
from barnabas.storage.names import LOG, SNAPSHOT, file_name
from barnabas.storage.producers.snapshot import write_snapshot
from barnabas.storage.producers.table import Origin, Producers, Verification
from barnabas.storage.segment.aborted import AbortedIndex
from barnabas.storage.segment.marker import Marker, complete_transaction, read_marker
from barnabas.storage.segment.segment import Found, Segment
from barnabas.storage.segment.txn_index import AbortedTxn

OFFSET_SPAN_MAX: Final[i64] = 0x7FFFFFFF
_CLIENT: Final = Origin.CLIENT
# A read returns ranges of at most this many segments.
_RANGES_MAX: Final = 16


@mypyc_attr(acyclic=True)
class Appended:
    """The offsets of an appended batch, or of the first copy of a duplicate."""

    def __init__(
        self, base_offset: i64, last_offset: i64, log_append_time_ms: i64 = -1, duplicate: bool = False
    ) -> None:
        self.base_offset: Final = base_offset
        self.last_offset: Final = last_offset
        self.log_append_time_ms: Final = log_append_time_ms
        self.duplicate: Final = duplicate


class LogRead:
    """Ranges of files with the requested batches, in order. The last batch may be incomplete."""

    def __init__(
        self, ranges: list[FileRange], size: i64, last: Segment | None = None, position: i64 = 0
    ) -> None:
        self.ranges: Final = ranges
        self.size: Final = size
        # The end of the read: segment and byte position.
        self.last: Final = last
        self.position: Final = position

    def __len__(self) -> int:
        return int(self.size)

    def read(self) -> bytes:
        """The bytes themselves, for callers that do not use sendfile."""
        return b"".join([part.read() for part in self.ranges])


class Log:
    """A partition on disk. Offsets in [start_offset, end_offset) can be read."""

    def __init__(
        self,
        fs: FileSystem,
        tp: TopicPartition,
        directory: str,
        config: LogConfig,
        *,
        segments: list[Segment],
        start_offset: i64,
        end_offset: i64,
        recovery_point: i64,
        producers: Producers,
        epochs: LeaderEpochs,
    ) -> None:
        assert segments, "a log has at least one segment"
        self.fs: Final = fs
        self.tp: Final = tp
        self.directory = directory
        self.configure(config)
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.start_offset = start_offset
        self.end_offset = end_offset
        # Everything below it is durable.
        self.recovery_point = recovery_point
        self.high_watermark = start_offset
        self.producers = producers
        self.epochs = epochs
        self.last_epoch: i64 = -1 if epochs.latest is None else epochs.latest
        self.epochs_changed = False
        # Counts truncations: a flush that began before one must not move the recovery point.
        self.truncations: i64 = 0
        # From partition.metadata; None in directories of older brokers.
        self.topic_id: Uuid | None = None
        self.aborted = AbortedIndex(fs)
        # The offsets of the existing producer snapshots, and of those that are not yet synced.
        self.snapshots: list[int] = []
        self.unsynced_snapshots: list[int] = []
        # Called when flush.messages records are unflushed, and when a segment is finished.
        self.on_flush_due: Callable[[Log], None] | None = None
        self.closed = False
        # The reason, if the log was closed because of an error.
        self.closed_by: StorageError | None = None
        self._turn: asyncio.Lock | None = None

    def check_open(self) -> None:
        if self.closed:
            why = self.closed_by
            # Raising the same error again would collect the frames of every raise in its traceback.
            raise LogClosed(str(self.tp)) if why is None else why.with_traceback(None)

    def take_out_of_service(self, why: StorageError) -> None:
        """Close the log: every later operation raises `why`."""
        self.closed = True
        self.closed_by = why

    def release(self) -> None:
        """Close all descriptors of a log that was deleted. Ranges that are being sent keep theirs."""
        assert self.closed, f"{self.tp} is in service"
        for segment in self.segments:
            segment.release()

    def configure(self, config: LogConfig) -> None:
        """Apply settings, and cache those that every append needs."""
        self.config = config
        self.segment_bytes: i64 = config.segment_bytes
        self.index_bytes: i64 = config.segment_index_bytes
        self.interval: i64 = config.index_interval_bytes
        self.flush_messages: i64 = config.flush_messages
        self.segment_ms: i64 = config.max_segment_ms
        self.jitter_ms: i64 = min(config.segment_jitter_ms, config.max_segment_ms)
        self.rules = Rules(config)

    def turn(self) -> asyncio.Lock:
        """The lock for operations on files that await in between: flush, truncation, removal, swap.

        Each must find the files as it left them before the await. Appends and reads never take the lock.
        """
        if self._turn is None:
            self._turn = asyncio.Lock()
        return self._turn

    # Offsets

    @property
    def last_stable_offset(self) -> int:
        """Below it all transactions are complete and replicated; read_committed reads up to here."""
        first_open = self.producers.first_open_offset()
        if first_open is None or first_open > self.high_watermark:
            return self.high_watermark
        return max(first_open, self.start_offset)

    def advance_high_watermark(self, to: i64) -> None:
        assert self.high_watermark <= to <= self.end_offset, f"{self.tp}: {self.high_watermark} -> {to}"
        self.high_watermark = to
        self.producers.high_watermark_moved(to)

    def set_high_watermark(self, to: i64) -> None:
        """Set it from a checkpoint or a truncation, limited to the log's offsets. It may move back."""
        self.high_watermark = max(self.start_offset, min(to, self.end_offset))
        self.producers.high_watermark_moved(self.high_watermark)

    def advance_start(self, to: i64) -> bool:
        """Make the records below `to` unreadable; retention deletes their files later."""
        if to > self.high_watermark:
            raise OffsetOutOfRange(requested=to, start=self.start_offset, end=self.high_watermark)
        if to <= self.start_offset:
            return False
        self.start_offset = to
        if self.epochs.truncate_from_start(to):
            self.epochs_changed = True
        return True

    @property
    def size(self) -> int:
        """Bytes of all segments' batches."""
        total: i64 = 0
        for segment in self.segments:
            total += segment.size
        return total

    # Append

    def append_as_leader(
        self,
        data: Buffer,
        *,
        leader_epoch: i64,
        now_ms: i64,
        origin: Origin = Origin.CLIENT,
        verification: Verification | None = None,
        must_verify: bool = False,
        transaction_version: i64 = 0,
        start: i64 = -1,
        checksums: Checksums | None = None,
    ) -> Appended:
        """Check, stamp and write batches from a producer, a coordinator or the quorum's leader.

        A client sends one batch; `start` is its position in the bytes object that it is a view of, if known,
        and `checksums` computes the CRC of a large one. The others may write several at once, and the result
        spans all of them; if one cannot be written, those before it stay in the log. With `must_verify`, a
        transaction's first batch needs a `verification`. `transaction_version` is that of a marker.
        """
        self.check_open()
        if origin == _CLIENT:
            if checksums is not None and len(data) >= OVERLAP_BYTES and not self.rules.log_append_time:
                return self._append_overlapped(
                    data, start, checksums, leader_epoch, now_ms, verification, must_verify
                )
            batch = take_produced(data, self.rules, now_ms, start)
            return self._append_one(data, batch, leader_epoch, now_ms, origin, verification, must_verify)
        batch = take_own(data, 0)
        at = batch.size
        if at == len(data):
            return self._append_one(
                data, batch, leader_epoch, now_ms, origin, verification, must_verify, transaction_version
            )
        batches = [batch]
        while at < len(data):
            batch = take_own(data, at)
            batches.append(batch)
            at += batch.size
        first = self.end_offset
        for batch in batches:
            part = memoryview(data)[batch.at : batch.at + batch.size]
            self._append_one(
                part, batch, leader_epoch, now_ms, origin, verification, must_verify, transaction_version
            )
        return Appended(first, self.end_offset - 1)

    def _append_overlapped(
        self,
        data: Buffer,
        start: i64,
        checksums: Checksums,
        leader_epoch: i64,
        now_ms: i64,
        verification: Verification | None,
        must_verify: bool,
    ) -> Appended:
        """Write a client's large batch while a thread computes its CRC; commit it only if the CRC matches."""
        checksum = PendingChecksum(checksums, data)
        try:
            batch = take_produced(data, self.rules, now_ms, start, crc_follows=True)
            checksum.expected = batch.crc
            return self._append_one(
                data, batch, leader_epoch, now_ms, _CLIENT, verification, must_verify, 0, checksum
            )
        finally:
            # A wrong CRC is reported before errors that it may have caused.
            if not checksum.matches():
                explain(data)

    def _append_one(
        self,
        data: Buffer,
        batch: Batch,
        leader_epoch: i64,
        now_ms: i64,
        origin: Origin,
        verification: Verification | None,
        must_verify: bool,
        transaction_version: i64 = 0,
        checksum: PendingChecksum | None = None,
    ) -> Appended:
        marker: Marker | None = None
        if batch.producer_id >= 0:
            if batch.is_control():
                marker = read_marker(data)
                if marker is not None:
                    self.producers.check_marker(
                        batch.producer_id,
                        batch.producer_epoch,
                        marker.coordinator_epoch,
                        origin,
                        transaction_version,
                    )
            else:
                duplicate = self.producers.check(batch, origin, verification, must_verify)
                if duplicate is not None:
                    return Appended(duplicate.base_offset, duplicate.last_offset, duplicate.timestamp, True)
        base = self.end_offset
        last = base + batch.last_delta
        append_time: i64 = -1
        parts: list[Buffer]
        if self.rules.log_append_time and not batch.is_control():
            append_time = now_ms
            copy = bytearray(data)
            stamp(copy, 0, base_offset=base, leader_epoch=leader_epoch, log_append_time_ms=now_ms)
            batch.max_timestamp = now_ms
            parts = [copy]
        elif batch.is_corrected:
            copy = bytearray(data)
            stamp(copy, 0, base_offset=base, leader_epoch=leader_epoch, max_timestamp=batch.max_timestamp)
            parts = [copy]
        elif batch.base_offset == base and batch.leader_epoch == leader_epoch:
            # A coordinator has built it with the right offset and epoch.
            parts = [data]
        else:
            parts = [
                PREFIX.pack(base, batch.size - LENGTH_EXCLUDES, leader_epoch),
                memoryview(data)[PREFIX_SIZE:],
            ]
        segment = self._segment_for(batch.size, last, batch.max_timestamp, now_ms)
        segment.write(parts, batch.max_timestamp)
        if checksum is not None and not checksum.matches():
            # The next batch overwrites it.
            segment.discard()
            explain(data)
        segment.commit(batch.size, last, batch.max_timestamp, self.interval)
        if batch.max_timestamp < 0:
            segment.modified_ms = now_ms
        self._appended(batch, marker, base, leader_epoch)
        return Appended(base, last, append_time)

    def append_as_follower(self, data: Buffer, now_ms: i64) -> None:
        """Write batches with the leader's offsets and epochs.

        After compaction on the leader, a batch may start above our end offset, but never below it.
        """
        self.check_open()
        at: i64 = 0
        while at < len(data):
            batch = take_replicated(data, at)
            if batch.base_offset < self.end_offset:
                raise UnexpectedOffset(expected=self.end_offset, found=batch.base_offset)
            part = memoryview(data)[at : at + batch.size]
            last = batch.base_offset + batch.last_delta
            marker: Marker | None = None
            if batch.producer_id >= 0 and batch.is_control():
                marker = read_marker(part)
            segment = self._segment_for(batch.size, last, batch.max_timestamp, now_ms)
            segment.append([part], batch.size, last, batch.max_timestamp, self.interval)
            if batch.max_timestamp < 0:
                segment.modified_ms = now_ms
            self._appended(batch, marker, batch.base_offset, batch.leader_epoch)
            at += batch.size

    def _appended(self, batch: Batch, marker: Marker | None, base: i64, leader_epoch: i64) -> None:
        """Update the state for a batch that was written. This cannot fail."""
        self.end_offset = base + batch.last_delta + 1
        if leader_epoch != self.last_epoch and leader_epoch >= 0:
            if self.epochs.assign(leader_epoch, base):
                self.epochs_changed = True
            self.last_epoch = leader_epoch
        if marker is None:
            self.producers.appended(batch, base)
        else:
            ended = complete_transaction(self.producers, batch, marker, base)
            if ended is not None:
                self.aborted.add(self.active, ended)
        self.producers.end_offset = self.end_offset
        if self.end_offset - self.recovery_point >= self.flush_messages and self.on_flush_due is not None:
            self.on_flush_due(self)

    # Roll

    def _segment_for(self, size: i64, last_offset: i64, max_timestamp: i64, now_ms: i64) -> Segment:
        """The segment for the next batch: the active one, or a new one after a roll."""
        segment = self.active
        if size > self.segment_bytes:
            raise BatchTooLarge(size=size, limit=self.segment_bytes, setting="segment.bytes")
        if (
            segment.size + size <= self.segment_bytes
            and last_offset - segment.base_offset <= OFFSET_SPAN_MAX
            and not segment.is_full(self.index_bytes)
            and not self._is_too_old(segment, max_timestamp, now_ms)
        ):
            return segment
        self.roll(now_ms)
        return self.active

    def _is_too_old(self, segment: Segment, timestamp: i64, now_ms: i64) -> bool:
        if segment.size == 0:
            return False
        limit = self.segment_ms
        if self.jitter_ms > 0:
            # Logs that were created together should not all roll together. Derived from the name, not random.
            limit -= crc32c(segment.path(LOG).encode()) % self.jitter_ms
        first: i64 = segment.first_timestamp
        if first < -1:
            first = segment.earliest()
        if first >= 0:
            # By record time, as in Kafka: replayed old data rolls segments as it did the first time.
            return timestamp - first > limit
        return now_ms - segment.created_ms > limit

    def roll(self, now_ms: i64) -> None:
        """Finish the active segment and start a new one at the end of the log."""
        old = self.active
        if old.size == 0 and old.base_offset == self.end_offset:
            return
        old.finish()
        self.aborted.spill(old)
        self.take_snapshot()
        new = Segment(self.fs, self.directory, self.end_offset, created_ms=now_ms)
        try:
            new.make_files(self.segment_bytes if self.config.preallocate else 0)
        except OSError:
            # A leftover empty segment would hide later appends to the old one.
            with suppress(OSError):
                new.remove_files()
            raise
        # Replace the lists instead of changing them: jobs in the executor hold references.
        self.segments = [*self.segments, new]
        self.bases = [*self.bases, new.base_offset]
        self.active = new
        if self.on_flush_due is not None:
            self.on_flush_due(self)

    def take_snapshot(self) -> None:
        """Write a snapshot of the producer state at the end of the log."""
        end = self.end_offset
        if self.snapshots and self.snapshots[-1] == end:
            return
        path = f"{self.directory}/{file_name(end, SNAPSHOT)}"
        file = self.fs.open(path, create=True)
        try:
            file.truncate(0)
            file.write(0, [write_snapshot(self.producers)])
        except OSError:
            # Remove the partial snapshot: it is useless, and the disk may be full.
            with suppress(OSError):
                self.fs.remove(path)
            raise
        finally:
            file.close()
        self.snapshots = [*self.snapshots, end]
        self.unsynced_snapshots = [*self.unsynced_snapshots, end]

    # Removal and replacement of segments. The callers deal with the files.

    def drop_first(self, count: i64) -> list[Segment]:
        """Remove the first segments. The log start must be above them, or about to be moved there."""
        assert count < len(self.segments), "the active segment stays"
        gone = self.segments[:count]
        self._replace_segments(self.segments[count:])
        for segment in gone:
            self.aborted.forget(segment)
        self.snapshots = [at for at in self.snapshots if at >= self.bases[0]]
        return gone

    def replace(self, bases: Sequence[int], new: Segment) -> list[Segment]:
        """Replace adjacent segments by one that has the same records or a subset."""
        first = self.bases.index(bases[0])
        gone = self.segments[first : first + len(bases)]
        assert [segment.base_offset for segment in gone] == list(bases), f"{self.tp} has no {bases}"
        self._replace_segments([*self.segments[:first], new, *self.segments[first + len(bases) :]])
        for segment in gone:
            self.aborted.forget(segment)
        self.snapshots = [at for at in self.snapshots if at not in bases or at == bases[0]]
        return gone

    def cut(self, keep: i64, position: i64, end_offset: i64, producers: Producers) -> list[Segment]:
        """Truncate the log: `keep` segments stay, and the last of them is cut at `position`.

        May raise NotCached or IndexDamaged; then call it again.
        """
        last = self.segments[keep - 1]
        # Load the first timestamp now, because a later append must not raise NotCached.
        last.earliest()
        last.cut(position, end_offset)
        self.aborted.cut(last, end_offset)
        gone = self.segments[keep:]
        for segment in gone:
            self.aborted.forget(segment)
        self._replace_segments(self.segments[:keep])
        self._ends_at(end_offset, producers)
        return gone

    def drop_all(self, offset: i64, now_ms: i64) -> list[Segment]:
        """Make it an empty log at `offset`. The caller creates the files of its segment."""
        gone = self.segments
        for segment in gone:
            self.aborted.forget(segment)
        fresh = Segment(self.fs, self.directory, offset, created_ms=now_ms)
        self._replace_segments([fresh])
        nobody = Producers()
        nobody.end_offset = offset
        self.start_offset = offset
        self.epochs.clear()
        self.snapshots = []
        self._ends_at(offset, nobody)
        return gone

    def _replace_segments(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def _ends_at(self, offset: i64, producers: Producers) -> None:
        self.end_offset = offset
        self.producers = producers
        self.truncations += 1
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.truncate_from_end(offset)
        self.epochs_changed = True
        latest = self.epochs.latest
        self.last_epoch = -1 if latest is None else latest
        self.snapshots = [at for at in self.snapshots if at <= offset]
        self.unsynced_snapshots = [at for at in self.unsynced_snapshots if at <= offset]
        self.set_high_watermark(self.high_watermark)

    # Read

    def read(self, offset: i64, *, upto: i64, bytes_max: i64, whole_batch: bool = True) -> LogRead:
        """Ranges of files from the batch that contains `offset` up to the offset `upto`, limited in bytes.

        With `whole_batch` the first batch is complete even if it is larger than `bytes_max`; without it, the
        result is empty then. On NotCached, warm() and call again.
        """
        self.check_open()
        if offset < self.start_offset or offset > self.end_offset:
            raise OffsetOutOfRange(requested=offset, start=self.start_offset, end=self.end_offset)
        upto = min(upto, self.end_offset)
        ranges: list[FileRange] = []
        total: i64 = 0
        last: Segment | None = None
        position: i64 = 0
        slot: i64 = bisect_right(self.bases, offset) - 1
        while slot < len(self.segments) and offset < upto and len(ranges) < _RANGES_MAX:
            segment = self.segments[slot]
            slot += 1
            next_base: i64 = self.end_offset if slot == len(self.segments) else self.bases[slot]
            try:
                found = segment.find(offset)
                if found is not None:
                    size = self._readable(segment, found, upto, next_base)
                    if size > bytes_max - total:
                        size = bytes_max - total
                        if size < found.size:
                            size = found.size if whole_batch and not ranges else 0
                    if size == 0:
                        break
                    segment.need_cached(found.position, size)
                    ranges.append(self.fs.range(segment.open(), found.position, size))
                    total += size
                    last = segment
                    position = found.position + size
                    if found.position + size < segment.size:
                        break
            except NotCached:
                if ranges:
                    break
                raise
            # The whole segment was read, or compaction removed its last offsets.
            offset = next_base
        return LogRead(ranges, total, last, position)

    def _readable(self, segment: Segment, found: Found, upto: i64, next_base: i64) -> i64:
        """The number of bytes from a batch up to the offset `upto`."""
        if found.last_offset >= next_base:
            raise CorruptLog(
                segment.path(LOG),
                position=found.position,
                what=f"batch ends at offset {found.last_offset}, but the next segment starts at {next_base}",
            )
        if found.last_offset >= upto:
            return 0
        if upto < next_base:
            stop = segment.find(upto)
            if stop is not None:
                return stop.position - found.position
        return segment.size - found.position

    def aborted_within(self, offset: i64, read: LogRead, upto: i64) -> list[AbortedTxn]:
        """The aborted transactions with records in a read, and possibly a few after it.

        The offset index gives an upper bound for the end of the read, so the result is bounded by its size.
        May raise NotCached.
        """
        last = read.last
        if last is None:
            return []
        end = last.offset_index().offset_from(read.position)
        if end < 0:
            slot = bisect_right(self.bases, last.base_offset)
            end = self.end_offset if slot == len(self.bases) else self.bases[slot]
        return self.aborted_in(offset, min(end, upto))

    def aborted_in(self, offset: i64, upto: i64) -> list[AbortedTxn]:
        """The aborted transactions with records in [offset, upto). May raise NotCached."""
        slot = max(0, bisect_right(self.bases, offset) - 1)
        return self.aborted.collect(self.segments[slot:], offset, upto)
