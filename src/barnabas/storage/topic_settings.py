"""The declarations of all topic settings, with Kafka's names, types, defaults and limits.

Synonyms are the broker settings that apply to all topics; the first one that is set counts. config.py
resolves the values.
"""

import re
from dataclasses import dataclass
from typing import Final

from barnabas.base.setting_rules import Rule, Value, any_of, at_least, between, exactly, list_of, one_of
from barnabas.base.settings import SettingType, Synonym, nothing_to_tune, setting, settings_of, unsupported

BOOLEAN: Final = SettingType.BOOLEAN
STRING: Final = SettingType.STRING
INT: Final = SettingType.INT
LONG: Final = SettingType.LONG
DOUBLE: Final = SettingType.DOUBLE
LIST: Final = SettingType.LIST

LONG_MAX: Final = 2**63 - 1
MINUTE_MS: Final = 60 * 1000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
# Kafka's default: 1 MiB, and 12 bytes for the batch's base offset and length.
MESSAGE_BYTES: Final = (1 << 20) + 12

COMPACT: Final = "compact"
DELETE: Final = "delete"
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
# No retention limit.
UNLIMITED: Final = -1
# local.retention.*: use the value of retention.*.
SAME_AS_RETENTION: Final = -2

_COMPRESSIONS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")


def _are_replicas(value: Value) -> bool:
    return isinstance(value, tuple) and (value == ("*",) or all(map(_REPLICA.fullmatch, value)))


_REPLICAS: Final = Rule("* or a list of partition:broker", _are_replicas)
# LogConfig accepts them, because a topic from Kafka may have them. A request to set them is rejected.
_NO_THROTTLE: Final = unsupported("traffic between replicas cannot be throttled yet")
NO_REMOTE_STORAGE: Final = unsupported("this broker has no remote storage")
_REMOTE_KNOB: Final = nothing_to_tune("no topic can have remote storage: remote.storage.enable must be false")
_FOREVER_OR_MORE: Final = any_of(exactly(UNLIMITED), at_least(1))


def _same(name: str, kind: SettingType) -> tuple[Synonym, ...]:
    return (Synonym(name=name, type=kind),)


