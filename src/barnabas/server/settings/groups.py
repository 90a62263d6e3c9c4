"""Consumer groups, of the classic and the KIP-848 protocol, and committed offsets."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.settings import nothing_to_tune
from barnabas.coordinators.group.assignors.assignor import ASSIGNOR_CLASSES, ASSIGNORS
from barnabas.server.settings.declare import (
    INT_MAX,
    Change,
    ServerSetting,
    all_with,
    int16,
    int32,
    int64,
    string,
    strings,
)
from barnabas.server.settings.rules import CODEC_ID, one_of_any_case, some_of

_NO_STREAMS: Final = nothing_to_tune("the broker does not support streams groups")
_NO_SHELL: Final = nothing_to_tune(
    "coordinators run on the event loop and write immediately: no threads, linger or buffers"
)
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_DYNAMIC: Final = Change.CLUSTER_WIDE

_SHELL: Final = (
    int32(
        "group.coordinator.append.linger.ms",
        -1,
        "Time a coordinator waits for more records before it writes; -1 adapts to the load.",
        rule=at_least(-1),
    ),
    int32(
        "group.coordinator.background.threads",
        2,
        "Number of threads for a coordinator's slow work.",
        rule=_POSITIVE,
    ),
    int32(
        "group.coordinator.cached.buffer.max.bytes",
        (1 << 20) + 12,
        "Maximum size of a write buffer that a coordinator reuses.",
        rule=at_least(512 << 10),
        change=_DYNAMIC,
    ),
    int32("group.coordinator.threads", 4, "Number of coordinator threads.", rule=_POSITIVE),
)

_COORDINATOR: Final = (
    strings(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "Group protocols that the coordinator serves: classic is required, consumer is optional. "
        "streams may be listed, as it is by default, but the broker refuses streams groups either"
        " way.",
        rule=some_of("consumer", "classic", "share", "streams"),
    ),
)

_CLASSIC: Final = (
    int32(
        "group.initial.rebalance.delay.ms",
        3000,
        "Time a new group waits for more members before its first rebalance.",
    ),
    int32("group.max.session.timeout.ms", 1800000, "Maximum session timeout that a member may request."),
    int32("group.min.session.timeout.ms", 6000, "Minimum session timeout that a member may request."),
    int32("group.max.size", INT_MAX, "Maximum number of members of a classic group.", rule=_POSITIVE),
)

_CONSUMER: Final = (
    int32(
        "group.consumer.assignment.interval.ms",
        1000,
        "Minimum time between two computations of a group's assignment.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "group.consumer.min.assignment.interval.ms",
        0,
        "Minimum consumer.assignment.interval.ms that a group may set.",
        rule=_FROM_0,
    ),
    int32(
        "group.consumer.max.assignment.interval.ms",
        15000,
        "Maximum consumer.assignment.interval.ms that a group may set.",
        rule=_FROM_0,
    ),
    strings(
        "group.consumer.assignors",
        ("uniform", "range"),
        "Server-side assignors; the first one is the default for members that do not name one.",
        rule=some_of(*ASSIGNORS, *ASSIGNOR_CLASSES),
    ),
    int32("group.consumer.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", rule=_POSITIVE),
    int32(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "Minimum consumer.heartbeat.interval.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.max.heartbeat.interval.ms",
        15000,
        "Maximum consumer.heartbeat.interval.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.session.timeout.ms",
        45000,
        "Time without a heartbeat after which a member is removed from its group.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.min.session.timeout.ms",
        45000,
        "Minimum consumer.session.timeout.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.max.session.timeout.ms",
        60000,
        "Maximum consumer.session.timeout.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.max.size", INT_MAX, "Maximum number of members of a consumer group.", rule=_POSITIVE
    ),
    string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Online migrations allowed between the classic and the consumer protocol: to consumer "
        "(upgrade), to classic (downgrade), both or none.",
        rule=one_of_any_case("disabled", "downgrade", "upgrade", "bidirectional"),
    ),
    int32(
        "group.consumer.regex.refresh.interval.ms",
        600000,
        "Interval at which regular expression subscriptions are matched against the topics again.",
        rule=at_least(10000),
        internal=True,
    ),
)

_STREAMS: Final = (
    int32(
        "group.streams.assignment.interval.ms",
        1000,
        "Minimum time between two computations of a streams group's assignment.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "group.streams.min.assignment.interval.ms",
        0,
        "Minimum streams.assignment.interval.ms that a group may set.",
        rule=_FROM_0,
    ),
    int32(
        "group.streams.max.assignment.interval.ms",
        15000,
        "Maximum streams.assignment.interval.ms that a group may set.",
        rule=_FROM_0,
    ),
    int32("group.streams.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", rule=_POSITIVE),
    int32(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        "Minimum streams.heartbeat.interval.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.max.heartbeat.interval.ms",
        15000,
        "Maximum streams.heartbeat.interval.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.session.timeout.ms",
        45000,
        "Time without a heartbeat after which a member is removed from its group.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.min.session.timeout.ms",
        45000,
        "Minimum streams.session.timeout.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.max.session.timeout.ms",
        60000,
        "Maximum streams.session.timeout.ms that a group may set.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        "Time a new streams group waits for more members before its first rebalance.",
        rule=_FROM_0,
    ),
    int32("group.streams.max.size", INT_MAX, "Maximum number of members of a streams group.", rule=_POSITIVE),
    int32("group.streams.num.standby.replicas", 0, "Number of standby replicas of each task.", rule=_FROM_0),
    int32(
        "group.streams.max.standby.replicas",
        2,
        "Maximum streams.num.standby.replicas that a group may set.",
        rule=_FROM_0,
    ),
)

_OFFSETS: Final = (
    int32("offset.metadata.max.bytes", 4096, "Maximum size of the metadata string committed with an offset."),
    int32("offsets.commit.timeout.ms", 5000, "Time an offset commit waits for its replicas.", rule=_POSITIVE),
    int32(
        "offsets.load.buffer.size",
        5 << 20,
        "Bytes read at once while offsets are loaded.",
        rule=_POSITIVE,
    ),
    int64(
        "offsets.retention.check.interval.ms",
        600000,
        "Interval between checks for expired offsets.",
        rule=_POSITIVE,
    ),
    int32(
        "offsets.retention.minutes",
        10080,
        "Retention of committed offsets after their group has become empty.",
        rule=_POSITIVE,
    ),
    int32(
        "offsets.topic.compression.codec",
        0,
        "Compression codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        rule=CODEC_ID,
    ),
    int32("offsets.topic.num.partitions", 50, "Number of partitions of __consumer_offsets.", rule=_POSITIVE),
    int16("offsets.topic.replication.factor", 3, "Replication factor of __consumer_offsets.", rule=_POSITIVE),
    int32("offsets.topic.segment.bytes", 100 << 20, "Segment size of __consumer_offsets.", rule=_POSITIVE),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(_NO_SHELL, *_SHELL),
    *_COORDINATOR,
    *_CLASSIC,
    *_CONSUMER,
    *all_with(_NO_STREAMS, *_STREAMS),
    *_OFFSETS,
)
