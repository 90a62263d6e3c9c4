"""A model of a log in a plain dictionary, with which the real log must agree in spite of disk faults.

`history` has everything that was appended and not truncated, including deleted batches, because after a power
loss a log may start a little earlier than before. No record below `flushed` may be lost.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Rec(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class ModelBatch:
    """What was appended at once. Markers are batches of one record that ends a transaction."""

    records: tuple[Rec, ...]
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    # None for data, else whether the transaction was aborted.
    marker: bool | None = None
    leader_epoch: int = 0

    @property
    def base_offset(self) -> int:
        return self.records[0].offset

    @property
    def next_offset(self) -> int:
        return self.records[-1].offset + 1


@dataclass(slots=True)
class LogModel:
    """Batches by their base offset, in order."""

    history: dict[int, ModelBatch] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    flushed: int = 0
    # Lower bound of the log start offset after a power loss.
    durable_start: int = 0
    # Offsets of records that compaction removed. The batches in `history` still have them.
    compacted: set[int] = field(default_factory=set)
    # When a compaction first kept a tombstone: it may be removed delete.retention.ms later.
    tombstones_since: dict[int, int] = field(default_factory=dict)

    def append(self, batch: ModelBatch) -> None:
        assert batch.base_offset >= self.end
        self.history[batch.base_offset] = batch
        self.end = batch.next_offset

    def cut(self, offset: int) -> None:
        """Truncate at `offset`."""
        self.history = {base: batch for base, batch in self.history.items() if batch.next_offset <= offset}
        self.end = offset
        self.flushed = min(self.flushed, offset)
        self.start = min(self.start, offset)
        self.durable_start = min(self.durable_start, offset)
        # These offsets will be reused.
        self.compacted = {at for at in self.compacted if at < offset}
        self.tombstones_since = {at: since for at, since in self.tombstones_since.items() if at < offset}

    def batches(self, start: int | None = None) -> list[ModelBatch]:
        start = self.start if start is None else start
        return [batch for batch in self.history.values() if batch.next_offset > start]

    def records(self, start: int, upto: int) -> list[Rec]:
        """The records that read_uncommitted reads, with markers."""
        return [
            record
            for batch in self.history.values()
            for record in batch.records
            if start <= record.offset < upto and record.offset not in self.compacted
        ]

    def aborted_offsets(self) -> set[int]:
        """Offsets of data whose transaction ended with an abort."""
        return {offset for offset, aborted in self._endings().items() if aborted}

    def _endings(self) -> dict[int, bool | None]:
        """For each transactional data record whether it was aborted; None while it is open."""
        open_txns: dict[int, list[int]] = {}
        fate: dict[int, bool | None] = {}
        for batch in self.history.values():
            if batch.marker is not None:
                for offset in open_txns.pop(batch.producer_id, []):
                    fate[offset] = batch.marker
            elif batch.transactional:
                offsets = [record.offset for record in batch.records]
                open_txns.setdefault(batch.producer_id, []).extend(offsets)
                fate.update(dict.fromkeys(offsets))
        return fate

    def first_open(self) -> int | None:
        """The first offset of the earliest open transaction."""
        undecided = [offset for offset, aborted in self._endings().items() if aborted is None]
        return min(undecided, default=None)

    def committed(self, start: int, upto: int) -> list[Rec]:
        """The records that a read_committed application gets: no markers, no aborted records."""
        aborted = self.aborted_offsets()
        markers = {batch.base_offset for batch in self.history.values() if batch.marker is not None}
        return [
            record
            for record in self.records(start, upto)
            if record.offset not in aborted and record.offset not in markers
        ]

    def last_data_batch(self, producer_id: int) -> ModelBatch | None:
        found = None
        for batch in self.history.values():
            if batch.producer_id == producer_id and batch.marker is None:
                found = batch
        return found

    def must_survive(self, now_ms: int, delete_retention_ms: int, cleaned_upto: int) -> set[int]:
        """Offsets that compaction must keep: the last committed record of each key, and the uncleaned end."""
        last: dict[bytes, Rec] = {}
        for record in self.committed(self.start, self.end):
            if record.key is not None:
                last[record.key] = record
        keep = {
            record.offset for record in self.committed(self.start, self.end) if record.offset >= cleaned_upto
        }
        for record in last.values():
            since = self.tombstones_since.get(record.offset)
            expired = since is not None and since + delete_retention_ms <= now_ms
            if record.value is not None or not expired:
                keep.add(record.offset)
        return keep

    def forget(self, gone: Iterable[int]) -> None:
        self.compacted.update(gone)
