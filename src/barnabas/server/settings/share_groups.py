"""Share groups, which hand out records instead of partitions (KIP-932), and their coordinator."""

from typing import Final

from barnabas.base.setting_rules import Rule, at_least, between
from barnabas.base.setting_support import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    int16,
    int32,
    string,
    strings,
)
from barnabas.server.settings.rules import CODEC_ID

_NO_SHARE_GROUPS: Final = nothing_to_tune("the broker refuses the requests of share groups")
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_HOUR_MS: Final = 60 * 60 * 1000
# Kafka takes exactly one; any other name is that of a Java class.
_ASSIGNORS: Final = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
_ASSIGNOR: Final = Rule(
    f"one of {', '.join(_ASSIGNORS)}", lambda value: value in [(one,) for one in _ASSIGNORS]
)

_GROUPS: Final = (
    int32(
        "group.share.assignment.interval.ms",
        1000,
        "How long a share group keeps its assignment at least.",
        rule=_FROM_0,
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "group.share.min.assignment.interval.ms", 0, "The least that a group may set for it.", rule=_FROM_0
    ),
    int32(
        "group.share.max.assignment.interval.ms", 15000, "The most that a group may set for it.", rule=_FROM_0
    ),
    strings("group.share.assignors", ("simple",), "How partitions are dealt out.", rule=_ASSIGNOR),
    int32("group.share.heartbeat.interval.ms", 5000, "How often members send heartbeats.", rule=_POSITIVE),
    int32(
        "group.share.min.heartbeat.interval.ms",
        5000,
        "The least that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.share.max.heartbeat.interval.ms",
        15000,
        "The most that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32("group.share.session.timeout.ms", 45000, "After how long a silent member is dead.", rule=_POSITIVE),
    int32(
        "group.share.min.session.timeout.ms", 45000, "The least that a group may set for it.", rule=_POSITIVE
    ),
    int32(
        "group.share.max.session.timeout.ms", 60000, "The most that a group may set for it.", rule=_POSITIVE
    ),
    int32("group.share.max.size", 200, "How many members a share group may have.", rule=between(1, 1000)),
    int32("group.share.max.share.sessions", 2000, "How many share sessions a broker keeps.", rule=_POSITIVE),
    int32(
        "group.share.initialize.retry.interval.ms",
        30000,
        "How long the coordinator waits before it tries again to set up a group's state.",
        rule=_POSITIVE,
        internal=True,
    ),
)

_RECORDS: Final = (
    int32(
        "group.share.delivery.count.limit",
        5,
        "How often a record is handed out before it is given up.",
        rule=between(2, 10),
    ),
    int32(
        "group.share.min.delivery.count.limit",
        2,
        "The least that a group may set for it.",
        rule=between(2, 5),
    ),
    int32(
        "group.share.max.delivery.count.limit",
        10,
        "The most that a group may set for it.",
        rule=between(5, 25),
    ),
    int32(
        "group.share.partition.max.record.locks",
        2000,
        "How many records of one partition may be out at the same time.",
        rule=between(100, 10000),
    ),
    int32(
        "group.share.min.partition.max.record.locks",
        100,
        "The least that a group may set for it.",
        rule=between(100, 2000),
    ),
    int32(
        "group.share.max.partition.max.record.locks",
        4000,
        "The most that a group may set for it.",
        rule=between(2000, 10000),
    ),
    int32(
        "group.share.record.lock.duration.ms",
        30000,
        "How long a member has for a record before it is handed to another.",
        rule=between(1000, _HOUR_MS),
    ),
    int32(
        "group.share.min.record.lock.duration.ms",
        15000,
        "The least that a group may set for it.",
        rule=between(1000, 30000),
    ),
    int32(
        "group.share.max.record.lock.duration.ms",
        60000,
        "The most that a group may set for it.",
        rule=between(30000, _HOUR_MS),
    ),
    int32(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        "After how many share fetches Kafka purges its purgatory.",
    ),
)

_STATE: Final = (
    int32(
        "share.coordinator.append.linger.ms",
        -1,
        "How long the coordinator waits for more records before it writes; -1 adapts to the load.",
        rule=at_least(-1),
    ),
    int32(
        "share.coordinator.cached.buffer.max.bytes",
        (1 << 20) + 12,
        "How large a write buffer may be that the coordinator keeps for the next write.",
        rule=at_least(512 << 10),
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "share.coordinator.load.buffer.size",
        5 << 20,
        "How much is read at once when state is loaded.",
        rule=_POSITIVE,
    ),
    int32(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "How many updates of a partition's state are written between two snapshots of it.",
        rule=between(0, 500),
    ),
    int32(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300000,
        "How often the state of partitions that nobody reads is written again.",
        rule=_POSITIVE,
        internal=True,
    ),
    int32(
        "share.coordinator.state.topic.compression.codec",
        0,
        "How the state's topic is compressed: 0 to 4.",
        rule=CODEC_ID,
    ),
    int16("share.coordinator.state.topic.min.isr", 2, "Its min.insync.replicas.", rule=_POSITIVE),
    int32("share.coordinator.state.topic.num.partitions", 50, "How many partitions it gets.", rule=_POSITIVE),
    int32(
        "share.coordinator.state.topic.prune.interval.ms",
        300000,
        "How often what is outdated in it is deleted.",
        rule=_POSITIVE,
        internal=True,
    ),
    int16(
        "share.coordinator.state.topic.replication.factor", 3, "How many replicas it gets.", rule=_POSITIVE
    ),
    int32(
        "share.coordinator.state.topic.segment.bytes",
        100 << 20,
        "How large its segments grow.",
        rule=_POSITIVE,
    ),
    int32("share.coordinator.threads", 1, "How many threads coordinate share state.", rule=_POSITIVE),
    int32("share.coordinator.write.timeout.ms", 5000, "How long a write of state may wait.", rule=_POSITIVE),
)

_PERSISTER: Final = all_with(
    unsupported("it names a Java class, which this broker cannot load"),
    string(
        "group.share.persister.class.name",
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        "The class that keeps the state of share groups.",
        internal=True,
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(_NO_SHARE_GROUPS, *_GROUPS, *_RECORDS, *_STATE),
    *_PERSISTER,
)
