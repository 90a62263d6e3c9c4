"""The end offsets of a micro-batch of a stream.

Without limits a micro-batch reads to the end. `offsets_max` is shared by the partitions in proportion to
their backlog. With `offsets_min` a micro-batch waits for that many offsets, or until `wait_max_ms` have
passed since the last one (Waiting).
"""

import math
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import Offsets

_OFFSET_MAX: Final = (1 << 63) - 1


def limited(start: Offsets, end: Offsets, offsets_max: int) -> dict[TopicPartition, int]:
    """Return end offsets of at most `end` that are about `offsets_max` offsets from the start in total.

    `start` has every partition of `end`. A share below one offset is rounded up, so that small partitions do
    not starve; other shares are rounded down. This is Spark's rule, including the order of operations:
    otherwise 0.29 of 100 would be 29 here and 28 in Spark.
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
    """Decides when a micro-batch may start, by `offsets_min` and `wait_max_ms`."""

    def __init__(self, offsets_min: int, wait_max_ms: int) -> None:
        self._offsets_min = offsets_min
        self._wait_max_ms = wait_max_ms
        # None until the first micro-batch, which does not wait.
        self._last_ms: int | None = None

    def must_wait(self, start: Offsets, end: Offsets, now_ms: int) -> bool:
        """Whether to wait. If not, the next wait is measured from now."""
        has_waited = self._last_ms is None or now_ms - self._last_ms >= self._wait_max_ms
        if not has_waited and _new(start, end) < self._offsets_min:
            return True
        self._last_ms = now_ms
        return False


def _new(start: Offsets, end: Offsets) -> int:
    return sum(max(0, offset - start[tp]) for tp, offset in end.items())
