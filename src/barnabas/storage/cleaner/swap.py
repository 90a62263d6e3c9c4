"""Replace segment files atomically: a power loss leaves all old or all new records of a group.

    publish   rename the synced .cleaned files to .swap, which commits the swap
    retire    rename the files of the replaced segments to .deleted
    settle    give the .swap files their final names, the .log first

Names and order are Kafka's. The directory is synced between the steps, or a power loss could leave a later
step without an earlier one. finish_swaps() completes or undoes interrupted swaps when a log is opened; it may
itself be interrupted anywhere and run again.

As in Kafka's loader, the offsets of a .swap file tell which segments it replaces: those that start between
its base offset and its end. The cleaner guarantees this (see Rewriter.feed). All functions here block on the
disk, so call them in the executor.
"""

from collections.abc import Iterable
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


def publish(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Commit the cleaned files of a group. Their bytes are synced already.

    Groups must be swapped in the order of their offsets: a .swap file after a .cleaned one is taken to be
    unfinished.
    """
    # Sync all names before the first rename. Then a group is published exactly if no .cleaned file of it is
    # left.
    fs.sync_directory(directory)
    for kind in SEGMENT_FILES:
        _rename(fs, directory, file_name(base_offset, kind) + CLEANED, file_name(base_offset, kind) + SWAP)
    fs.sync_directory(directory)


def retire(fs: FileSystem, directory: str, base_offset: int, replaces: Iterable[int]) -> list[str]:
    """Rename the files of the replaced segments; return their new paths."""
    names = [file_name(old, kind) for old in replaces for kind in SEGMENT_FILES]
    # A producer snapshot stays only at the start of a segment.
    names += [file_name(old, SNAPSHOT) for old in replaces if old != base_offset]
    moved = [name for name in names if _rename(fs, directory, name, name + DELETED)]
    # The new .log must not get its final name while a replaced segment may still have its own.
    fs.sync_directory(directory)
    return [f"{directory}/{name}{DELETED}" for name in moved]


def settle(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Rename the published files of a group to their final names."""
    _rename(fs, directory, file_name(base_offset, LOG) + SWAP, file_name(base_offset, LOG))
    # While .log.swap exists, indexes without .swap are known to be old.
    fs.sync_directory(directory)
    for kind in _INDEXES:
        _rename(fs, directory, file_name(base_offset, kind) + SWAP, file_name(base_offset, kind))
    fs.sync_directory(directory)


def discard_cleaned(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Remove the files of a group that will not be published."""
    for kind in SEGMENT_FILES:
        try:
            fs.remove(f"{directory}/{file_name(base_offset, kind)}{CLEANED}")
        except FileNotFoundError:
            continue


def _rename(fs: FileSystem, directory: str, old: str, new: str) -> bool:
    """Rename a file that may be missing: a segment without .txnindex, or one that was deleted."""
    try:
        fs.rename(f"{directory}/{old}", f"{directory}/{new}")
    except FileNotFoundError:
        return False
    return True


def finish_swaps(fs: FileSystem, directory: str) -> list[str]:
    """Complete or undo the interrupted swaps in a log's directory; return a message for each change."""
    # Not reported: these files were only waiting for file.delete.delay.ms.
    _remove(fs, directory, _files_with(fs, directory, DELETED), "deletion was pending")
    messages = _undo_unpublished(fs, directory)
    swaps = _files_with(fs, directory, SWAP)
    logs = [offset for offset, kind in swaps if kind == LOG + SWAP]
    for base_offset in logs:
        messages += _remove_replaced(fs, directory, base_offset)
    if logs:
        fs.sync_directory(directory)
    for base_offset in sorted({offset for offset, _ in swaps}):
        settle(fs, directory, base_offset)
        messages.append(f"{directory}/{file_name(base_offset, LOG)}: interrupted compaction completed")
    return messages


def _files_with(fs: FileSystem, directory: str, suffix: str) -> list[tuple[int, str]]:
    """Offsets and kinds of the files with this suffix, ordered by name."""
    parts = (split_name(entry.name) for entry in fs.entries(directory) if not entry.is_directory)
    return [part for part in parts if part is not None and part[1].endswith(suffix)]


def _undo_unpublished(fs: FileSystem, directory: str) -> list[str]:
    """Remove .cleaned files, and .swap files of the same group or a later one."""
    cleaned = _files_with(fs, directory, CLEANED)
    if not cleaned:
        return []
    unfinished = [part for part in _files_with(fs, directory, SWAP) if part[0] >= cleaned[0][0]]
    messages = _remove(fs, directory, unfinished, "compaction was interrupted")
    # Remove .cleaned last: without it, a .swap file of the group would count as published.
    fs.sync_directory(directory)
    return messages + _remove(fs, directory, cleaned, "compaction was interrupted")


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
    return _remove(fs, directory, old, "replaced by compaction")


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


def _remove(fs: FileSystem, directory: str, parts: Iterable[tuple[int, str]], reason: str) -> list[str]:
    paths = [f"{directory}/{file_name(offset, kind)}" for offset, kind in parts]
    for path in paths:
        fs.remove(path)
    return [f"{path}: removed, {reason}" for path in paths]
