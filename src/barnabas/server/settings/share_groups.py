"""Share groups, which distribute records instead of partitions (KIP-932), and their coordinator."""

from typing import Final

from barnabas.base.setting_rules import Rule, at_least, between
from barnabas.base.settings import nothing_to_tune, unsupported
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

_NO_SHARE_GROUPS: Final = nothing_to_tune("the broker does not support share groups")
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_HOUR_MS: Final = 60 * 60 * 1000
# Kafka accepts exactly one; any other name would be a Java class.
_ASSIGNORS: Final = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
_ASSIGNOR: Final = Rule(
    f"one of {', '.join(_ASSIGNORS)}", lambda value: value in [(one,) for one in _ASSIGNORS]
)

_GROUPS: Final = (
    int32(
        "group.share.assignment.interval.ms",
        1000,
        "Minimum time between two computations of a share group's assignment.",
        rule=_FROM_0,
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "group.share.min.assignment.interval.ms",
        0,
        "Minimum share.assignment.interval.ms that a group may set.",
        rule=_FROM_0,
    ),
    int32(
        "group.share.max.assignment.interval.ms",
        15000,
        "Maximum share.assignment.interval.ms that a group may set.",
        rule=_FROM_0,
    ),
    strings("group.share.assignors", ("simple",), "Server-side assignor.", rule=_ASSIGNOR),
    int32("group.share.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", rule=_POSITIVE),
    int32(
        "group.share.min.heartbeat.interval.ms",
        5000,
        "Minimum share.heartbeat.interval.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.share.max.heartbeat.interval.ms",
        15000,
        "Maximum share.heartbeat.interval.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.share.session.timeout.ms",
        45000,
        "Time without a heartbeat after which a member is removed from its group.",
        rule=_POSITIVE,
    ),
    int32(
        "group.share.min.session.timeout.ms",
        45000,
        "Minimum share.session.timeout.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.share.max.session.timeout.ms",
        60000,
        "Maximum share.session.timeout.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32("group.share.max.size", 200, "Maximum number of members of a share group.", rule=between(1, 1000)),
    int32(
        "group.share.max.share.sessions",
        2000,
        "Maximum number of share sessions of a broker.",
        rule=_POSITIVE,
    ),
    int32(
        "group.share.initialize.retry.interval.ms",
        30000,
        "Interval at which the coordinator retries to initialize a group's state.",
        rule=_POSITIVE,
        internal=True,
    ),
)

_RECORDS: Final = (
    int32(
        "group.share.delivery.count.limit",
        5,
        "Maximum number of delivery attempts of a record.",
        rule=between(2, 10),
    ),
    int32(
        "group.share.min.delivery.count.limit",
        2,
        "Minimum share.delivery.count.limit that a group may set.",
        rule=between(2, 5),
    ),
    int32(
        "group.share.max.delivery.count.limit",
        10,
        "Maximum share.delivery.count.limit that a group may set.",
        rule=between(5, 25),
    ),
    int32(
        "group.share.partition.max.record.locks",
        2000,
        "Maximum number of locked records per partition.",
        rule=between(100, 10000),
    ),
    int32(
        "group.share.min.partition.max.record.locks",
        100,
        "Minimum share.partition.max.record.locks that a group may set.",
        rule=between(100, 2000),
    ),
    int32(
        "group.share.max.partition.max.record.locks",
        4000,
        "Maximum share.partition.max.record.locks that a group may set.",
        rule=between(2000, 10000),
    ),
    int32(
        "group.share.record.lock.duration.ms",
        30000,
        "Time a member may hold the lock of a record before it is delivered to another one.",
        rule=between(1000, _HOUR_MS),
    ),
    int32(
        "group.share.min.record.lock.duration.ms",
        15000,
        "Minimum share.record.lock.duration.ms that a group may set.",
        rule=between(1000, 30000),
    ),
    int32(
        "group.share.max.record.lock.duration.ms",
        60000,
        "Maximum share.record.lock.duration.ms that a group may set.",
        rule=between(30000, _HOUR_MS),
    ),
    int32(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        "Number of share fetches after which Kafka purges its purgatory.",
    ),
)

_STATE: Final = (
    int32(
        "share.coordinator.append.linger.ms",
        -1,
        "Time the coordinator waits for more records before it writes; -1 adapts to the load.",
        rule=at_least(-1),
    ),
    int32(
        "share.coordinator.cached.buffer.max.bytes",
        (1 << 20) + 12,
        "Maximum size of a write buffer that the coordinator reuses.",
        rule=at_least(512 << 10),
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "share.coordinator.load.buffer.size",
        5 << 20,
        "Bytes read at once while share state is loaded.",
        rule=_POSITIVE,
    ),
    int32(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "Number of update records between two snapshots of a partition's state.",
        rule=between(0, 500),
    ),
    int32(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300000,
        "Interval at which the state of inactive partitions is snapshotted.",
        rule=_POSITIVE,
        internal=True,
    ),
    int32(
        "share.coordinator.state.topic.compression.codec",
        0,
        "Compression codec of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        rule=CODEC_ID,
    ),
    int16(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of __share_group_state.",
        rule=_POSITIVE,
    ),
    int32(
        "share.coordinator.state.topic.num.partitions",
        50,
        "Number of partitions of __share_group_state.",
        rule=_POSITIVE,
    ),
    int32(
        "share.coordinator.state.topic.prune.interval.ms",
        300000,
        "Interval at which outdated records of __share_group_state are deleted.",
        rule=_POSITIVE,
        internal=True,
    ),
    int16(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replication factor of __share_group_state.",
        rule=_POSITIVE,
    ),
    int32(
        "share.coordinator.state.topic.segment.bytes",
        100 << 20,
        "Segment size of __share_group_state.",
        rule=_POSITIVE,
    ),
    int32("share.coordinator.threads", 1, "Number of threads of the share coordinator.", rule=_POSITIVE),
    int32(
        "share.coordinator.write.timeout.ms",
        5000,
        "Time a write of share state waits for its replicas.",
        rule=_POSITIVE,
    ),
)

_PERSISTER: Final = all_with(
    unsupported("it names a Java class, which this broker cannot load"),
    string(
        "group.share.persister.class.name",
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        "Class that persists the state of share groups.",
        internal=True,
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(_NO_SHARE_GROUPS, *_GROUPS, *_RECORDS, *_STATE),
    *_PERSISTER,
)
