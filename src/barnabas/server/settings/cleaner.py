"""Compaction: resources of the cleaner, and defaults of the topic settings that decide when a log is due."""

from typing import Final

from barnabas.base.setting_rules import at_least, between
from barnabas.base.settings import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    LONG_MAX,
    Change,
    ServerSetting,
    all_with,
    boolean,
    double,
    int32,
    int64,
)

_DAY_MS: Final = 24 * 60 * 60 * 1000
_DYNAMIC: Final = Change.CLUSTER_WIDE
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    boolean("log.cleaner.enable", True, "Enable log compaction."),
    int64(
        "log.cleaner.backoff.ms",
        15000,
        "Pause between checks when no log needs compaction.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.dedupe.buffer.size",
        128 << 20,
        "Memory for the map of keys that compaction builds, in bytes.",
        rule=at_least((1 << 20) + 1),
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.delete.retention.ms",
        _DAY_MS,
        "Default of the topic setting delete.retention.ms.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Default of the topic setting min.compaction.lag.ms.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "Default of the topic setting max.compaction.lag.ms.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "Default of the topic setting min.cleanable.dirty.ratio.",
        rule=between(0, 1),
        change=_DYNAMIC,
    ),
    *all_with(
        nothing_to_tune("a single thread compacts the logs and sizes its own buffers"),
        int32("log.cleaner.threads", 1, "Number of logs compacted at once.", rule=_POSITIVE, change=_DYNAMIC),
        int32(
            "log.cleaner.io.buffer.size",
            524288,
            "Memory for the cleaner's read and write buffers, in bytes.",
            rule=_FROM_0,
            change=_DYNAMIC,
        ),
        double(
            "log.cleaner.io.buffer.load.factor",
            0.9,
            "Maximum load factor of the cleaner's map of keys.",
            change=_DYNAMIC,
        ),
    ),
    *all_with(
        unsupported("compaction cannot be throttled yet"),
        double(
            "log.cleaner.io.max.bytes.per.second",
            1.7976931348623157e308,
            "Maximum bytes per second that the cleaner reads and writes.",
            change=_DYNAMIC,
        ),
    ),
)
