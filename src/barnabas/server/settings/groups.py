"""Consumer groups and committed offsets, of the classic protocol and of its successor (KIP-848)."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.setting_support import nothing_to_tune
from barnabas.coordinators.group.assignors.by_name import ASSIGNOR_CLASSES, ASSIGNORS
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

_NO_STREAMS: Final = nothing_to_tune("the broker refuses the requests of streams groups")
_NO_SHELL: Final = nothing_to_tune(
    "coordinators run on the broker's event loop and write at once: no threads, no linger, no buffer"
)
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_DYNAMIC: Final = Change.CLUSTER_WIDE

_SHELL: Final = (
    int32(
        "group.coordinator.append.linger.ms",
        -1,
        "How long a coordinator waits for more records before it writes; -1 adapts to the load.",
        rule=at_least(-1),
    ),
    int32(
        "group.coordinator.background.threads", 2, "Threads for a coordinator's slow work.", rule=_POSITIVE
    ),
    int32(
        "group.coordinator.cached.buffer.max.bytes",
        (1 << 20) + 12,
        "How large a write buffer may be that a coordinator keeps for the next write.",
        rule=at_least(512 << 10),
        change=_DYNAMIC,
    ),
    int32("group.coordinator.threads", 4, "How many threads coordinate groups.", rule=_POSITIVE),
)

_COORDINATOR: Final = (
    strings(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "Which kinds of groups the coordinators serve: classic always, consumer if it is listed. streams may "
        "be listed, as by default; the broker refuses streams groups either way.",
        rule=some_of("consumer", "classic", "share", "streams"),
    ),
)

_CLASSIC: Final = (
    int32("group.initial.rebalance.delay.ms", 3000, "How long a new group waits for more members to join."),
    int32("group.max.session.timeout.ms", 1800000, "The longest session timeout that a member may ask for."),
    int32("group.min.session.timeout.ms", 6000, "The shortest session timeout that a member may ask for."),
    int32("group.max.size", INT_MAX, "How many members a group may have.", rule=_POSITIVE),
)

_CONSUMER: Final = (
    int32(
        "group.consumer.assignment.interval.ms",
        1000,
        "How long a group keeps its assignment at least before it is computed again.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "group.consumer.min.assignment.interval.ms", 0, "The least that a group may set for it.", rule=_FROM_0
    ),
    int32(
        "group.consumer.max.assignment.interval.ms",
        15000,
        "The most that a group may set for it.",
        rule=_FROM_0,
    ),
    strings(
        "group.consumer.assignors",
        ("uniform", "range"),
        "How partitions are dealt out on the broker; the first one is taken if a member does not choose.",
        rule=some_of(*ASSIGNORS, *ASSIGNOR_CLASSES),
    ),
    int32("group.consumer.heartbeat.interval.ms", 5000, "How often members send heartbeats.", rule=_POSITIVE),
    int32(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "The least that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.max.heartbeat.interval.ms",
        15000,
        "The most that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.session.timeout.ms",
        45000,
        "After how long without a heartbeat a member is taken for dead.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.min.session.timeout.ms",
        45000,
        "The least that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.consumer.max.session.timeout.ms",
        60000,
        "The most that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32("group.consumer.max.size", INT_MAX, "How many members a consumer group may have.", rule=_POSITIVE),
    string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether a group may go over from one protocol to the other while it has members.",
        rule=one_of_any_case("disabled", "downgrade", "upgrade", "bidirectional"),
    ),
    int32(
        "group.consumer.regex.refresh.interval.ms",
        600000,
        "How often topics are matched again with what members subscribed to by pattern.",
        rule=at_least(10000),
        internal=True,
    ),
)

_STREAMS: Final = (
    int32(
        "group.streams.assignment.interval.ms",
        1000,
        "How long a streams group keeps its assignment at least.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "group.streams.min.assignment.interval.ms", 0, "The least that a group may set for it.", rule=_FROM_0
    ),
    int32(
        "group.streams.max.assignment.interval.ms",
        15000,
        "The most that a group may set for it.",
        rule=_FROM_0,
    ),
    int32("group.streams.heartbeat.interval.ms", 5000, "How often members send heartbeats.", rule=_POSITIVE),
    int32(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        "The least that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.max.heartbeat.interval.ms",
        15000,
        "The most that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.session.timeout.ms", 45000, "After how long a silent member is dead.", rule=_POSITIVE
    ),
    int32(
        "group.streams.min.session.timeout.ms",
        45000,
        "The least that a group may set for it.",
        rule=_POSITIVE,
    ),
    int32(
        "group.streams.max.session.timeout.ms", 60000, "The most that a group may set for it.", rule=_POSITIVE
    ),
    int32(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        "How long a new group waits for members.",
        rule=_FROM_0,
    ),
    int32("group.streams.max.size", INT_MAX, "How many members a streams group may have.", rule=_POSITIVE),
    int32("group.streams.num.standby.replicas", 0, "How many standbys each task has.", rule=_FROM_0),
    int32("group.streams.max.standby.replicas", 2, "How many standbys a group may set.", rule=_FROM_0),
)

_OFFSETS: Final = (
    int32("offset.metadata.max.bytes", 4096, "How long the note may be that is committed with an offset."),
    int32("offsets.commit.timeout.ms", 5000, "How long a commit may wait for its replicas.", rule=_POSITIVE),
    int32(
        "offsets.load.buffer.size",
        5 << 20,
        "How much is read at once when offsets are loaded.",
        rule=_POSITIVE,
    ),
    int64(
        "offsets.retention.check.interval.ms",
        600000,
        "How often offsets that have become too old are looked for.",
        rule=_POSITIVE,
    ),
    int32(
        "offsets.retention.minutes",
        10080,
        "How long offsets are kept after their group has lost its last member.",
        rule=_POSITIVE,
    ),
    int32(
        "offsets.topic.compression.codec",
        0,
        "How __consumer_offsets is compressed: 0 to 4, 0 is not at all.",
        rule=CODEC_ID,
    ),
    int32("offsets.topic.num.partitions", 50, "How many partitions __consumer_offsets gets.", rule=_POSITIVE),
    int16(
        "offsets.topic.replication.factor", 3, "How many replicas __consumer_offsets gets.", rule=_POSITIVE
    ),
    int32("offsets.topic.segment.bytes", 100 << 20, "How large its segments grow.", rule=_POSITIVE),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(_NO_SHELL, *_SHELL),
    *_COORDINATOR,
    *_CLASSIC,
    *_CONSUMER,
    *all_with(_NO_STREAMS, *_STREAMS),
    *_OFFSETS,
)
