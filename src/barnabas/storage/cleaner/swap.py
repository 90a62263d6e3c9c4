"""New files in the place of old ones, so that a power loss leaves all old or all new records of a group.

    publish   the .cleaned files, synced by whoever wrote them, become .swap: from here on they count
    retire    the files of the segments that they replace become .deleted
    settle    the .swap files get their final names, the .log first

The names and the order are Kafka's. The directory is synced between the steps: without that a power loss
may leave a later step without an earlier one. finish_swaps() is for opening a log: it ends or undoes what it
finds, and may itself be cut off anywhere and started again.

Which segments a .swap file replaces is read from its offsets, as Kafka's loader does it: those that start
between its base offset and its end. The cleaner sees to it that this is true (see Rewriter.feed). All of
this waits for the disk, and is for the executor.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.storage.errors import CorruptLog
from barnabas.storage.files import FileSystem
from barnabas.storage.names import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_FILES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    split_name,
)
from barnabas.storage.segment.replay import BadBatch, BatchReader

_INDEXES: Final = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)


def swap_in(fs: FileSystem, directory: str, base_offset: int, replaces: Sequence[int]) -> list[str]:
    """Put one cleaned group in place. Return the paths that are left to be removed after a while.

    Groups are swapped in the order of their offsets: a .swap file behind a .cleaned one is taken to be
    unfinished.
    """
    publish(fs, directory, base_offset)
    paths = retire(fs, directory, base_offset, replaces)
    settle(fs, directory, base_offset)
    return paths


def publish(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Let the cleaned files of a group count. Their bytes are safe already."""
    # All names are safe before the first is changed. Then a group of which a .cleaned file is left is known
    # not to be published, and one without any is.
    fs.sync_directory(directory)
    for kind in SEGMENT_FILES:
        _rename(fs, directory, file_name(base_offset, kind) + CLEANED, file_name(base_offset, kind) + SWAP)
    fs.sync_directory(directory)


def retire(fs: FileSystem, directory: str, base_offset: int, replaces: Iterable[int]) -> list[str]:
    """Take the replaced segments out of the way; return the paths they have now."""
    names = [file_name(old, kind) for old in replaces for kind in SEGMENT_FILES]
    # A snapshot belongs where a segment starts.
    names += [file_name(old, SNAPSHOT) for old in replaces if old != base_offset]
    moved = [name for name in names if _rename(fs, directory, name, name + DELETED)]
    # The new .log must not get its name while an old segment behind it may still have its own.
    fs.sync_directory(directory)
    return [f"{directory}/{name}{DELETED}" for name in moved]


def settle(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Give the published files of a group their final names."""
    _rename(fs, directory, file_name(base_offset, LOG) + SWAP, file_name(base_offset, LOG))
    # As long as there is a .log.swap, indexes without .swap are known to be old.
    fs.sync_directory(directory)
    for kind in _INDEXES:
        _rename(fs, directory, file_name(base_offset, kind) + SWAP, file_name(base_offset, kind))
    fs.sync_directory(directory)


def discard_cleaned(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Remove what was written of a group that is not to be published."""
    for kind in SEGMENT_FILES:
        try:
            fs.remove(f"{directory}/{file_name(base_offset, kind)}{CLEANED}")
        except FileNotFoundError:
            continue


def _rename(fs: FileSystem, directory: str, old: str, new: str) -> bool:
    """Rename if it is there: not every segment has a .txnindex, and a segment may have been deleted."""
    try:
        fs.rename(f"{directory}/{old}", f"{directory}/{new}")
    except FileNotFoundError:
        return False
    return True


def finish_swaps(fs: FileSystem, directory: str) -> list[str]:
    """End or undo what was begun with the files of a log's directory; say what was done."""
    # Nothing to tell of: their time had not come when the broker stopped.
    _remove(fs, directory, _found(fs, directory, DELETED), "was on its way out")
    said = _undo_unpublished(fs, directory)
    swaps = _found(fs, directory, SWAP)
    logs = [offset for offset, kind in swaps if kind == LOG + SWAP]
    for base_offset in logs:
        said += _remove_replaced(fs, directory, base_offset)
    if logs:
        fs.sync_directory(directory)
    for base_offset in sorted({offset for offset, _ in swaps}):
        settle(fs, directory, base_offset)
        said.append(
            f"{directory}/{file_name(base_offset, LOG)}: took the place of what it was compacted from"
        )
    return said


def _found(fs: FileSystem, directory: str, suffix: str) -> list[tuple[int, str]]:
    """Offsets and kinds of the files with this suffix, in the order of their names."""
    parts = (split_name(entry.name) for entry in fs.entries(directory) if not entry.is_directory)
    return [part for part in parts if part is not None and part[1].endswith(suffix)]


def _undo_unpublished(fs: FileSystem, directory: str) -> list[str]:
    """Remove .cleaned files, and .swap files that are of the same group or behind it."""
    cleaned = _found(fs, directory, CLEANED)
    if not cleaned:
        return []
    unfinished = [part for part in _found(fs, directory, SWAP) if part[0] >= cleaned[0][0]]
    said = _remove(fs, directory, unfinished, "was not complete")
    # Without the .cleaned file a .swap file beside it would be believed.
    fs.sync_directory(directory)
    return said + _remove(fs, directory, cleaned, "was not complete")


def _remove_replaced(fs: FileSystem, directory: str, base_offset: int) -> list[str]:
    end_offset = _end_offset(fs, f"{directory}/{file_name(base_offset, LOG)}{SWAP}", base_offset)
    parts = (split_name(entry.name) for entry in fs.entries(directory))
    old = [
        part
        for part in parts
        if part is not None
        and (part[1] in SEGMENT_FILES or (part[1] == SNAPSHOT and part[0] != base_offset))
        and (part[0] == base_offset or base_offset < part[0] < end_offset)
    ]
    return _remove(fs, directory, old, "was compacted")


def _end_offset(fs: FileSystem, path: str, base_offset: int) -> int:
    """The offset after the last batch of a log file."""
    file = fs.open(path)
    end = base_offset
    try:
        reader = BatchReader(file, 0, file.size())
        while (batch := reader.next(whole=False)) is not None:
            end = batch.base_offset + batch.last_delta + 1
    except BadBatch as wrong:
        raise CorruptLog(path, position=wrong.position, what=wrong.what) from None
    finally:
        file.close()
    return end


def _remove(fs: FileSystem, directory: str, parts: Iterable[tuple[int, str]], why: str) -> list[str]:
    paths = [f"{directory}/{file_name(offset, kind)}" for offset, kind in parts]
    for path in paths:
        fs.remove(path)
    return [f"{path}: {why}, removed" for path in paths]
