"""Topics and partitions: creation, leader election, fetching and replication."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.settings import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    LONG_MAX,
    Change,
    ServerSetting,
    all_with,
    boolean,
    int32,
    int64,
    string,
)
from barnabas.server.settings.rules import BUFFER_BYTES

_POSITIVE: Final = at_least(1)

_TOPICS: Final = (
    boolean("auto.create.topics.enable", True, "Create a topic when a client first requests it by name."),
    boolean("delete.topic.enable", True, "Allow topics to be deleted."),
    int32("num.partitions", 1, "Default number of partitions of a new topic.", rule=_POSITIVE),
    int32(
        "default.replication.factor",
        1,
        "Default replication factor of a new topic.",
        rule=_POSITIVE,
    ),
    int32(
        "min.insync.replicas",
        1,
        "Default of the topic setting min.insync.replicas: number of in-sync replicas that "
        "acks=all requires.",
        rule=_POSITIVE,
        change=Change.CLUSTER_WIDE,
    ),
)

_LEADERS: Final = (
    boolean(
        "unclean.leader.election.enable",
        False,
        "Default of the topic setting unclean.leader.election.enable.",
        change=Change.CLUSTER_WIDE,
    ),
    boolean(
        "auto.leader.rebalance.enable", True, "Move leadership back to preferred replicas automatically."
    ),
    int64(
        "leader.imbalance.check.interval.seconds",
        300,
        "Interval at which the controller checks for partitions not led by their preferred replica.",
        rule=_POSITIVE,
    ),
    int64(
        "unclean.leader.election.interval.ms",
        300000,
        "Interval at which the controller checks for partitions that need an unclean election.",
        rule=_POSITIVE,
        internal=True,
    ),
)

_FETCH: Final = (
    int32(
        "fetch.max.bytes",
        55 << 20,
        "Maximum size of a fetch response, whatever the client requests.",
        rule=at_least(1024),
    ),
    int32(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Maximum number of incremental fetch sessions.",
        rule=at_least(0),
    ),
    *all_with(
        nothing_to_tune("a delayed request is removed as soon as it completes, so nothing has to be purged"),
        int32(
            "fetch.purgatory.purge.interval.requests",
            1000,
            "Number of fetches after which Kafka purges its purgatory.",
        ),
        int32(
            "producer.purgatory.purge.interval.requests",
            1000,
            "Number of produce requests after which Kafka purges its purgatory.",
        ),
        int32(
            "delete.records.purgatory.purge.interval.requests",
            1,
            "Number of DeleteRecords requests after which Kafka purges its purgatory.",
        ),
    ),
)

_REPLICAS: Final = (
    *all_with(
        nothing_to_tune("a cluster has one broker, so there are no followers"),
        int64(
            "replica.lag.time.max.ms",
            30000,
            "Time behind the leader after which a follower is removed from the ISR.",
            rule=at_least(500),
        ),
        int32(
            "num.replica.fetchers",
            1,
            "Number of connections that fetch from each other broker.",
            rule=_POSITIVE,
            change=Change.CLUSTER_WIDE,
        ),
        int32(
            "replica.fetch.backoff.ms",
            1000,
            "Backoff of a follower after a failed fetch.",
            rule=at_least(0),
        ),
        int32(
            "replica.fetch.max.bytes",
            1048576,
            "Maximum bytes of one partition in a follower's fetch.",
            rule=at_least(0),
        ),
        int32("replica.fetch.min.bytes", 1, "Minimum bytes that a follower's fetch waits for."),
        int32(
            "replica.fetch.response.max.bytes",
            10485760,
            "Maximum size of the response to a follower's fetch.",
            rule=at_least(0),
        ),
        int32(
            "replica.fetch.wait.max.ms",
            500,
            "Maximum time a follower's fetch waits for replica.fetch.min.bytes.",
        ),
        int32(
            "replica.socket.receive.buffer.bytes",
            65536,
            "Receive buffer size of a follower's connection.",
            rule=BUFFER_BYTES,
        ),
        int32("replica.socket.timeout.ms", 30000, "Time a follower waits for a response."),
    ),
    int64(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "Interval between checkpoints of the high watermarks.",
        rule=_POSITIVE,
    ),
    *all_with(
        unsupported("it names a Java class, which this broker cannot load"),
        string("replica.selector.class", None, "Class that selects the replica a consumer fetches from."),
    ),
    *all_with(
        unsupported("traffic between replicas cannot be throttled yet"),
        int64(
            "leader.replication.throttled.rate",
            LONG_MAX,
            "Maximum bytes per second that a leader sends to throttled replicas.",
            rule=at_least(0),
            change=Change.CLUSTER_WIDE,
            internal=True,
        ),
        int64(
            "follower.replication.throttled.rate",
            LONG_MAX,
            "Maximum bytes per second that a follower fetches for throttled replicas.",
            rule=at_least(0),
            change=Change.CLUSTER_WIDE,
            internal=True,
        ),
        int64(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            LONG_MAX,
            "Maximum bytes per second moved between log directories.",
            rule=at_least(0),
            change=Change.CLUSTER_WIDE,
            internal=True,
        ),
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (*_TOPICS, *_LEADERS, *_FETCH, *_REPLICAS)
