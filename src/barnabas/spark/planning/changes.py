"""What has changed in a cluster since a query was where it is, and what of it is loss.

A query goes on at an offset. Meanwhile partitions come to be, topics are deleted or made anew, and what is
old goes away. Loss is what the query has not read and nobody can read any more: it is told, and left out.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.spark.offsets import Offsets


class Resumed(NamedTuple):
    """Where to go on, for every partition that there is now; and what is lost, in sentences."""

    start: dict[TopicPartition, int]
    losses: list[str]


def resume(before: Offsets, earliest: Offsets, latest: Offsets, *, remade: Collection[str] = ()) -> Resumed:
    """`before` is where the query is, the others are the ends of all partitions that it reads now.

    `remade` are topics that are known to be other ones than those in which the query came there.
    """
    start: dict[TopicPartition, int] = {}
    losses = [
        f"{tp} no longer exists; the query was at offset {before[tp]}"
        for tp in sorted(before.keys() - latest.keys())
    ]
    for tp in sorted(latest):
        first, last, at = earliest[tp], latest[tp], before.get(tp)
        if at is None:
            # It came to be after the query began, which would have read it from its beginning.
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
            # Made anew under the same name, or cut: nothing says what of it was read.
            losses.append(f"{tp} {what}, but now ends at {last}: it was recreated or truncated")
            at = first
        start[tp] = at
    return Resumed(start, losses)


class Absences:
    """Partitions of topics that a query names and no broker knows: since when, and where it was in them.

    While they are gone the query stands at 0 in them. So whatever comes back is read from its beginning, even
    by a query that was started anew meanwhile. But if it is the same topic, which some broker had not heard
    of yet, the query goes on where it was.
    """

    def __init__(self) -> None:
        self._left: dict[TopicPartition, tuple[int, Uuid | None]] = {}

    def note(
        self, at: Offsets, absent: Collection[TopicPartition], ids: Mapping[str, Uuid]
    ) -> set[TopicPartition]:
        """Those that were there when this was asked before. `ids` are of that time."""
        news = set(absent) - self._left.keys()
        self._left |= {tp: (at.get(tp, 0), ids.get(tp.topic)) for tp in news}
        return news

    def returned(
        self, at: Offsets, absent: Collection[TopicPartition], ids: Mapping[str, Uuid]
    ) -> dict[TopicPartition, int]:
        """`at`, and where the query was in topics that are there again and the same."""
        found = dict(at)
        for tp, (offset, topic_id) in list(self._left.items()):
            if tp in absent:
                continue
            if at.get(tp) == 0 and topic_id is not None and ids.get(tp.topic) == topic_id:
                # Not forgotten before a batch has begun there.
                found[tp] = offset
            else:
                del self._left[tp]
        return found


def apart(at: Offsets, begin: Offsets, end: Offsets) -> Offsets:
    """The end, or one that is not `at`, if there is something to read.

    Spark runs no batch whose end is where the last one ended. One that begins again may come to end just
    there: then it ends an offset earlier.
    """
    again = next((tp for tp in sorted(end) if begin[tp] < end[tp]), None)
    return end if end != at or again is None else {**end, again: end[again] - 1}


class TopicIds:
    """In which topics a query has come to where it is: an offset says nothing of others of the same name.

    A checkpoint has no place for ids, so they are known only for as long as a query runs.
    """

    def __init__(self) -> None:
        self._at: Offsets | None = None
        self._known: Mapping[str, Uuid] = {}
        self._seen: Mapping[str, Uuid] = {}

    def note(self, ids: Mapping[str, Uuid]) -> None:
        """Offsets were asked for, in these topics."""
        self._seen = ids

    @property
    def seen(self) -> Mapping[str, Uuid]:
        """As they were noted last."""
        return self._seen

    def remade(self, at: Offsets, ids: Mapping[str, Uuid]) -> set[str]:
        """The topics that are other ones now than those in which the query came to `at`."""
        if at != self._at:
            # It came there by a batch that was planned with what was seen last.
            self._at, self._known = at, self._seen or ids
        self.note(ids)
        return {name for name, one in ids.items() if self._known.get(name, one) != one}
