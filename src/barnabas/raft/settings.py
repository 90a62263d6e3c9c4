"""The quorum's settings: Kafka's names and defaults, as a plain value."""

from barnabas.base.values import value
from barnabas.storage.config import LogConfig

# The largest batch that a controller writes, and so the minimum size of a segment.
BATCH_BYTES_MAX = 8 * 1024 * 1024


@value(kw_only=True)
class QuorumSettings:
    """controller.quorum.* and metadata.*, in the order of Kafka's documentation."""

    # controller.quorum.election.timeout.ms: how long to wait for votes, or for a leader to show up.
    election_timeout_ms: int = 1_000
    # controller.quorum.fetch.timeout.ms: how long a follower waits for a response before it starts an
    # election.
    fetch_timeout_ms: int = 2_000
    # controller.quorum.election.backoff.max.ms: how long at most to wait after a lost election.
    election_backoff_max_ms: int = 1_000
    # controller.quorum.request.timeout.ms and controller.quorum.retry.backoff.ms
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    # controller.quorum.fetch.max.bytes
    fetch_max_bytes: int = 1_048_576
    # controller.quorum.append.linger.ms: how long Kafka waits for more records before it writes. Here it is
    # 0: appends during a sync share the next one, so waiting gains nothing.
    append_linger_ms: int = 0
    # metadata.log.segment.bytes and metadata.log.segment.ms
    log_segment_bytes: int = 1_073_741_824
    log_segment_ms: int = 604_800_000
    # metadata.max.retention.bytes and metadata.max.retention.ms, over the log and its snapshots; -1 for no
    # limit.
    max_retention_bytes: int = 104_857_600
    max_retention_ms: int = 604_800_000
    # metadata.log.max.record.bytes.between.snapshots and metadata.log.max.snapshot.interval.ms: when a
    # snapshot is due.
    max_bytes_between_snapshots: int = 20_971_520
    max_snapshot_interval_ms: int = 3_600_000

    def log_config(self) -> LogConfig:
        """The metadata log's own settings. Retention is unlimited: only snapshots advance the log start."""
        return LogConfig.parse(
            {
                "max.message.bytes": str(BATCH_BYTES_MAX),
                "segment.bytes": str(self.log_segment_bytes),
                "segment.ms": str(self.log_segment_ms),
                "retention.bytes": "-1",
                "retention.ms": "-1",
            }
        )
