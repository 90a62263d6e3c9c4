"""The controller quorum and its metadata log."""

from typing import Final

from barnabas.base.setting_rules import Rule, any_of, at_least, exactly
from barnabas.base.settings import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    ServerSetting,
    all_with,
    boolean,
    int32,
    int64,
    string,
    strings,
)
from barnabas.server.settings.rules import DISTINCT

_DAY_MS: Final = 24 * 60 * 60 * 1000
_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_UNLIMITED_OR_MORE: Final[Rule] = any_of(exactly(-1), at_least(1))

_MEMBERS: Final = (
    strings(
        "controller.quorum.voters",
        (),
        "Voters of the quorum, as id@host:port, for a quorum with static membership.",
        rule=DISTINCT,
    ),
    strings(
        "controller.quorum.bootstrap.servers",
        (),
        "Address of the quorum if controller.quorum.voters is not set: one host:port, that of this node.",
        rule=DISTINCT,
    ),
    *all_with(
        unsupported("controllers cannot join or leave a quorum yet"),
        boolean("controller.quorum.auto.join.enable", False, "Let a controller join the voters by itself."),
    ),
)

_TIMES: Final = (
    int32(
        "controller.quorum.election.timeout.ms",
        1000,
        "Time a candidate waits for votes before it starts another election.",
        rule=_POSITIVE,
    ),
    int32(
        "controller.quorum.fetch.timeout.ms",
        2000,
        "Time without a successful fetch from the leader after which a voter becomes a candidate;"
        " time without fetches from a majority after which a leader resigns.",
        rule=_POSITIVE,
    ),
    int32(
        "controller.quorum.election.backoff.max.ms",
        1000,
        "Maximum random backoff before another election after one without a winner.",
        rule=_FROM_0,
    ),
    *all_with(
        nothing_to_tune("records that arrive during a flush share the next one, so lingering has no use"),
        int32(
            "controller.quorum.append.linger.ms",
            25,
            "Time the leader waits for more records before it flushes.",
            rule=_FROM_0,
        ),
    ),
    int32(
        "controller.quorum.request.timeout.ms",
        2000,
        "Time a member of the quorum waits for a response of another one.",
        rule=_POSITIVE,
    ),
    int32(
        "controller.quorum.retry.backoff.ms",
        20,
        "Backoff of a member of the quorum before it retries a failed request.",
        rule=_FROM_0,
    ),
    *all_with(
        nothing_to_tune("the quorum has one controller, in the same process as the broker"),
        int32(
            "controller.quorum.fetch.max.bytes",
            1048576,
            "Maximum bytes of one fetch from the metadata log.",
            rule=_POSITIVE,
        ),
        int32(
            "controller.quorum.fetch.snapshot.max.bytes",
            1048576,
            "Maximum bytes of one fetch from a metadata snapshot.",
            rule=_POSITIVE,
        ),
        int32("controller.socket.timeout.ms", 30000, "Timeout of a request to a controller."),
    ),
)

_METADATA_LOG: Final = (
    string(
        "metadata.log.dir",
        None,
        "Directory of the metadata log (default: the first log directory).",
    ),
    int32(
        "metadata.log.segment.bytes",
        1 << 30,
        "Maximum size of a segment of the metadata log.",
        rule=at_least(8 << 20),
    ),
    int64(
        "metadata.log.segment.ms",
        7 * _DAY_MS,
        "Time after which a segment of the metadata log is rolled.",
        rule=_POSITIVE,
    ),
    int64(
        "metadata.log.max.record.bytes.between.snapshots",
        20 << 20,
        "Bytes of new records after which a metadata snapshot is written.",
        rule=_POSITIVE,
    ),
    int64(
        "metadata.log.max.snapshot.interval.ms",
        60 * 60 * 1000,
        "Time after which a metadata snapshot is written if there are new records; 0 means never.",
        rule=_FROM_0,
    ),
    int64(
        "metadata.max.retention.bytes",
        100 << 20,
        "Maximum total size of metadata log and snapshots before old ones are deleted; -1 means no limit.",
        rule=_UNLIMITED_OR_MORE,
    ),
    int64(
        "metadata.max.retention.ms",
        7 * _DAY_MS,
        "Maximum age of metadata log and snapshots before they are deleted; -1 means no limit.",
        rule=_UNLIMITED_OR_MORE,
    ),
    int32(
        "metadata.max.idle.interval.ms",
        500,
        "Interval at which an idle controller writes a no-op record, which proves that it is "
        "alive; 0 means never.",
        rule=_FROM_0,
    ),
)

_TEST_HOOKS: Final = all_with(
    unsupported("it is a test hook of Kafka"),
    int64(
        "internal.metadata.delete.delay.millis",
        60000,
        "Delay before files of the metadata log are deleted from disk.",
        internal=True,
    ),
    int32(
        "internal.metadata.log.segment.bytes",
        None,
        "Segment size of the metadata log below the allowed minimum, for tests.",
        internal=True,
    ),
    int32(
        "internal.metadata.max.batch.size.in.bytes",
        8 << 20,
        "Maximum size of a batch in the metadata log.",
        internal=True,
    ),
)

_PERFORMANCE_LOG: Final = all_with(
    nothing_to_tune("the controller does not log the duration of its events"),
    int64(
        "controller.performance.always.log.threshold.ms",
        2000,
        "Duration from which on a controller event is logged.",
        rule=_FROM_0,
        internal=True,
    ),
    int64(
        "controller.performance.sample.period.ms",
        60000,
        "Interval at which the controller logs the duration of its events.",
        rule=at_least(100),
        internal=True,
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *_MEMBERS,
    *_TIMES,
    *_METADATA_LOG,
    *_TEST_HOOKS,
    *_PERFORMANCE_LOG,
)
