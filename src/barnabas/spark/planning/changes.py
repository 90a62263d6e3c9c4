"""Detects changes of topics since a query's last micro-batch, and which of them lose data.

Between micro-batches partitions are added, topics are deleted or recreated, and old records are deleted.
Data loss is records that the query has not read and that no longer exist; it is reported and skipped.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.spark.offsets import Offsets


class Resumed(NamedTuple):
    """The start offset of every existing partition, and messages about lost data."""

    start: dict[TopicPartition, int]
    losses: list[str]


def resume(before: Offsets, earliest: Offsets, latest: Offsets, *, remade: Collection[str] = ()) -> Resumed:
    """Compare the query's offsets `before` with the first and last offsets of its existing partitions.

    `remade` are topics that were recreated since the query read them.
    """
    start: dict[TopicPartition, int] = {}
    losses = [
        f"{tp} no longer exists; the query was at offset {before[tp]}"
        for tp in sorted(before.keys() - latest.keys())
    ]
    for tp in sorted(latest):
        first, last, at = earliest[tp], latest[tp], before.get(tp)
        if at is None:
            # A partition that was added while the query runs is read from its beginning.
            at = 0
            what = "is new"
        else:
            what = f"was read up to offset {at}"
        if tp in before and tp.topic in remade:
            again = f"the topic was recreated and has offsets {first} to {last}"
            losses.append(f"{tp} {what}, but {again}")
            at = first
        elif at < first:
            losses.append(f"{tp} {what}, but now begins at {first}: {first - at} offsets are lost")
            at = first
        elif at > last:
            # The topic was recreated or truncated: unknown which of its records were read.
            losses.append(f"{tp} {what}, but now ends at {last}: it was recreated or truncated")
            at = first
        start[tp] = at
    return Resumed(start, losses)


class Absences:
    """Partitions of named topics that do not exist, with the query's offset and topic id before.

    While a partition is absent the query's offset in it is 0, so a recreated topic is read from its beginning
    even if the query was restarted in between. If the same topic comes back, because only some broker had not
    learned of it, the query continues at its previous offset.
    """

    def __init__(self) -> None:
        self._left: dict[TopicPartition, tuple[int, Uuid | None]] = {}

    def note(
        self, at: Offsets, absent: Collection[TopicPartition], ids: Mapping[str, Uuid]
    ) -> set[TopicPartition]:
        """Record absent partitions; return the newly absent ones. `ids` are those of the previous call."""
        news = set(absent) - self._left.keys()
        self._left |= {tp: (at.get(tp, 0), ids.get(tp.topic)) for tp in news}
        return news

    def returned(
        self, at: Offsets, absent: Collection[TopicPartition], ids: Mapping[str, Uuid]
    ) -> dict[TopicPartition, int]:
        """Return `at` with the previous offsets of partitions whose topic is back with the same id."""
        found = dict(at)
        for tp, (offset, topic_id) in list(self._left.items()):
            if tp in absent:
                continue
            if at.get(tp) == 0 and topic_id is not None and ids.get(tp.topic) == topic_id:
                # Keep the entry until a micro-batch has started at this offset.
                found[tp] = offset
            else:
                del self._left[tp]
        return found


def apart(at: Offsets, begin: Offsets, end: Offsets) -> Offsets:
    """Return `end`, moved by one offset if it equals `at` although there is something to read.

    Spark runs no micro-batch whose end equals the end of the last one. A batch that rereads a recreated topic
    may end exactly there; it then ends one offset earlier.
    """
    again = next((tp for tp in sorted(end) if begin[tp] < end[tp]), None)
    return end if end != at or again is None else {**end, again: end[again] - 1}


class TopicIds:
    """The ids of the topics to which the query's offsets refer, to detect recreated topics.

    A checkpoint cannot hold topic ids, so they are known only while the query runs.
    """

    def __init__(self) -> None:
        self._at: Offsets | None = None
        self._known: Mapping[str, Uuid] = {}
        self._seen: Mapping[str, Uuid] = {}

    def note(self, ids: Mapping[str, Uuid]) -> None:
        """Record the topic ids of an offset request."""
        self._seen = ids

    @property
    def seen(self) -> Mapping[str, Uuid]:
        """The ids of the last note()."""
        return self._seen

    def remade(self, at: Offsets, ids: Mapping[str, Uuid]) -> set[str]:
        """Return the topics whose id differs from that with which the query reached `at`."""
        if at != self._at:
            # The micro-batch that ended at `at` was planned with the ids seen last.
            self._at, self._known = at, self._seen or ids
        self.note(ids)
        return {name for name, one in ids.items() if self._known.get(name, one) != one}
