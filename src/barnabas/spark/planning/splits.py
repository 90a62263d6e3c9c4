"""Splits ranges of offsets into Spark tasks.

A partition is one task by default. With fewer partitions than `min_partitions`, large ranges are split in
proportion to their size into about that many tasks; ranges of more than `records_max` offsets are split, too.
Sizes are differences of offsets: with compaction and transaction markers a range has fewer records.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import Offsets


class OffsetRange(NamedTuple):
    """Offsets from `start` up to but not including `end`."""

    tp: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """Return the non-empty ranges, ordered by partition. `start` must have every partition of `end`."""
    return [OffsetRange(tp, start[tp], end[tp]) for tp in sorted(end) if end[tp] > start[tp]]


def split(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None = None, records_max: int | None = None
) -> list[OffsetRange]:
    """Split ranges into tasks. With both limits, `records_max` is applied first, as in Spark."""
    wanted = [one for one in ranges if one.size > 0]
    if records_max is not None:
        wanted = [part for one in wanted for part in _cut(one, -(-one.size // records_max))]
    if min_partitions is None or len(wanted) >= min_partitions:
        return wanted
    return _into(wanted, min_partitions)


def _into(ranges: list[OffsetRange], parts: int) -> list[OffsetRange]:
    total = sum(one.size for one in ranges)
    # Ranges that stay whole are excluded from the total that the others share.
    whole = [one for one in ranges if _share(one.size, total, parts) == 1]
    left = total - sum(one.size for one in whole)
    for_others = max(parts - len(whole), 1)
    stay = set(whole)
    return [
        part for one in ranges for part in _cut(one, 1 if one in stay else _share(one.size, left, for_others))
    ]


def _share(size: int, total: int, parts: int) -> int:
    # Round half up, as Java's Math.round().
    return max((2 * size * parts + total) // (2 * total), 1)


def _cut(one: OffsetRange, parts: int) -> list[OffsetRange]:
    """Cut a range into at most `parts` non-empty ranges of equal size, give or take one offset."""
    cut: list[OffsetRange] = []
    start, left = one.start, one.size
    for number in range(parts):
        size = left // (parts - number)
        if size > 0:
            cut.append(OffsetRange(one.tp, start, start + size))
        start += size
        left -= size
    return cut
