"""How far a micro-batch of a stream goes.

Without limits it goes to the end. `offsets_max` is shared by the partitions in proportion to what each has to
be read. With `offsets_min` a batch waits until there is so much, or until `wait_max_ms` have passed since the
last one: the reader remembers when that was (Waiting).
"""

import math
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import Offsets

_OFFSET_MAX: Final = (1 << 63) - 1


def limited(start: Offsets, end: Offsets, offsets_max: int) -> dict[TopicPartition, int]:
    """An end that is at most `end`, and about `offsets_max` offsets from the start.

    `start` has every partition of `end`. Less than one offset for a partition is rounded up, so that small
    ones do not starve; everything else is rounded down. That is Spark's rule, and the order of operations is
    Spark's as well: otherwise 0.29 of 100 would be 29 here, and is 28 there.
    """
    sizes = {tp: end[tp] - start[tp] for tp in end if end[tp] > start[tp]}
    total = sum(sizes.values())
    reached = dict(end)
    for tp, size in sizes.items():
        share = offsets_max * (size / total)
        offsets = math.ceil(share) if share < 1 else math.floor(share)
        reached[tp] = min(end[tp], start[tp] + offsets, _OFFSET_MAX)
    return reached


class Waiting:
    """When a batch may begin, by `offsets_min` and `wait_max_ms`."""

    def __init__(self, offsets_min: int, wait_max_ms: int) -> None:
        self._offsets_min = offsets_min
        self._wait_max_ms = wait_max_ms
        # No batch yet: the first one does not wait.
        self._last_ms: int | None = None

    def must_wait(self, start: Offsets, end: Offsets, now_ms: int) -> bool:
        """Whether this is too early. If it is not, the time counts from now."""
        has_waited = self._last_ms is None or now_ms - self._last_ms >= self._wait_max_ms
        if not has_waited and _new(start, end) < self._offsets_min:
            return True
        self._last_ms = now_ms
        return False


def _new(start: Offsets, end: Offsets) -> int:
    return sum(max(0, offset - start[tp]) for tp, offset in end.items())
