"""Transactions and the coordinator that keeps their state."""

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
        "How long a broker waits before it asks again whether a partition is part of a transaction.",
        rule=_POSITIVE,
    ),
    int32(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "How long it goes on asking.",
        rule=at_least(0),
    ),
    int32(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "How often transactions that have run out of time are looked for and aborted.",
        rule=_POSITIVE,
    ),
    int32(
        "transaction.max.timeout.ms",
        900000,
        "The longest timeout that a producer may ask for.",
        rule=_POSITIVE,
    ),
    boolean(
        "transaction.partition.verification.enable",
        True,
        "Whether a broker asks the coordinator before it appends a batch of a transaction.",
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "How often transactional ids that nobody uses any more are looked for.",
        rule=_POSITIVE,
    ),
    int32(
        "transaction.state.log.load.buffer.size",
        5 << 20,
        "How much is read at once when the state of transactions is loaded.",
        rule=_POSITIVE,
    ),
    int32("transaction.state.log.min.isr", 2, "min.insync.replicas of __transaction_state.", rule=_POSITIVE),
    int32("transaction.state.log.num.partitions", 50, "How many partitions it gets.", rule=_POSITIVE),
    int16("transaction.state.log.replication.factor", 3, "How many replicas it gets.", rule=_POSITIVE),
    int32("transaction.state.log.segment.bytes", 100 << 20, "How large its segments grow.", rule=_POSITIVE),
    boolean(
        "transaction.two.phase.commit.enable",
        False,
        "Whether a producer may keep a transaction open for as long as it likes, for two-phase commit.",
    ),
    int32(
        "transactional.id.expiration.ms",
        604800000,
        "After how long without use a transactional id is forgotten.",
        rule=_POSITIVE,
    ),
)
