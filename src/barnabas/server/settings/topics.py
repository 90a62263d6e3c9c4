"""Topics and their partitions: how they come to be, who leads them, how replicas follow."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.setting_support import nothing_to_tune, unsupported
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
    boolean(
        "auto.create.topics.enable", True, "Whether a topic comes to be when a client asks for it by name."
    ),
    boolean("delete.topic.enable", True, "Whether topics can be deleted."),
    int32("num.partitions", 1, "How many partitions a new topic has, if nobody says.", rule=_POSITIVE),
    int32(
        "default.replication.factor",
        1,
        "How many replicas a new topic's partitions have, if nobody says.",
        rule=_POSITIVE,
    ),
    int32(
        "min.insync.replicas",
        1,
        "min.insync.replicas of topics that do not set it: how many replicas a record with acks=all needs.",
        rule=_POSITIVE,
        change=Change.CLUSTER_WIDE,
    ),
)

_LEADERS: Final = (
    boolean(
        "unclean.leader.election.enable",
        False,
        "unclean.leader.election.enable of topics that do not set it.",
        change=Change.CLUSTER_WIDE,
    ),
    boolean(
        "auto.leader.rebalance.enable", True, "Whether leadership goes back to preferred replicas by itself."
    ),
    int64(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller looks for partitions that their preferred replica does not lead.",
        rule=_POSITIVE,
    ),
    int64(
        "unclean.leader.election.interval.ms",
        300000,
        "How often the controller looks for partitions that need an unclean election.",
        rule=_POSITIVE,
        internal=True,
    ),
)

_FETCH: Final = (
    int32(
        "fetch.max.bytes",
        55 << 20,
        "How many bytes one answer to a fetch holds at most, whatever the client asks for.",
        rule=at_least(1024),
    ),
    int32(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "How many fetch sessions are kept.",
        rule=at_least(0),
    ),
    *all_with(
        nothing_to_tune("a request that waits is forgotten as soon as it is done, so nothing is purged"),
        int32(
            "fetch.purgatory.purge.interval.requests",
            1000,
            "After how many fetches Kafka purges its purgatory.",
        ),
        int32("producer.purgatory.purge.interval.requests", 1000, "After how many produces Kafka purges it."),
        int32(
            "delete.records.purgatory.purge.interval.requests", 1, "After how many deletions Kafka purges it."
        ),
    ),
)

_REPLICAS: Final = (
    *all_with(
        nothing_to_tune("a cluster has one broker, so replicas are not fetched from another"),
        int64(
            "replica.lag.time.max.ms",
            30000,
            "After how long behind the leader a follower leaves the in-sync replicas.",
            rule=at_least(500),
        ),
        int32(
            "num.replica.fetchers",
            1,
            "How many connections fetch from one broker.",
            rule=_POSITIVE,
            change=Change.CLUSTER_WIDE,
        ),
        int32(
            "replica.fetch.backoff.ms",
            1000,
            "How long a follower waits after a failed fetch.",
            rule=at_least(0),
        ),
        int32(
            "replica.fetch.max.bytes",
            1048576,
            "How many bytes of one partition a follower fetches at once.",
            rule=at_least(0),
        ),
        int32("replica.fetch.min.bytes", 1, "How many bytes a follower waits for."),
        int32(
            "replica.fetch.response.max.bytes",
            10485760,
            "How many bytes a follower fetches at once.",
            rule=at_least(0),
        ),
        int32("replica.fetch.wait.max.ms", 500, "How long a follower's fetch waits for bytes."),
        int32(
            "replica.socket.receive.buffer.bytes",
            65536,
            "The receive buffer of a follower's connection.",
            rule=BUFFER_BYTES,
        ),
        int32("replica.socket.timeout.ms", 30000, "How long a follower waits for an answer."),
    ),
    int64(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written down.",
        rule=_POSITIVE,
    ),
    *all_with(
        unsupported("it names a Java class, which this broker cannot load"),
        string("replica.selector.class", None, "A class that sends consumers to replicas near them."),
    ),
    *all_with(
        unsupported("traffic between replicas cannot be throttled yet"),
        int64(
            "leader.replication.throttled.rate",
            LONG_MAX,
            "How many bytes in a second throttled leaders send.",
            rule=at_least(0),
            change=Change.CLUSTER_WIDE,
            internal=True,
        ),
        int64(
            "follower.replication.throttled.rate",
            LONG_MAX,
            "How many bytes in a second throttled followers fetch.",
            rule=at_least(0),
            change=Change.CLUSTER_WIDE,
            internal=True,
        ),
        int64(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            LONG_MAX,
            "How many bytes in a second are moved between directories.",
            rule=at_least(0),
            change=Change.CLUSTER_WIDE,
            internal=True,
        ),
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (*_TOPICS, *_LEADERS, *_FETCH, *_REPLICAS)
