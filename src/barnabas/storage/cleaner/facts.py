"""Input and output of a compaction run: plain values, so that the executor shares no state with the loop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.base.values import value
from barnabas.storage.cleaner.grouping import Source
from barnabas.storage.cleaner.key_map import LOAD_FACTOR
from barnabas.storage.errors import StorageError
from barnabas.storage.producers.table import LastRecord
from barnabas.storage.segment.txn_index import AbortedTxn

# Positions in an index are 32 bits.
CLEANED_BYTES_MAX: Final = 0x7FFFFFFF


@value(kw_only=True)
class CleaningFacts:
    """The input of a run, collected on the loop."""

    directory: str
    # Every segment that starts below upper_bound, including the clean ones.
    sources: Sequence[Source]
    # [dirty_start, upper_bound) was never compacted; upper_bound is a segment's base offset.
    dirty_start: int
    upper_bound: int
    # Every aborted transaction with records below upper_bound, even if its marker lies above.
    aborted: Sequence[AbortedTxn]
    producers: Mapping[int, LastRecord]
    # Producers with an open transaction at the first source's base offset, by the snapshot there.
    open_before: frozenset[int] = frozenset()
    # Maximum size of a group: segment.bytes and segment.index.bytes.
    group_bytes: int
    index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    # One cleaner thread's share of log.cleaner.dedupe.buffer.size.
    map_bytes: int
    map_load_factor: float = LOAD_FACTOR
    # SECRET_SIZE random bytes, for key_hash.py.
    secret: bytes
    now_ms: int


@value(kw_only=True)
class CleanedGroup:
    """Synced .cleaned files, ready to replace some segments."""

    base_offset: int
    size: int
    index_size: int
    time_index_size: int
    # The latest timestamp, or -1, and the last offset of the batch with it.
    max_timestamp: int
    max_timestamp_offset: int
    # The base offsets of the segments that it replaces, including its own.
    replaces: tuple[int, ...]
    # The entries of its .txnindex.
    aborted: tuple[AbortedTxn, ...]


@dataclass(slots=True)
class CleaningStats:
    """Counters of a run."""

    map_bytes_read: int = 0
    map_records_read: int = 0
    map_utilization: float = 0.0
    map_was_full: bool = False
    bytes_read: int = 0
    bytes_kept: int = 0
    records_read: int = 0
    records_kept: int = 0
    records_without_key: int = 0


class CleaningStopped(StorageError):
    """should_stop() returned true."""

    def __init__(self, path: str) -> None:
        super().__init__(f"compaction stopped at {path}")


class CleanedTooLarge(StorageError):
    """A compacted group is too large for one segment, because its batches grew by recompression."""

    def __init__(self, directory: str, *, base_offset: int) -> None:
        super().__init__(
            f"{directory}: segments from offset {base_offset} on exceed {CLEANED_BYTES_MAX} bytes after "
            "compaction; retry with smaller groups"
        )
        self.base_offset = base_offset
