"""The log of a shard of groups as its cleaner sees it: which records count, and what compaction leaves."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from barnabas.coordinators.decision.outcome import InTransaction
from barnabas.coordinators.runtime.writing import NextBatch, one_batch, stamped_batch
from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import NO_PRODUCER_ID, Codec, read_header

BATCH_BYTES_MAX = 1 << 20
_READ_MAX = 4_096


class KeptRecord(NamedTuple):
    """A record as it is in the log."""

    key: bytes
    value: bytes | None

    def encoded(self) -> tuple[bytes, bytes | None]:
        return self.key, self.value


class LoggedBatch(NamedTuple):
    """One batch. `ends` is None unless it is a marker: then whether it commits."""

    data: bytes
    producer_id: int
    producer_epoch: int
    ends: bool | None
    records: tuple[KeptRecord, ...]


@lru_cache(_READ_MAX)
def read_batch(data: bytes) -> LoggedBatch:
    header = read_header(data)
    records = [KeptRecord(record.key or b"", record.value) for record in decode_batch(data)]
    if header.is_control:
        commits = read_control_type(records[0].key) is ControlType.COMMIT
        return LoggedBatch(data, header.producer_id, header.producer_epoch, commits, ())
    return LoggedBatch(data, header.producer_id, header.producer_epoch, None, tuple(records))


def last_values(log: Iterable[bytes]) -> dict[bytes, bytes | None]:
    """By key what the log says last, but for what was aborted; None is a tombstone."""
    batches = [read_batch(data) for data in log]
    last: dict[bytes, bytes | None] = {}
    for batch, counts in zip(batches, _fates(batches), strict=True):
        if counts is not False:
            last.update(batch.records)
    return last


def compacted(log: Sequence[bytes], *, keep_tombstones: bool) -> list[bytes]:
    """The last record of every key, in the order that they had, up to the first open transaction.

    What was aborted goes, and the marker of a transaction of which nothing is left goes with tombstones.
    """
    batches = [read_batch(data) for data in log]
    fates = _fates(batches)
    clean = fates.index(None) if None in fates else len(batches)
    last: dict[bytes, tuple[int, int]] = {}
    for at, batch in enumerate(batches[:clean]):
        if fates[at]:
            last.update({record.key: (at, number) for number, record in enumerate(batch.records)})
    compact = _Compacted()
    for at, batch in enumerate(batches[:clean]):
        kept = [
            record
            for number, record in enumerate(batch.records)
            if last.get(record.key) == (at, number) and (keep_tombstones or record.value is not None)
        ]
        if batch.ends is not None:
            compact.end(batch, even_if_empty=keep_tombstones)
        else:
            compact.take(batch, kept)
    return [*compact.finish(), *log[clean:]]


def _fates(batches: Sequence[LoggedBatch]) -> list[bool | None]:
    """Of each batch: whether it counts, None if its transaction is open."""
    fates: list[bool | None] = []
    ends: dict[int, bool] = {}
    for batch in reversed(batches):
        if batch.ends is not None:
            ends[batch.producer_id] = batch.ends
        counts = batch.ends is not None or batch.producer_id == NO_PRODUCER_ID
        fates.append(True if counts else ends.get(batch.producer_id))
    return fates[::-1]


class _Compacted:
    """The new log. Plain records that follow each other are in one batch."""

    def __init__(self) -> None:
        self._log: list[bytes] = []
        self._plain: list[KeptRecord] = []
        self._producers: set[int] = set()

    def take(self, batch: LoggedBatch, kept: list[KeptRecord]) -> None:
        if not kept:
            return
        if batch.producer_id == NO_PRODUCER_ID:
            self._plain += kept
            return
        self._producers.add(batch.producer_id)
        stamp = InTransaction(batch.producer_id, batch.producer_epoch)
        self._flush()
        self._log.append(stamped_batch(kept, stamp, NextBatch(0, 0, BATCH_BYTES_MAX, Codec.NONE), 0))

    def end(self, marker: LoggedBatch, *, even_if_empty: bool) -> None:
        if marker.producer_id in self._producers or even_if_empty:
            self._flush()
            self._log.append(marker.data)
        self._producers.discard(marker.producer_id)

    def finish(self) -> list[bytes]:
        self._flush()
        return self._log

    def _flush(self) -> None:
        if self._plain:
            self._log.append(one_batch(self._plain, NextBatch(0, 0, BATCH_BYTES_MAX, Codec.NONE), 0))
            self._plain = []
