"""List a log's directory and classify the files by name."""

from dataclasses import dataclass, field

from barnabas.storage.files import TEMPORARY_SUFFIX, FileSystem
from barnabas.storage.names import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    REBUILT,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    split_name,
)

_UNFINISHED = (CLEANED, SWAP, DELETED)
_LEFTOVERS = (TEMPORARY_SUFFIX, REBUILT)


@dataclass(slots=True)
class SegmentFiles:
    """The files of one segment by size; -1 for a missing file."""

    log_size: int = -1
    index_size: int = -1
    time_index_size: int = -1
    modified_ms: int = 0
    has_txn_index: bool = False

    @property
    def has_plausible_indexes(self) -> bool:
        """Both exist with whole entries, and the time index is empty only if the log is."""
        if self.index_size < 0 or self.time_index_size < 0:
            return False
        if self.index_size % 8 or self.time_index_size % 12:
            return False
        return self.log_size == 0 or self.time_index_size > 0


@dataclass(slots=True)
class Listing:
    """The classified files. Segments are in the order of their base offsets."""

    segments: dict[int, SegmentFiles] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=list)
    # Index files without a .log file.
    orphans: list[str] = field(default_factory=list)
    # There are files of an unfinished swap or deletion.
    unfinished: bool = False
    # Temporary files that were being written when the broker stopped; they can be removed.
    leftovers: list[str] = field(default_factory=list)
    # Unknown names, left untouched.
    others: list[str] = field(default_factory=list)


def list_log(fs: FileSystem, directory: str) -> Listing:
    found = Listing()
    indexes: list[tuple[int, str]] = []
    files: dict[int, SegmentFiles] = found.segments
    for entry in fs.entries(directory):
        parts = split_name(entry.name)
        if not entry.is_directory and entry.name.endswith(_LEFTOVERS):
            found.leftovers.append(entry.name)
            continue
        if parts is None or entry.is_directory:
            found.others.append(entry.name)
            continue
        offset, kind = parts
        if kind == LOG:
            of = files.setdefault(offset, SegmentFiles())
            of.log_size, of.modified_ms = entry.size, entry.modified_ms
        elif kind == OFFSET_INDEX:
            files.setdefault(offset, SegmentFiles()).index_size = entry.size
            indexes.append((offset, entry.name))
        elif kind == TIME_INDEX:
            files.setdefault(offset, SegmentFiles()).time_index_size = entry.size
            indexes.append((offset, entry.name))
        elif kind == TXN_INDEX:
            files.setdefault(offset, SegmentFiles()).has_txn_index = True
            indexes.append((offset, entry.name))
        elif kind == SNAPSHOT:
            found.snapshots.append(offset)
        elif kind.endswith(_UNFINISHED):
            found.unfinished = True
        else:
            found.others.append(entry.name)
    found.orphans = [name for offset, name in indexes if offset not in files or files[offset].log_size < 0]
    # Ordered by name means ordered by offset, because all names have the same number of digits.
    found.segments = {offset: of for offset, of in files.items() if of.log_size >= 0}
    return found
