"""The .txnindex of one segment: the aborted transactions whose markers are in it.

    version int16 | producer id | first offset | last offset | last stable offset, int64 each: 34 bytes

An entry's last offset is that of its marker, and the last stable offset is the one right after the marker.
Entries are in marker order. Functions that read the file may block on the disk.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import File

VERSION: Final = 0

_ENTRY: Final = Struct(">hqqqq")
ENTRY_SIZE: Final = _ENTRY.size
# Entries read at once.
_PIECE: Final = 1024


class AbortedTxn(NamedTuple):
    """An aborted transaction: read_committed consumers skip its records."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedSearch(NamedTuple):
    """The result of a search. If it is not complete, later segments may have more for the same range."""

    found: list[AbortedTxn]
    complete: bool


def pack_entry(txn: AbortedTxn) -> bytes:
    return _ENTRY.pack(VERSION, *txn)


def append_entry(file: File, txn: AbortedTxn) -> None:
    """Append an entry after the last whole one, over an entry that a power loss has torn."""
    file.write(file.size() // ENTRY_SIZE * ENTRY_SIZE, [pack_entry(txn)])


def read_entries(file: File, base_offset: int) -> list[AbortedTxn]:
    """All entries of the segment that starts at `base_offset`; CorruptFile if they are implausible."""
    torn = file.size() % ENTRY_SIZE
    if torn:
        raise CorruptFile(file.path, f"{torn} bytes follow the last entry")
    return list(_entries(file, base_offset))


def truncate_entries(file: File, base_offset: int, offset: int) -> None:
    """Remove the transactions whose markers are at or above `offset`, and a torn entry at the end."""
    keep = bisect_left(list(_entries(file, base_offset)), offset, key=_last_offset)
    file.truncate(keep * ENTRY_SIZE)


def aborted_in(entries: Sequence[AbortedTxn], from_offset: int, upto_offset: int) -> AbortedSearch:
    """The transactions with records in [from_offset, upto_offset), of the entries of one segment.

    An entry whose last stable offset reaches the end of the range completes the search: all transactions that
    began in the range were over by then.
    """
    found = []
    for number in range(bisect_left(entries, from_offset, key=_last_offset), len(entries)):
        txn = entries[number]
        if txn.first_offset < upto_offset:
            found.append(txn)
        if txn.last_stable_offset >= upto_offset:
            return AbortedSearch(found, complete=True)
    return AbortedSearch(found, complete=False)


def _last_offset(txn: AbortedTxn) -> int:
    return txn.last_offset


def _entries(file: File, base_offset: int) -> Iterator[AbortedTxn]:
    """Every whole entry, checked."""
    end = file.size() // ENTRY_SIZE * ENTRY_SIZE
    before = base_offset - 1
    at = 0
    while at < end:
        piece = file.read(at, min(_PIECE * ENTRY_SIZE, end - at))
        if not piece or len(piece) % ENTRY_SIZE:
            raise CorruptFile(file.path, f"file shrank below {end} bytes during the read")
        for version, *fields in _ENTRY.iter_unpack(piece):
            txn = AbortedTxn._make(fields)
            wrong = _impossible(version, txn, before)
            if wrong is not None:
                raise CorruptFile(file.path, f"entry {at // ENTRY_SIZE}, {txn}: {wrong}")
            before = txn.last_offset
            at += ENTRY_SIZE
            yield txn


def _impossible(version: int, txn: AbortedTxn, before: int) -> str | None:
    if version != VERSION:
        return f"version is {version}, expected {VERSION}"
    if txn.producer_id < 0 or txn.last_stable_offset < 0:
        return "producer id or last stable offset is negative"
    if txn.last_offset <= before:
        return f"last offset must be above {before}"
    if not 0 <= txn.first_offset < txn.last_offset:
        return "first offset must be below the last offset"
    return None
