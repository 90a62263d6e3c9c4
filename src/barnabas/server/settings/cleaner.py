"""Compaction: what the cleaner may use, and when a log is due, unless its topic says so itself."""

from typing import Final

from barnabas.base.setting_rules import at_least, between
from barnabas.base.setting_support import nothing_to_tune, unsupported
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
    boolean("log.cleaner.enable", True, "Whether logs are compacted at all."),
    int64(
        "log.cleaner.backoff.ms",
        15000,
        "How long the cleaner sleeps when no log needs it.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.dedupe.buffer.size",
        128 << 20,
        "How much memory the cleaner has for the keys of a log.",
        rule=at_least((1 << 20) + 1),
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.delete.retention.ms",
        _DAY_MS,
        "delete.retention.ms of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "min.compaction.lag.ms of topics that do not set it.",
        rule=_FROM_0,
        change=_DYNAMIC,
    ),
    int64(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "max.compaction.lag.ms of topics that do not set it.",
        rule=_POSITIVE,
        change=_DYNAMIC,
    ),
    double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "min.cleanable.dirty.ratio of topics that do not set it.",
        rule=between(0, 1),
        change=_DYNAMIC,
    ),
    *all_with(
        nothing_to_tune("one thread compacts the logs, one after another, with buffers of their own sizes"),
        int32(
            "log.cleaner.threads", 1, "How many logs are compacted at once.", rule=_POSITIVE, change=_DYNAMIC
        ),
        int32(
            "log.cleaner.io.buffer.size",
            524288,
            "How much memory is for reading and writing.",
            rule=_FROM_0,
            change=_DYNAMIC,
        ),
        double("log.cleaner.io.buffer.load.factor", 0.9, "How full the map of keys may be.", change=_DYNAMIC),
    ),
    *all_with(
        unsupported("compaction cannot be throttled yet"),
        double(
            "log.cleaner.io.max.bytes.per.second",
            1.7976931348623157e308,
            "How much the cleaner reads and writes in a second.",
            change=_DYNAMIC,
        ),
    ),
)
