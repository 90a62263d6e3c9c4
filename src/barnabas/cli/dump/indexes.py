"""Dump offset and time indexes, and check each entry against the log."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.cli.dump.batches import LAST_LEGACY_MAGIC, Batch, clip, last_offset, read_header, walk
from barnabas.cli.dump.java import INT_MAX, int64
from barnabas.cli.dump.output import Findings, Output
from barnabas.cli.dump.records import decode_records
from barnabas.cli.dump.source import DumpFailed, Source, absolute_path, sibling, start_offset
from barnabas.storage.names import LOG, OFFSET_INDEX

# Offset index: relative offset, position. Time index: timestamp, relative offset.
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
# Kafka's lookup searches the end of an index first, because a busy broker has that part in memory. In a
# damaged index the result depends on which entries are compared, so ours compares the same ones.
_WARM_BYTES: Final = 8192


class OffsetIndex:
    """The entries of an .index file."""

    def __init__(self, source: Source, base: int) -> None:
        self._source = source
        self._base = base
        self.entries = source.size // _OFFSET_ENTRY.size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield offset and position of every entry, up to the zeros of the unused part."""
        for number in range(self.entries):
            data = self._source.read(number * _OFFSET_ENTRY.size, _OFFSET_ENTRY.size)
            relative, position = _OFFSET_ENTRY.unpack(data)
            if relative == 0 and number > 0:
                return
            yield int64(self._base + relative), position

    def entry(self, number: int) -> tuple[int, int]:
        data = self._source.read_apart(number * _OFFSET_ENTRY.size, _OFFSET_ENTRY.size)
        relative, position = _OFFSET_ENTRY.unpack(data)
        return int64(self._base + relative), position

    def lookup(self, offset: int) -> int:
        """Return the position of the last entry at or before `offset`; 0 without one."""
        if self.entries == 0:
            return 0
        first_warm = max(0, self.entries - 1 - _WARM_BYTES // _OFFSET_ENTRY.size)
        if self.entry(first_warm)[0] < offset:
            return self._search(offset, first_warm, self.entries - 1)
        if self.entry(0)[0] > offset:
            return 0
        return self._search(offset, 0, first_warm)

    def _search(self, offset: int, low: int, high: int) -> int:
        while low < high:
            middle = (low + high + 1) // 2
            found, position = self.entry(middle)
            if found == offset:
                return position
            if found > offset:
                high = middle - 1
            else:
                low = middle
        return self.entry(low)[1]


def dump_index(
    path: str, *, sanity_only: bool, verify_only: bool, bytes_max: int, findings: Findings, output: Output
) -> None:
    base = start_offset(path)
    with Source(sibling(path, LOG)) as log, Source(path) as source:
        index = OffsetIndex(source, base)
        if index.entries == 0:
            output.line(f"{path} is empty.")
        elif sanity_only:
            _check_offsets(source, index, base)
            output.line(f"{path} passed sanity check.")
        else:
            for offset, position in index:
                batch = next(walk(log, *clip(log, position, bytes_max)), None)
                if batch is None:
                    raise DumpFailed(path, f"log has no complete batch at position {position}")
                found = last_offset(log, batch)
                if found != offset:
                    findings.mismatch(absolute_path(path), offset, found)
                if not verify_only:
                    output.line(f"offset: {offset} position: {position}")


def _check_offsets(source: Source, index: OffsetIndex, base: int) -> None:
    """Run the sanity check of a broker's startup."""
    last = index.entry(index.entries - 1)[0]
    if last < base:
        raise DumpFailed(source.path, f"last offset {last} is less than base offset {base}")
    _check_size(source, _OFFSET_ENTRY.size)


def _check_size(source: Source, entry_size: int) -> None:
    if source.size % entry_size != 0:
        raise DumpFailed(
            source.path, f"file size {source.size} is not a multiple of the entry size {entry_size}"
        )


def dump_time_index(
    path: str, *, sanity_only: bool, verify_only: bool, findings: Findings, output: Output
) -> None:
    base = start_offset(path)
    with (
        Source(sibling(path, LOG)) as log,
        Source(sibling(path, OFFSET_INDEX)) as offsets,
        Source(path) as source,
    ):
        if sanity_only:
            _check_times(source, base)
            output.line(f"{path} passed sanity check.")
            return
        checker = _TimeChecker(log, OffsetIndex(offsets, base), absolute_path(path), findings)
        for timestamp, offset in _time_entries(source, base):
            checker.check(timestamp, offset)
            if not verify_only:
                output.line(f"timestamp: {timestamp} offset: {offset}")


def _time_entries(source: Source, base: int) -> Iterator[tuple[int, int]]:
    for number in range(source.size // _TIME_ENTRY.size):
        timestamp, relative = _TIME_ENTRY.unpack(source.read(number * _TIME_ENTRY.size, _TIME_ENTRY.size))
        # The unused part is filled with zeros.
        if relative == 0 and number > 0:
            return
        yield timestamp, int64(base + relative)


def _check_times(source: Source, base: int) -> None:
    entries = source.size // _TIME_ENTRY.size
    if entries:
        first, _ = _TIME_ENTRY.unpack(source.read_apart(0, _TIME_ENTRY.size))
        last, relative = _TIME_ENTRY.unpack(
            source.read_apart((entries - 1) * _TIME_ENTRY.size, _TIME_ENTRY.size)
        )
        if last < first:
            raise DumpFailed(source.path, f"last timestamp {last} is less than first timestamp {first}")
        if int64(base + relative) < base:
            raise DumpFailed(
                source.path, f"last offset {int64(base + relative)} is less than base offset {base}"
            )
    _check_size(source, _TIME_ENTRY.size)


class _TimeChecker:
    """Finds the batch of each time index entry, and compares timestamps."""

    def __init__(self, log: Source, index: OffsetIndex, path: str, findings: Findings) -> None:
        self._log = log
        self._index = index
        self._path = path
        self._findings = findings
        self._previous = -1
        # Kafka's tool walks the log to its end for every entry, and fails at an invalid length. One walk per
        # chain of batches finds the same lengths; `_checked` holds the indexed positions of such walks.
        self._indexed = {0, *(position for _, position in index)}
        self._checked: set[int] = set()

    def check(self, timestamp: int, offset: int) -> None:
        position = self._index.lookup(offset)
        batch = self._find(position, offset)
        if batch is None:
            self._findings.missing_offset(self._path, offset, -1)
        elif (found := last_offset(self._log, batch)) != offset:
            self._findings.missing_offset(self._path, offset, found)
        else:
            latest = self._latest(batch)
            if latest != timestamp:
                self._findings.wrong_time(self._path, timestamp, latest)
            if self._previous >= timestamp:
                self._findings.unordered_time(self._path, timestamp, self._previous)
        self._previous = timestamp

    def _find(self, position: int, offset: int) -> Batch | None:
        """Return the first batch from `position` on whose last offset is at least `offset`."""
        start, end = clip(self._log, position, INT_MAX)
        if position not in self._checked:
            self._checked.update(
                batch.position for batch in walk(self._log, start, end) if batch.position in self._indexed
            )
        for batch in walk(self._log, start, end):
            if last_offset(self._log, batch) >= offset:
                return batch
        return None

    def _latest(self, batch: Batch) -> int:
        if batch.magic <= LAST_LEGACY_MAGIC:
            raise DumpFailed(
                self._log.path, f"cannot check the version {batch.magic} message at byte {batch.position}"
            )
        decoded = decode_records(self._log, batch, read_header(self._log, batch))
        if decoded.failure is not None:
            raise DumpFailed(self._log.path, decoded.failure)
        return max((record.timestamp for record in decoded.records), default=-1)
