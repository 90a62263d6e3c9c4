"""The broker's settings for transactions."""

from barnabas.base.values import value


@value(kw_only=True)
class TxnSettings:
    """Replaced as a whole when a setting changes. The defaults are Kafka's."""

    # transaction.max.timeout.ms
    timeout_max_ms: int = 900_000
    # transactional.id.expiration.ms
    id_expiration_ms: int = 604_800_000
    # transaction.abort.timed.out.transaction.cleanup.interval.ms
    timeouts_interval_ms: int = 10_000
    # transaction.remove.expired.transaction.cleanup.interval.ms
    expiration_interval_ms: int = 3_600_000
    # transaction.two.phase.commit.enable
    two_phase_commit: bool = False
    # The finalized level of the feature transaction.version; 2 is transactions version 2 (KIP-890).
    transaction_version: int = 2
