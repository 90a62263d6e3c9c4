"""The controllers' quorum and the metadata log that it keeps."""

from typing import Final

from barnabas.base.setting_rules import Rule, any_of, at_least, exactly
from barnabas.base.setting_support import nothing_to_tune, unsupported
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
        "The voters of the quorum, as id@host:port, for a quorum whose members never change.",
        rule=DISTINCT,
    ),
    strings(
        "controller.quorum.bootstrap.servers",
        (),
        "Where the quorum is found if its voters are not named: one host:port, which is this node's.",
        rule=DISTINCT,
    ),
    *all_with(
        unsupported("controllers cannot join or leave a quorum yet"),
        boolean("controller.quorum.auto.join.enable", False, "Whether a controller makes itself a voter."),
    ),
)

_TIMES: Final = (
    int32(
        "controller.quorum.election.timeout.ms",
        1000,
        "How long a candidate waits for votes before it asks again.",
        rule=_POSITIVE,
    ),
    int32(
        "controller.quorum.fetch.timeout.ms",
        2000,
        "After how long a voter without a leader calls an election, and a leader without a majority resigns.",
        rule=_POSITIVE,
    ),
    int32(
        "controller.quorum.election.backoff.max.ms",
        1000,
        "The longest pause between two elections that nobody won; its length is drawn by lot.",
        rule=_FROM_0,
    ),
    *all_with(
        nothing_to_tune("records that arrive during a flush share the next one, so nothing has to linger"),
        int32(
            "controller.quorum.append.linger.ms",
            25,
            "How long the leader waits for more records before it flushes what it has.",
            rule=_FROM_0,
        ),
    ),
    int32(
        "controller.quorum.request.timeout.ms",
        2000,
        "How long a member of the quorum waits for an answer of another.",
        rule=_POSITIVE,
    ),
    int32(
        "controller.quorum.retry.backoff.ms",
        20,
        "How long a member of the quorum waits before it repeats a failed request.",
        rule=_FROM_0,
    ),
    *all_with(
        nothing_to_tune("the quorum is one controller, in the same process as the broker"),
        int32(
            "controller.quorum.fetch.max.bytes",
            1048576,
            "How much of the metadata log one fetch asks for.",
            rule=_POSITIVE,
        ),
        int32(
            "controller.quorum.fetch.snapshot.max.bytes",
            1048576,
            "How much of a metadata snapshot one fetch asks for.",
            rule=_POSITIVE,
        ),
        int32("controller.socket.timeout.ms", 30000, "How long a request to a controller may take."),
    ),
)

_METADATA_LOG: Final = (
    string(
        "metadata.log.dir",
        None,
        "Where the metadata log is kept; without it, in the first of the log directories.",
    ),
    int32(
        "metadata.log.segment.bytes",
        1 << 30,
        "How large a segment of the metadata log grows.",
        rule=at_least(8 << 20),
    ),
    int64(
        "metadata.log.segment.ms",
        7 * _DAY_MS,
        "How long a segment of the metadata log is appended to.",
        rule=_POSITIVE,
    ),
    int64(
        "metadata.log.max.record.bytes.between.snapshots",
        20 << 20,
        "After how many bytes of records a snapshot of the metadata is written.",
        rule=_POSITIVE,
    ),
    int64(
        "metadata.log.max.snapshot.interval.ms",
        60 * 60 * 1000,
        "After how long a snapshot of the metadata is written, if there is anything new; 0 is never.",
        rule=_FROM_0,
    ),
    int64(
        "metadata.max.retention.bytes",
        100 << 20,
        "How many bytes of metadata log and snapshots are kept; -1 is no limit.",
        rule=_UNLIMITED_OR_MORE,
    ),
    int64(
        "metadata.max.retention.ms",
        7 * _DAY_MS,
        "How old metadata log and snapshots grow before they are deleted; -1 is no limit.",
        rule=_UNLIMITED_OR_MORE,
    ),
    int32(
        "metadata.max.idle.interval.ms",
        500,
        "How often an idle controller writes an empty record, so that others see it live; 0 is never.",
        rule=_FROM_0,
    ),
)

_TEST_HOOKS: Final = all_with(
    unsupported("it is a test hook of Kafka's"),
    int64(
        "internal.metadata.delete.delay.millis",
        60000,
        "How long deleted files of the metadata log stay on the disk.",
        internal=True,
    ),
    int32(
        "internal.metadata.log.segment.bytes", None, "Smaller segments of the metadata log.", internal=True
    ),
    int32(
        "internal.metadata.max.batch.size.in.bytes", 8 << 20, "The largest batch of metadata.", internal=True
    ),
)

_PERFORMANCE_LOG: Final = all_with(
    nothing_to_tune("the controller does not log how long its events take"),
    int64(
        "controller.performance.always.log.threshold.ms",
        2000,
        "From which duration on a controller's event is logged.",
        rule=_FROM_0,
        internal=True,
    ),
    int64(
        "controller.performance.sample.period.ms",
        60000,
        "How often the controller logs how long its events take.",
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
