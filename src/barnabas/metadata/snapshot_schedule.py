"""When the image is to be written out as a snapshot (pure).

After so many bytes of records, so that a start has little to replay; and after so much time if there is
anything new at all, so that the log can be cut.
"""

from barnabas.base.values import value


@value(kw_only=True)
class SnapshotSchedule:
    """metadata.log.max.record.bytes.between.snapshots; metadata.log.max.snapshot.interval.ms, 0 is never."""

    bytes_max: int
    interval_ms: int

    def is_due(self, *, bytes_since: int, ms_since: int) -> bool:
        """What came since the last snapshot, or since the start."""
        if bytes_since <= 0:
            return False
        return bytes_since >= self.bytes_max or 0 < self.interval_ms <= ms_since
