"""Remote storage for old segments (KIP-405), which is not supported.

Only the setting that enables it is refused: without it, Kafka ignores all others too.
"""

from dataclasses import replace
from typing import Final

from barnabas.base.setting_rules import Rule, at_least
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
    string,
)

_DYNAMIC: Final = Change.CLUSTER_WIDE
_MANAGER: Final = "remote.log.manager."
_METADATA: Final = "remote.log.metadata."
_STORAGE: Final = "remote.log.storage."
_POSITIVE: Final = at_least(1)
_NOT_EMPTY: Final = Rule("a non-empty text", lambda value: value != "")


def _all_by(rule: Rule, *declared: ServerSetting) -> tuple[ServerSetting, ...]:
    return tuple(replace(one, rule=rule) for one in declared)


_READING: Final = _all_by(
    _POSITIVE,
    int32("remote.fetch.max.wait.ms", 500, "Maximum time a fetch waits for remote storage.", change=_DYNAMIC),
    int64(
        "remote.list.offsets.request.timeout.ms",
        30000,
        "Timeout of an offset lookup by timestamp in remote storage.",
        change=_DYNAMIC,
    ),
    int64(
        "remote.log.index.file.cache.total.size.bytes",
        1 << 30,
        "Size of the local cache of index files fetched from remote storage.",
        change=_DYNAMIC,
    ),
    int64(
        "remote.log.index.file.cache.ttl.ms",
        900000,
        "Time an unused index file stays in that cache.",
        internal=True,
    ),
    int32("remote.log.reader.max.pending.tasks", 100, "Maximum number of queued remote reads."),
    int32("remote.log.reader.threads", 10, "Number of concurrent remote reads.", change=_DYNAMIC),
)

_COPYING: Final = _all_by(
    _POSITIVE,
    int32(_MANAGER + "copier.thread.pool.size", 10, "Number of segments copied at once.", change=_DYNAMIC),
    int64(
        _MANAGER + "copy.max.bytes.per.second",
        LONG_MAX,
        "Maximum bytes per second copied to remote storage.",
        change=_DYNAMIC,
    ),
    int32(_MANAGER + "copy.quota.window.num", 11, "Number of windows over which the copy rate is measured."),
    int32(_MANAGER + "copy.quota.window.size.seconds", 1, "Length of each of these windows."),
    int32(
        _MANAGER + "expiration.thread.pool.size",
        10,
        "Number of remote segments deleted at once.",
        change=_DYNAMIC,
    ),
    int64(
        _MANAGER + "fetch.max.bytes.per.second",
        LONG_MAX,
        "Maximum bytes per second fetched from remote storage.",
        change=_DYNAMIC,
    ),
    int32(
        _MANAGER + "fetch.quota.window.num", 11, "Number of windows over which the fetch rate is measured."
    ),
    int32(_MANAGER + "fetch.quota.window.size.seconds", 1, "Length of each of these windows."),
    int32(
        _MANAGER + "follower.thread.pool.size",
        2,
        "Number of threads for the tasks of followers.",
        change=_DYNAMIC,
    ),
    int64(_MANAGER + "task.interval.ms", 30000, "Interval between checks for segments to copy or delete."),
    int64(_MANAGER + "task.retry.backoff.max.ms", 30000, "Maximum backoff after a failure.", internal=True),
    int64(_MANAGER + "task.retry.backoff.ms", 500, "First backoff after a failure.", internal=True),
    int32(_MANAGER + "thread.pool.size", 2, "Number of threads that manage partitions."),
)

_PLUGINS: Final = (
    int32(
        _METADATA + "custom.metadata.max.bytes",
        128,
        "Maximum size of the custom metadata that a plugin stores for a segment.",
        rule=at_least(0),
    ),
    *_all_by(
        _NOT_EMPTY,
        string(
            _METADATA + "manager.class.name",
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
            "Class that manages the metadata of remote segments.",
        ),
        string(_METADATA + "manager.impl.prefix", "rlmm.config.", "Prefix of the manager's own settings."),
        string(_METADATA + "manager.listener.name", None, "Listener that the metadata manager connects to."),
        string(_STORAGE + "manager.class.name", None, "Class that reads and writes remote storage."),
        string(_STORAGE + "manager.impl.prefix", "rsm.config.", "Prefix of the manager's own settings."),
    ),
    string(_METADATA + "manager.class.path", None, "Class path of the manager."),
    string(_STORAGE + "manager.class.path", None, "Class path of the manager."),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        unsupported("this broker has no remote storage"),
        boolean(_STORAGE + "system.enable", False, "Enable remote storage."),
    ),
    *all_with(
        nothing_to_tune("this broker has no remote storage: remote.log.storage.system.enable must be false"),
        *_READING,
        *_COPYING,
        *_PLUGINS,
        boolean(
            "follower.fetch.last.tiered.offset.enable",
            False,
            "Let an empty follower start fetching after the segments in remote storage.",
            change=_DYNAMIC,
        ),
        double(
            _MANAGER + "task.retry.jitter",
            0.2,
            "Random part of the backoff after a failure.",
            rule=Rule("between 0 and 0.5", lambda value: isinstance(value, float) and 0 <= value <= 0.5),
            internal=True,
        ),
    ),
)
