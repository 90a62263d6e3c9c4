"""Decide when a snapshot of the metadata is due (pure).

One is due after a number of bytes of records, so that a start has little to replay, and after an interval if
there are any new records, so that the log can be truncated at its start.
"""

from barnabas.base.values import value


@value(kw_only=True)
class SnapshotSchedule:
    """metadata.log.max.record.bytes.between.snapshots, metadata.log.max.snapshot.interval.ms (0: never)."""

    bytes_max: int
    interval_ms: int

    def is_due(self, *, bytes_since: int, ms_since: int) -> bool:
        """Decide by the bytes and time since the last snapshot, or since the start."""
        if bytes_since <= 0:
            return False
        return bytes_since >= self.bytes_max or 0 < self.interval_ms <= ms_since
