"""Logs: where they are, how they are flushed and kept; and what holds for topics that do not say.

Most of the names below are what a topic's own settings fall back on; storage/topic_settings.py names them as
synonyms and says which is asked first. Their rules hold here as well.
"""

from typing import Final

from barnabas.base.setting_rules import Rule, any_of, at_least, between, exactly, list_of, one_of
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
    strings,
)
from barnabas.server.settings.rules import SOME_DISTINCT

_DAY_MS: Final = 24 * 60 * 60 * 1000
_DYNAMIC: Final = Change.CLUSTER_WIDE
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_NOT_0: Final = Rule("a negative number, which means for ever, or at least 1", lambda value: value != 0)

_DIRECTORIES: Final = (
    strings("log.dirs", None, "The directories in which logs are kept.", rule=SOME_DISTINCT),
    strings("log.dir", ("/tmp/kafka-logs",), "The same as log.dirs, which comes first.", rule=SOME_DISTINCT),
    int32(
        "num.recovery.threads.per.data.dir",
        2,
        "How many logs of one directory are opened at the same time.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    *all_with(
        unsupported("log directories cannot be cordoned yet"),
        strings("cordoned.log.dirs", (), "Directories that get no new partitions.", change=Change.PER_BROKER),
    ),
    *all_with(
        nothing_to_tune("the broker refuses requests to move partitions between directories"),
        int32(
            "num.replica.alter.log.dirs.threads",
            None,
            "How many threads move partitions between directories.",
        ),
    ),
    *all_with(
        nothing_to_tune("the controller is in the same process, so it can always be told"),
        int64(
            "log.dir.failure.timeout.ms",
            30000,
            "How long a failed directory may stay unreported.",
            rule=_POSITIVE,
        ),
    ),
)

_SEGMENTS: Final = (
    int32(
        "log.segment.bytes",
        1 << 30,
        "segment.bytes of topics that do not set it: how large a segment grows.",
        rule=at_least(1 << 20),
        change=_DYNAMIC,
    ),
    int64("log.roll.ms", None, "segment.ms of topics that do not set it.", rule=_POSITIVE, change=_DYNAMIC),
    int32("log.roll.hours", 168, "The same in hours, if log.roll.ms is not set.", rule=_POSITIVE),
    int64(
        "log.roll.jitter.ms",
        None,
        "segment.jitter.ms of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32("log.roll.jitter.hours", 0, "The same in hours, if log.roll.jitter.ms is not set.", rule=_FROM_0),
    int32(
        "log.index.interval.bytes",
        4096,
        "index.interval.bytes of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "log.index.size.max.bytes",
        10 << 20,
        "segment.index.bytes of topics that do not set it.",
        rule=at_least(4),
        change=_DYNAMIC,
    ),
    boolean("log.preallocate", False, "preallocate of topics that do not set it.", change=_DYNAMIC),
    int64(
        "log.segment.delete.delay.ms",
        60000,
        "file.delete.delay.ms of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
)

_RETENTION: Final = (
    strings(
        "log.cleanup.policy",
        ("delete",),
        "cleanup.policy of topics that do not set it: delete, compact, both or neither.",
        rule=list_of("compact", "delete"),
        change=_DYNAMIC,
    ),
    int64(
        "log.retention.bytes",
        -1,
        "retention.bytes of topics that do not set it; -1 is no limit.",
        change=_DYNAMIC,
    ),
    int64(
        "log.retention.ms", None, "retention.ms of topics that do not set it.", rule=_NOT_0, change=_DYNAMIC
    ),
    int32("log.retention.minutes", None, "The same in minutes, if log.retention.ms is not set.", rule=_NOT_0),
    int32("log.retention.hours", 168, "The same in hours, if neither of the other two is set.", rule=_NOT_0),
    int64(
        "log.retention.check.interval.ms",
        300000,
        "How often logs are looked through for segments that have to go.",
        rule=_POSITIVE,
    ),
    *all_with(
        nothing_to_tune("no topic can have remote storage"),
        int64(
            "log.local.retention.bytes",
            -2,
            "local.retention.bytes of topics that do not set it.",
            rule=at_least(-2),
            change=_DYNAMIC,
        ),
        int64(
            "log.local.retention.ms",
            -2,
            "local.retention.ms of topics that do not set it.",
            rule=at_least(-2),
            change=_DYNAMIC,
        ),
    ),
)

_FLUSH: Final = (
    int64(
        "log.flush.interval.messages",
        LONG_MAX,
        "flush.messages of topics that do not set it.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    int64(
        "log.flush.interval.ms", None, "flush.ms of topics that do not set it.", rule=_FROM_0, change=_DYNAMIC
    ),
    int64(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often logs are looked through for those to be flushed, every second at the latest; "
        "also what log.flush.interval.ms is if it is not set.",
        rule=_POSITIVE,
    ),
    int32(
        "log.flush.offset.checkpoint.interval.ms",
        60000,
        "How often it is written down up to where logs are flushed.",
        rule=_POSITIVE,
    ),
    int32(
        "log.flush.start.offset.checkpoint.interval.ms",
        60000,
        "How often it is written down where logs start; the shorter of the two intervals holds for both.",
        rule=_POSITIVE,
    ),
    int64(
        "log.initial.task.delay.ms",
        30000,
        "How long after the start the first look at retention, flushes and checkpoints is taken.",
        rule=_FROM_0,
        internal=True,
    ),
)

_RECORDS: Final = (
    int32(
        "message.max.bytes",
        (1 << 20) + 12,
        "max.message.bytes of topics that do not set it: the largest batch that is taken.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    string(
        "compression.type",
        "producer",
        "How batches are stored in topics that do not say.",
        rule=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        change=_DYNAMIC,
    ),
    int32(
        "compression.gzip.level",
        -1,
        "How hard gzip tries, in topics that do not say.",
        rule=any_of(between(1, 9), exactly(-1)),
        change=_DYNAMIC,
    ),
    int32(
        "compression.lz4.level",
        9,
        "How hard lz4 tries, in topics that do not say.",
        rule=between(1, 17),
        change=_DYNAMIC,
    ),
    int32(
        "compression.zstd.level",
        3,
        "How hard zstd tries, in topics that do not say.",
        rule=between(-131072, 22),
        change=_DYNAMIC,
    ),
    string(
        "log.message.timestamp.type",
        "CreateTime",
        "message.timestamp.type of topics that do not set it.",
        rule=one_of("CreateTime", "LogAppendTime"),
        change=_DYNAMIC,
    ),
    int64(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "message.timestamp.before.max.ms of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int64(
        "log.message.timestamp.after.max.ms",
        60 * 60 * 1000,
        "message.timestamp.after.max.ms of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "producer.id.expiration.ms",
        _DAY_MS,
        "After how long without a batch an idempotent producer is forgotten.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    int32(
        "producer.id.expiration.check.interval.ms",
        600000,
        "How often producers that may be forgotten are looked for.",
        rule=_POSITIVE,
        internal=True,
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *_DIRECTORIES,
    *_SEGMENTS,
    *_RETENTION,
    *_FLUSH,
    *_RECORDS,
)
