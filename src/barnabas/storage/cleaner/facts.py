"""What a run of compaction is told, and what it tells: all settled on the loop, nothing changes meanwhile."""

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
    """All that a run has to know."""

    directory: str
    # Every segment that starts below upper_bound, the clean ones too.
    sources: Sequence[Source]
    # Nothing from here on was compacted before, and nothing from upper_bound on may be. The latter is where
    # a segment starts.
    dirty_start: int
    upper_bound: int
    # Every aborted transaction with records below upper_bound, also if its marker lies behind it.
    aborted: Sequence[AbortedTxn]
    producers: Mapping[int, LastRecord]
    # Producers with a transaction that was open where the first source begins, by the snapshot there.
    open_before: frozenset[int] = frozenset()
    # How large a group may be: segment.bytes and segment.index.bytes.
    group_bytes: int
    index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    # Of one cleaner thread: its part of log.cleaner.dedupe.buffer.size.
    map_bytes: int
    map_load_factor: float = LOAD_FACTOR
    # SECRET_SIZE random bytes, for key_hash.py.
    secret: bytes
    now_ms: int


@value(kw_only=True)
class CleanedGroup:
    """Files under .cleaned names, synced, that may take the place of some segments."""

    base_offset: int
    size: int
    index_size: int
    time_index_size: int
    # The latest timestamp in it, or -1, and the last offset of the batch that has it.
    max_timestamp: int
    max_timestamp_offset: int
    # The base offsets of the segments that it replaces, its own among them.
    replaces: tuple[int, ...]
    # What its .txnindex holds.
    aborted: tuple[AbortedTxn, ...]


@dataclass(slots=True)
class CleaningStats:
    """What a run has done so far."""

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
    """The caller asked for an end of it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"compaction was stopped at {path}")


class CleanedTooLarge(StorageError):
    """What is left of a group is larger than a segment may be: its batches are compressed less well now."""

    def __init__(self, directory: str, *, base_offset: int) -> None:
        super().__init__(
            f"{directory}: the segments from {base_offset} on are above {CLEANED_BYTES_MAX} bytes after "
            "compaction; try again with smaller groups"
        )
        self.base_offset = base_offset
