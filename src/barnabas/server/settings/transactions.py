"""Transactions and their coordinator."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    boolean,
    int16,
    int32,
)

_POSITIVE: Final = at_least(1)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    int32(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "Backoff of a broker before it asks the coordinator again to verify a partition of a transaction.",
        rule=_POSITIVE,
    ),
    int32(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "Maximum total time of these retries.",
        rule=at_least(0),
    ),
    int32(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "Interval between checks for transactions that have timed out, which are aborted.",
        rule=_POSITIVE,
    ),
    int32(
        "transaction.max.timeout.ms",
        900000,
        "Maximum transaction timeout that a producer may request.",
        rule=_POSITIVE,
    ),
    boolean(
        "transaction.partition.verification.enable",
        True,
        "Verify with the coordinator that a transaction contains the partition before its first "
        "batch is appended.",
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "Interval between checks for expired transactional ids.",
        rule=_POSITIVE,
    ),
    int32(
        "transaction.state.log.load.buffer.size",
        5 << 20,
        "Bytes read at once while transaction state is loaded.",
        rule=_POSITIVE,
    ),
    int32("transaction.state.log.min.isr", 2, "min.insync.replicas of __transaction_state.", rule=_POSITIVE),
    int32(
        "transaction.state.log.num.partitions",
        50,
        "Number of partitions of __transaction_state.",
        rule=_POSITIVE,
    ),
    int16(
        "transaction.state.log.replication.factor",
        3,
        "Replication factor of __transaction_state.",
        rule=_POSITIVE,
    ),
    int32(
        "transaction.state.log.segment.bytes",
        100 << 20,
        "Segment size of __transaction_state.",
        rule=_POSITIVE,
    ),
    boolean(
        "transaction.two.phase.commit.enable",
        False,
        "Allow producers to open transactions without a timeout, for two-phase commit (KIP-939).",
    ),
    int32(
        "transactional.id.expiration.ms",
        604800000,
        "Time without use after which a transactional id expires.",
        rule=_POSITIVE,
    ),
)
