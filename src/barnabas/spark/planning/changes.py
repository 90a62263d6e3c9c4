"""What has changed in a cluster since a query was where it is, and what of it is loss.

A query goes on at an offset. Meanwhile partitions come to be, topics are deleted or made anew, and what is
old goes away. Loss is what the query has not read and nobody can read any more: it is told, and left out.
"""

from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import Offsets


class Resumed(NamedTuple):
    """Where to go on, for every partition that there is now; and what is lost, in sentences."""

    start: dict[TopicPartition, int]
    losses: list[str]


def resume(before: Offsets, earliest: Offsets, latest: Offsets) -> Resumed:
    """`before` is where the query is, the others are the ends of all partitions that it reads now."""
    start: dict[TopicPartition, int] = {}
    losses = [f"{tp} is gone; the query was at {before[tp]}" for tp in sorted(before.keys() - latest.keys())]
    for tp in sorted(latest):
        first, last, at = earliest[tp], latest[tp], before.get(tp)
        if at is None:
            # It came to be after the query began, which would have read it from its beginning.
            at = 0
            what = "is new"
        else:
            what = f"was read up to {at}"
        if at < first:
            losses.append(f"{tp} {what}, and begins at {first} now: {first - at} offsets are lost")
            at = first
        elif at > last:
            # Made anew under the same name, or cut: nothing says what of it was read.
            losses.append(f"{tp} {what}, and ends at {last} now: it is not the same any more")
            at = first
        start[tp] = at
    return Resumed(start, losses)
