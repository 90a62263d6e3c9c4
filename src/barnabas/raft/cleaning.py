"""Decide which snapshots, and which part of the log before them, to delete (pure).

As in Kafka, while there are at least two snapshots, the oldest is deleted if log and snapshots together are
too large, or if its content is too old. The log then starts at the next one.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

from barnabas.raft.facts import OffsetAndEpoch


def new_log_start(
    snapshots: Mapping[OffsetAndEpoch, int],
    *,
    log_size: int,
    max_bytes: int,
    max_age_ms: int,
    age_ms: Callable[[OffsetAndEpoch], int],
) -> OffsetAndEpoch | None:
    """The snapshot at which the log may start; None to keep everything. A limit of -1 means no limit."""
    total = log_size + sum(snapshots.values())
    start: OffsetAndEpoch | None = None
    for oldest, following in pairwise(sorted(snapshots)):
        too_large = max_bytes >= 0 and total > max_bytes
        if not too_large and not (max_age_ms >= 0 and age_ms(oldest) > max_age_ms):
            break
        total -= snapshots[oldest]
        start = following
    return start
