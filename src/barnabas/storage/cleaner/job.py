"""One compaction run over one log. All of it is blocking work for the executor.

The caller collects the facts on the loop, runs fill_map(), then clean_group() for each group, and swaps each
group in (swap.py) before the next, so that a log never takes twice its disk space. If a step raises, groups
that were swapped in stay, and the rest remains uncompacted. Sources are only read.

Every batch is checked: a damaged one raises CorruptLog, and the segments stay as they are. The log must then
not be compacted again before an operator has looked at it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from barnabas.storage.cleaner.build import MapBuilder
from barnabas.storage.cleaner.facts import (
    CLEANED_BYTES_MAX,
    CleanedGroup,
    CleanedTooLarge,
    CleaningFacts,
    CleaningStats,
)
from barnabas.storage.cleaner.grouping import Source, group_sources
from barnabas.storage.cleaner.key_map import KeyMap
from barnabas.storage.cleaner.pieces import ENOUGH, read_pieces
from barnabas.storage.cleaner.rewrite import Rewriter
from barnabas.storage.cleaner.swap import discard_cleaned
from barnabas.storage.cleaner.transactions import Transactions
from barnabas.storage.files import FileSystem
from barnabas.storage.names import CLEANED, LOG, TXN_INDEX, file_name
from barnabas.storage.segment.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.segment.segment import Segment
from barnabas.storage.segment.txn_index import AbortedTxn, pack_entry

# No batch of a source has to stay.
LEAVE_NOTHING: Final = -1


def _never() -> bool:
    return False


class Cleaning:
    """A run over one log. `groups` and `next_dirty_offset` are valid after fill_map()."""

    def __init__(
        self, fs: FileSystem, facts: CleaningFacts, should_stop: Callable[[], bool] = _never
    ) -> None:
        self._fs = fs
        self._facts = facts
        self._should_stop = should_stop
        self.stats = CleaningStats()
        self.groups: list[tuple[Source, ...]] = []
        # Where the next run starts once all groups of this one are swapped in.
        self.next_dirty_offset = facts.dirty_start
        self._map = KeyMap(facts.map_bytes, facts.secret, facts.map_load_factor)
        begin = facts.sources[0].base_offset if facts.sources else 0
        self._transactions = Transactions(facts.aborted, begin, facts.open_before)
        self._rewriter = Rewriter(
            self._map,
            self._transactions,
            facts.producers,
            upper_bound=facts.upper_bound,
            now_ms=facts.now_ms,
            delete_retention_ms=facts.delete_retention_ms,
        )
        self._cleaned = 0

    def fill_map(self) -> None:
        """Read the dirty part as far as its keys fit, and form the groups; KeysDoNotFit if none fit."""
        facts, stats = self._facts, self.stats
        dirty = [(source, end) for source, end in self._with_ends(facts.sources) if end > facts.dirty_start]
        read_from = dirty[0][0].base_offset if dirty else facts.dirty_start
        builder = MapBuilder(self._map, Transactions(facts.aborted, read_from), facts.dirty_start)

        def take(data: bytes, /, *, is_last: bool) -> int:
            taken = builder.feed(data)
            return ENOUGH if builder.is_full else taken

        for source, end in dirty:
            if not builder.is_full:
                builder.batch.begin_segment(source.base_offset, end)
                path = self._path(source)
                stats.map_bytes_read += read_pieces(
                    self._fs, path, source.size, take, builder.batch, self._should_stop
                )
                if not builder.is_full:
                    builder.end_segment(end)
        builder.check_progress()
        stats.map_records_read = builder.records_read
        stats.map_utilization = self._map.utilization
        stats.map_was_full = builder.is_full
        self._settle_groups()

    def _settle_groups(self) -> None:
        facts, latest = self._facts, self._map.latest_offset
        self.next_dirty_offset = max(facts.dirty_start, latest + 1)
        self.groups = group_sources(
            [source for source in facts.sources if source.base_offset <= latest],
            segment_bytes=facts.group_bytes,
            index_bytes=facts.index_bytes,
            upper_bound=facts.upper_bound,
        )

    def clean_group(self, number: int) -> CleanedGroup:
        """Write and sync one compacted group. Call it for every group, in order."""
        assert number == self._cleaned, f"group {number} instead of {self._cleaned}"
        group = self.groups[number]
        base_offset = group[0].base_offset
        # An earlier run that was stopped may have left files.
        discard_cleaned(self._fs, self._facts.directory, base_offset)
        try:
            cleaned = self._write_group(group)
        except Exception:
            discard_cleaned(self._fs, self._facts.directory, base_offset)
            raise
        self._cleaned += 1
        return cleaned

    def _write_group(self, group: Sequence[Source]) -> CleanedGroup:
        facts = self._facts
        base_offset = group[0].base_offset
        segment = Segment(self._fs, facts.directory, base_offset, suffix=CLEANED)
        segment.make_files()
        try:
            self._copy(group, segment)
            segment.finish()
            for file in segment.files_to_sync():
                file.sync()
            aborted = self._transactions.take_kept()
            self._write_aborted(base_offset, aborted)
            max_timestamp, max_timestamp_offset = segment.latest()
            return CleanedGroup(
                base_offset=base_offset,
                size=segment.size,
                index_size=segment.offset_index().count * OFFSET_ENTRY.size,
                time_index_size=segment.time_index().count * TIME_ENTRY.size,
                max_timestamp=max_timestamp,
                max_timestamp_offset=max_timestamp_offset,
                replaces=tuple(source.base_offset for source in group),
                aborted=tuple(aborted),
            )
        finally:
            segment.close()

    def _copy(self, group: Sequence[Source], into: Segment) -> None:
        rewriter, stats, facts = self._rewriter, self.stats, self._facts
        output = rewriter.output
        output.begin_segment()
        leaver = _must_leave(group)
        leave_from = LEAVE_NOTHING

        def take(data: bytes, /, *, is_last: bool) -> int:
            taken = rewriter.feed(data, leave_from if is_last else LEAVE_NOTHING)
            if output.size > CLEANED_BYTES_MAX:
                raise CleanedTooLarge(facts.directory, base_offset=group[0].base_offset)
            output.write_to(into, facts.index_interval_bytes)
            return taken

        for source, end in self._with_ends(group):
            rewriter.batch.begin_segment(source.base_offset, end)
            leave_from = source.base_offset if source is leaver else LEAVE_NOTHING
            stats.bytes_read += read_pieces(
                self._fs, self._path(source), source.size, take, rewriter.batch, self._should_stop
            )
        stats.bytes_kept += output.size
        stats.records_read = rewriter.records_read
        stats.records_kept = rewriter.records_kept
        stats.records_without_key = rewriter.records_without_key

    def _write_aborted(self, base_offset: int, aborted: Sequence[AbortedTxn]) -> None:
        if not aborted:
            return
        path = f"{self._facts.directory}/{file_name(base_offset, TXN_INDEX)}{CLEANED}"
        file = self._fs.open(path, create=True)
        try:
            file.write(0, [b"".join(pack_entry(txn) for txn in aborted)])
            file.sync()
        finally:
            file.close()

    def _with_ends(self, sources: Sequence[Source]) -> Iterator[tuple[Source, int]]:
        """Each source with its end offset, which is the base offset of the next."""
        bases = [source.base_offset for source in self._facts.sources] + [self._facts.upper_bound]
        ends = dict(pairwise(bases))
        return ((source, ends[source.base_offset]) for source in sources)

    def _path(self, source: Source) -> str:
        return f"{self._facts.directory}/{file_name(source.base_offset, LOG)}"


def _must_leave(group: Sequence[Source]) -> Source | None:
    """The source of which at least one batch must stay, if there is one.

    After a power loss, recovery derives from the offsets in a .swap file which segments it replaces. If no
    batch of the group's last segments stayed, recovery would take them for later segments and keep them.
    Empty segments do no harm.
    """
    filled = [source for source in group if source.size > 0]
    return filled[-1] if filled and filled[-1] is not group[0] else None


def clean(
    fs: FileSystem, facts: CleaningFacts, should_stop: Callable[[], bool] = _never
) -> tuple[Cleaning, list[CleanedGroup]]:
    """Do a whole run without swapping in between; the disk must have room for a second copy of the log."""
    cleaning = Cleaning(fs, facts, should_stop)
    cleaning.fill_map()
    return cleaning, [cleaning.clean_group(number) for number in range(len(cleaning.groups))]
