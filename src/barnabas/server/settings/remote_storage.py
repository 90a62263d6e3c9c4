"""Remote storage for old segments (KIP-405), which Barnabas does not have.

One setting switches it on, and only that one is refused: without it, Kafka reads none of the others either.
"""

from dataclasses import replace
from typing import Final

from barnabas.base.setting_rules import Rule, at_least
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
    string,
)

_DYNAMIC: Final = Change.CLUSTER_WIDE
_MANAGER: Final = "remote.log.manager."
_METADATA: Final = "remote.log.metadata."
_STORAGE: Final = "remote.log.storage."
_POSITIVE: Final = at_least(1)
_NOT_EMPTY: Final = Rule("a text that is not empty", lambda value: value != "")


def _all_by(rule: Rule, *declared: ServerSetting) -> tuple[ServerSetting, ...]:
    return tuple(replace(one, rule=rule) for one in declared)


_READING: Final = _all_by(
    _POSITIVE,
    int32("remote.fetch.max.wait.ms", 500, "How long a fetch waits for remote storage.", change=_DYNAMIC),
    int64(
        "remote.list.offsets.request.timeout.ms",
        30000,
        "How long a search by time may take.",
        change=_DYNAMIC,
    ),
    int64(
        "remote.log.index.file.cache.total.size.bytes",
        1 << 30,
        "How much room fetched indexes have on the local disk.",
        change=_DYNAMIC,
    ),
    int64("remote.log.index.file.cache.ttl.ms", 900000, "How long an unused one is kept.", internal=True),
    int32("remote.log.reader.max.pending.tasks", 100, "How many reads may wait."),
    int32("remote.log.reader.threads", 10, "How many reads run at once.", change=_DYNAMIC),
)

_COPYING: Final = _all_by(
    _POSITIVE,
    int32(_MANAGER + "copier.thread.pool.size", 10, "How many copies run at once.", change=_DYNAMIC),
    int64(_MANAGER + "copy.max.bytes.per.second", LONG_MAX, "How fast segments are copied.", change=_DYNAMIC),
    int32(_MANAGER + "copy.quota.window.num", 11, "Over how many windows that is measured."),
    int32(_MANAGER + "copy.quota.window.size.seconds", 1, "How long each of these windows is."),
    int32(_MANAGER + "expiration.thread.pool.size", 10, "How many deletions run at once.", change=_DYNAMIC),
    int64(_MANAGER + "fetch.max.bytes.per.second", LONG_MAX, "How fast segments are read.", change=_DYNAMIC),
    int32(_MANAGER + "fetch.quota.window.num", 11, "Over how many windows that is measured."),
    int32(_MANAGER + "fetch.quota.window.size.seconds", 1, "How long each of these windows is."),
    int32(_MANAGER + "follower.thread.pool.size", 2, "How many threads followers have.", change=_DYNAMIC),
    int64(_MANAGER + "task.interval.ms", 30000, "How often segments to copy or delete are looked for."),
    int64(_MANAGER + "task.retry.backoff.max.ms", 30000, "The longest pause after a failure.", internal=True),
    int64(_MANAGER + "task.retry.backoff.ms", 500, "The first pause after a failure.", internal=True),
    int32(_MANAGER + "thread.pool.size", 2, "How many threads manage partitions."),
)

_PLUGINS: Final = (
    int32(
        _METADATA + "custom.metadata.max.bytes",
        128,
        "How much a plugin may note for a segment.",
        rule=at_least(0),
    ),
    *_all_by(
        _NOT_EMPTY,
        string(
            _METADATA + "manager.class.name",
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
            "The class that keeps track of segments in remote storage.",
        ),
        string(_METADATA + "manager.impl.prefix", "rlmm.config.", "How the names of its settings begin."),
        string(_METADATA + "manager.listener.name", None, "The listener that it connects to."),
        string(_STORAGE + "manager.class.name", None, "The class that reads and writes remote storage."),
        string(_STORAGE + "manager.impl.prefix", "rsm.config.", "How the names of its settings begin."),
    ),
    string(_METADATA + "manager.class.path", None, "Where the class of the metadata manager is."),
    string(_STORAGE + "manager.class.path", None, "Where the class of the storage manager is."),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        unsupported("this broker has no remote storage"),
        boolean(_STORAGE + "system.enable", False, "Whether there is remote storage at all."),
    ),
    *all_with(
        nothing_to_tune("there is no remote storage: remote.log.storage.system.enable must be false"),
        *_READING,
        *_COPYING,
        *_PLUGINS,
        boolean(
            "follower.fetch.last.tiered.offset.enable",
            False,
            "Whether an empty follower begins behind what is in remote storage already.",
            change=_DYNAMIC,
        ),
        double(
            _MANAGER + "task.retry.jitter",
            0.2,
            "How much chance is in these pauses.",
            rule=Rule("between 0 and 0.5", lambda value: isinstance(value, float) and 0 <= value <= 0.5),
            internal=True,
        ),
    ),
)
