"""Logs: directories, segments, retention, flushing, and defaults of topic settings.

Most of the settings below are defaults of topic settings: storage/topic_settings.py names them as synonyms,
with their precedence. The rules of the topic settings apply here as well.
"""

from typing import Final

from barnabas.base.setting_rules import Rule, any_of, at_least, between, exactly, list_of, one_of
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
    strings,
)
from barnabas.server.settings.rules import SOME_DISTINCT

_DAY_MS: Final = 24 * 60 * 60 * 1000
_DYNAMIC: Final = Change.CLUSTER_WIDE
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_NOT_0: Final = Rule("at least 1, or negative for no limit", lambda value: value != 0)

_DIRECTORIES: Final = (
    strings("log.dirs", None, "Log directories.", rule=SOME_DISTINCT),
    strings("log.dir", ("/tmp/kafka-logs",), "Log directory, if log.dirs is not set.", rule=SOME_DISTINCT),
    int32(
        "num.recovery.threads.per.data.dir",
        2,
        "Number of logs opened at once per log directory at startup.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    *all_with(
        unsupported("log directories cannot be cordoned yet"),
        strings(
            "cordoned.log.dirs",
            (),
            "Log directories that receive no new partitions.",
            change=Change.PER_BROKER,
        ),
    ),
    *all_with(
        nothing_to_tune("the broker does not support moving partitions between log directories"),
        int32(
            "num.replica.alter.log.dirs.threads",
            None,
            "Number of threads that move partitions between log directories.",
        ),
    ),
    *all_with(
        nothing_to_tune("the controller runs in the same process, so a failure can always be reported"),
        int64(
            "log.dir.failure.timeout.ms",
            30000,
            "Time the broker may fail to report a failed log directory before it stops.",
            rule=_POSITIVE,
        ),
    ),
)

_SEGMENTS: Final = (
    int32(
        "log.segment.bytes",
        1 << 30,
        "Default of the topic setting segment.bytes: maximum size of a segment.",
        rule=at_least(1 << 20),
        change=_DYNAMIC,
    ),
    int64("log.roll.ms", None, "Default of the topic setting segment.ms.", rule=_POSITIVE, change=_DYNAMIC),
    int32(
        "log.roll.hours", 168, "Default of segment.ms in hours, if log.roll.ms is not set.", rule=_POSITIVE
    ),
    int64(
        "log.roll.jitter.ms",
        None,
        "Default of the topic setting segment.jitter.ms.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "log.roll.jitter.hours",
        0,
        "Default of segment.jitter.ms in hours, if log.roll.jitter.ms is not set.",
        rule=_FROM_0,
    ),
    int32(
        "log.index.interval.bytes",
        4096,
        "Default of the topic setting index.interval.bytes.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "log.index.size.max.bytes",
        10 << 20,
        "Default of the topic setting segment.index.bytes.",
        rule=at_least(4),
        change=_DYNAMIC,
    ),
    boolean("log.preallocate", False, "Default of the topic setting preallocate.", change=_DYNAMIC),
    int64(
        "log.segment.delete.delay.ms",
        60000,
        "Default of the topic setting file.delete.delay.ms.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
)

_RETENTION: Final = (
    strings(
        "log.cleanup.policy",
        ("delete",),
        "Default of the topic setting cleanup.policy: delete, compact, both or neither.",
        rule=list_of("compact", "delete"),
        change=_DYNAMIC,
    ),
    int64(
        "log.retention.bytes",
        -1,
        "Default of the topic setting retention.bytes; -1 is no limit.",
        change=_DYNAMIC,
    ),
    int64(
        "log.retention.ms", None, "Default of the topic setting retention.ms.", rule=_NOT_0, change=_DYNAMIC
    ),
    int32(
        "log.retention.minutes",
        None,
        "Default of retention.ms in minutes, if log.retention.ms is not set.",
        rule=_NOT_0,
    ),
    int32(
        "log.retention.hours",
        168,
        "Default of retention.ms in hours, if log.retention.ms and log.retention.minutes are not set.",
        rule=_NOT_0,
    ),
    int64(
        "log.retention.check.interval.ms",
        300000,
        "Interval between checks for segments to delete.",
        rule=_POSITIVE,
    ),
    *all_with(
        nothing_to_tune("this broker has no remote storage"),
        int64(
            "log.local.retention.bytes",
            -2,
            "Default of the topic setting local.retention.bytes.",
            rule=at_least(-2),
            change=_DYNAMIC,
        ),
        int64(
            "log.local.retention.ms",
            -2,
            "Default of the topic setting local.retention.ms.",
            rule=at_least(-2),
            change=_DYNAMIC,
        ),
    ),
)

_FLUSH: Final = (
    int64(
        "log.flush.interval.messages",
        LONG_MAX,
        "Default of the topic setting flush.messages.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    int64(
        "log.flush.interval.ms", None, "Default of the topic setting flush.ms.", rule=_FROM_0, change=_DYNAMIC
    ),
    int64(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "Interval between checks for logs to flush, at most one second; also the default of "
        "log.flush.interval.ms.",
        rule=_POSITIVE,
    ),
    int32(
        "log.flush.offset.checkpoint.interval.ms",
        60000,
        "Interval between checkpoints of the flushed offsets.",
        rule=_POSITIVE,
    ),
    int32(
        "log.flush.start.offset.checkpoint.interval.ms",
        60000,
        "Interval between checkpoints of the log start offsets. The shortest of this interval, "
        "log.flush.offset.checkpoint.interval.ms and "
        "replica.high.watermark.checkpoint.interval.ms applies to all three.",
        rule=_POSITIVE,
    ),
    int64(
        "log.initial.task.delay.ms",
        30000,
        "Delay of the first retention, flush and checkpoint tasks after startup.",
        rule=_FROM_0,
        internal=True,
    ),
)

_RECORDS: Final = (
    int32(
        "message.max.bytes",
        (1 << 20) + 12,
        "Default of the topic setting max.message.bytes: maximum size of a batch.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    string(
        "compression.type",
        "producer",
        "Default of the topic setting compression.type.",
        rule=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        change=_DYNAMIC,
    ),
    int32(
        "compression.gzip.level",
        -1,
        "Default of the topic setting compression.gzip.level.",
        rule=any_of(between(1, 9), exactly(-1)),
        change=_DYNAMIC,
    ),
    int32(
        "compression.lz4.level",
        9,
        "Default of the topic setting compression.lz4.level.",
        rule=between(1, 17),
        change=_DYNAMIC,
    ),
    int32(
        "compression.zstd.level",
        3,
        "Default of the topic setting compression.zstd.level.",
        rule=between(-131072, 22),
        change=_DYNAMIC,
    ),
    string(
        "log.message.timestamp.type",
        "CreateTime",
        "Default of the topic setting message.timestamp.type.",
        rule=one_of("CreateTime", "LogAppendTime"),
        change=_DYNAMIC,
    ),
    int64(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "Default of the topic setting message.timestamp.before.max.ms.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int64(
        "log.message.timestamp.after.max.ms",
        60 * 60 * 1000,
        "Default of the topic setting message.timestamp.after.max.ms.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int32(
        "producer.id.expiration.ms",
        _DAY_MS,
        "Time without a batch after which an idempotent producer's state expires.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    int32(
        "producer.id.expiration.check.interval.ms",
        600000,
        "Interval between checks for expired producers.",
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
