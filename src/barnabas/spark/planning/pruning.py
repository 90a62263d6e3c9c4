"""The partitions, offsets and minimum timestamp to which the filters of a query restrict reading.

Pruning is conservative, and Spark filters the rows again. Timestamps have only a lower bound, because they
need not increase with offsets: brokers find the first record at or after a timestamp, but records after the
last match may be older.
"""

from dataclasses import dataclass, replace
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import Offsets
from barnabas.spark.planning.splits import OffsetRange

_OFFSET_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Wanted:
    """The records to read. Offsets are inclusive; None means all topics, all partitions or any timestamp."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_offset: int = 0
    last_offset: int = _OFFSET_MAX
    since_ms: int | None = None

    def in_topics(self, names: frozenset[str]) -> "Wanted":
        return replace(self, topics=names if self.topics is None else self.topics & names)

    def in_partitions(self, numbers: frozenset[int]) -> "Wanted":
        return replace(self, partitions=numbers if self.partitions is None else self.partitions & numbers)

    def from_offset(self, offset: int) -> "Wanted":
        return replace(self, first_offset=max(self.first_offset, offset))

    def to_offset(self, offset: int) -> "Wanted":
        return replace(self, last_offset=min(self.last_offset, offset))

    def since(self, time_ms: int) -> "Wanted":
        return replace(self, since_ms=time_ms if self.since_ms is None else max(self.since_ms, time_ms))

    def has(self, tp: TopicPartition) -> bool:
        return (self.topics is None or tp.topic in self.topics) and (
            self.partitions is None or tp.partition in self.partitions
        )

    def pruned(self, ranges: list[OffsetRange], since: Offsets) -> list[OffsetRange]:
        """Return the ranges without excluded offsets. `since` has the first offset at or after `since_ms`."""
        left = []
        for one in ranges:
            start = max(one.start, self.first_offset, since.get(one.tp, 0))
            end = min(one.end, self.last_offset + 1)
            if self.has(one.tp) and start < end:
                left.append(OffsetRange(one.tp, start, end))
        return left