def _retention(name: str, kind: SettingType, times: int = 1) -> Synonym:
    # For the broker settings every negative time means "for ever", and 0 is invalid. A topic may have 0.
    return Synonym(name=name, type=kind, times=times, floor=UNLIMITED, rule=_FOREVER_OR_MORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """A value for every setting of a topic, in the order of the names."""

    cleanup_policy: tuple[str, ...] = setting(
        "cleanup.policy",
        LIST,
        (DELETE,),
        "Treatment of old records: delete removes segments, compact keeps the last of every key, an empty "
        "list keeps all.",
        rule=list_of(COMPACT, DELETE),
        synonyms=_same("log.cleanup.policy", LIST),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        -1,
        "Compression level if compression.type is gzip.",
        rule=any_of(between(1, 9), exactly(-1)),
        synonyms=_same("compression.gzip.level", INT),
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        INT,
        9,
        "Compression level if compression.type is lz4.",
        rule=between(1, 17),
        synonyms=_same("compression.lz4.level", INT),
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "producer",
        "Compression of stored batches: a fixed codec, or producer to keep that of the producer.",
        rule=one_of(*_COMPRESSIONS),
        synonyms=_same("compression.type", STRING),
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        INT,
        3,
        "Compression level if compression.type is zstd.",
        rule=between(-131072, 22),
        synonyms=_same("compression.zstd.level", INT),
    )
    delete_retention_ms: int = setting(
        "delete.retention.ms",
        LONG,
        DAY_MS,
        "How long compaction keeps a tombstone, so that a reader from the start still sees the deletion.",
        rule=at_least(0),
        synonyms=_same("log.cleaner.delete.retention.ms", LONG),
    )
    file_delete_delay_ms: int = setting(
        "file.delete.delay.ms",
        LONG,
        MINUTE_MS,
        "How long the files of a removed segment stay on the disk under another name.",
        rule=at_least(0),
        synonyms=_same("log.segment.delete.delay.ms", LONG),
    )
    flush_messages: int = setting(
        "flush.messages",
        LONG,
        LONG_MAX,
        "Number of unflushed records after which the log is flushed to disk; by default replication provides "
        "durability.",
        rule=at_least(1),
        synonyms=_same("log.flush.interval.messages", LONG),
    )
    flush_ms: int = setting(
        "flush.ms",
        LONG,
        LONG_MAX,
        "Time after which unflushed records are flushed to disk.",
        rule=at_least(0),
        synonyms=(
            *_same("log.flush.interval.ms", LONG),
            *_same("log.flush.scheduler.interval.ms", LONG),
        ),
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        "Replicas whose replication is throttled on the follower, as partition:broker, or * for all.",
        rule=_REPLICAS,
        status=_NO_THROTTLE,
    )
    index_interval_bytes: int = setting(
        "index.interval.bytes",
        INT,
        4096,
        "Bytes of log between two index entries.",
        rule=at_least(0),
        synonyms=_same("log.index.interval.bytes", INT),
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        "Replicas whose replication is throttled on the leader, as partition:broker, or * for all.",
        rule=_REPLICAS,
        status=_NO_THROTTLE,
    )
    local_retention_bytes: int = setting(
        "local.retention.bytes",
        LONG,
        SAME_AS_RETENTION,
        "retention.bytes for the local part of a log with remote storage; -2 uses retention.bytes.",
        rule=at_least(SAME_AS_RETENTION),
        synonyms=_same("log.local.retention.bytes", LONG),
        status=_REMOTE_KNOB,
    )
    local_retention_ms: int = setting(
        "local.retention.ms",
        LONG,
        SAME_AS_RETENTION,
        "retention.ms for the local part of a log with remote storage; -2 uses retention.ms.",
        rule=at_least(SAME_AS_RETENTION),
        synonyms=_same("log.local.retention.ms", LONG),
        status=_REMOTE_KNOB,
    )
    max_compaction_lag_ms: int = setting(
        "max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "Maximum time a record may stay uncompacted.",
        rule=at_least(1),
        synonyms=_same("log.cleaner.max.compaction.lag.ms", LONG),
    )
    max_message_bytes: int = setting(
        "max.message.bytes",
        INT,
        MESSAGE_BYTES,
        "Maximum size of a record batch, after compression.",
        rule=at_least(0),
        synonyms=_same("message.max.bytes", INT),
    )
    message_timestamp_after_max_ms: int = setting(
        "message.timestamp.after.max.ms",
        LONG,
        HOUR_MS,
        "How far a timestamp set by the producer may lie in the future.",
        rule=at_least(0),
        synonyms=_same("log.message.timestamp.after.max.ms", LONG),
    )
    message_timestamp_before_max_ms: int = setting(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        "How far a timestamp set by the producer may lie in the past.",
        rule=at_least(0),
        synonyms=_same("log.message.timestamp.before.max.ms", LONG),
    )
    message_timestamp_type: str = setting(
        "message.timestamp.type",
        STRING,
        CREATE_TIME,
        "Whether the producer sets a record's timestamp, or the broker on append.",
        rule=one_of(CREATE_TIME, LOG_APPEND_TIME),
        synonyms=_same("log.message.timestamp.type", STRING),
    )
    min_cleanable_dirty_ratio: float = setting(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "Share of a log that must be uncompacted before the cleaner compacts it.",
        rule=between(0, 1),
        synonyms=_same("log.cleaner.min.cleanable.ratio", DOUBLE),
    )
    min_compaction_lag_ms: int = setting(
        "min.compaction.lag.ms",
        LONG,
        0,
        "Minimum time a record stays uncompacted.",
        rule=at_least(0),
        synonyms=_same("log.cleaner.min.compaction.lag.ms", LONG),
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        INT,
        1,
        "Number of in-sync replicas that a write with acks=all needs; with fewer it is rejected.",
        rule=at_least(1),
        synonyms=_same("min.insync.replicas", INT),
    )
    preallocate: bool = setting(
        "preallocate",
        BOOLEAN,
        False,
        "Whether a segment's file is created with its full size.",
        synonyms=_same("log.preallocate", BOOLEAN),
    )
    remote_log_copy_disable: bool = setting(
        "remote.log.copy.disable",
        BOOLEAN,
        False,
        "Whether copying to remote storage is stopped for the topic.",
        status=_REMOTE_KNOB,
    )
    remote_log_delete_on_disable: bool = setting(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        "Whether the remote part of a log is deleted when remote storage is switched off.",
        status=_REMOTE_KNOB,
    )
    remote_storage_enable: bool = setting(
        "remote.storage.enable",
        BOOLEAN,
        False,
        "Whether old segments are moved to remote storage.",
        status=NO_REMOTE_STORAGE,
    )
    retention_bytes: int = setting(
        "retention.bytes",
        LONG,
        UNLIMITED,
        "How large a partition's log may grow before its oldest segments are deleted; -1 is no limit.",
        synonyms=_same("log.retention.bytes", LONG),
    )
    retention_ms: int = setting(
        "retention.ms",
        LONG,
        WEEK_MS,
        "How old the youngest record of a segment may grow before it is deleted; -1 is no limit.",
        rule=at_least(UNLIMITED),
        synonyms=(
            _retention("log.retention.ms", LONG),
            _retention("log.retention.minutes", INT, MINUTE_MS),
            _retention("log.retention.hours", INT, HOUR_MS),
        ),
    )
    segment_bytes: int = setting(
        "segment.bytes",
        INT,
        1 << 30,
        "Size at which a segment is rolled.",
        rule=at_least(1 << 20),
        synonyms=_same("log.segment.bytes", INT),
    )
    segment_index_bytes: int = setting(
        "segment.index.bytes",
        INT,
        10 << 20,
        "Size of an index at which its segment is rolled.",
        rule=at_least(4),
        synonyms=_same("log.index.size.max.bytes", INT),
    )
    segment_jitter_ms: int = setting(
        "segment.jitter.ms",
        LONG,
        0,
        "How much earlier than segment.ms a segment may be rolled, so that not all roll at once.",
        rule=at_least(0),
        synonyms=(
            Synonym(name="log.roll.jitter.ms", type=LONG),
            Synonym(name="log.roll.jitter.hours", type=INT, times=HOUR_MS),
        ),
    )
    segment_ms: int = setting(
        "segment.ms",
        LONG,
        WEEK_MS,
        "Age at which a segment is rolled even if it is not full.",
        rule=at_least(1),
        synonyms=(
            Synonym(name="log.roll.ms", type=LONG),
            Synonym(name="log.roll.hours", type=INT, times=HOUR_MS),
        ),
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether an out-of-sync replica may become leader if no other is left, which can lose records.",
        synonyms=_same("unclean.leader.election.enable", BOOLEAN),
    )


SETTINGS: Final = settings_of(TopicSettings)
