"""Settings of single groups, and of subscriptions to the metrics of clients."""

import re
from typing import Final

from barnabas.base.setting_rules import Rule, at_least, one_of
from barnabas.base.setting_support import WORKS, Status, nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    boolean,
    int32,
    string,
    strings,
)

_POSITIVE: Final = at_least(1)
_FROM_0: Final = at_least(0)
_DYNAMIC: Final = Change.CLUSTER_WIDE
_SHARE_GROUPS: Final = nothing_to_tune("the broker refuses the requests of share groups")
_STREAMS_GROUPS: Final = nothing_to_tune("the broker refuses the requests of streams groups")
# A duration as Java writes it, that is not negative: PT1H30M.
_DURATION: Final = r"P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?"
_RESET: Final = re.compile(f"latest|earliest|by_duration:(?i:{_DURATION})")
# The broker's setting that a group falls back on has the same name with this before it.
GROUP_PREFIX: Final = "group."


def _number(status: Status, name: str, default: int, doc: str, rule: Rule) -> ServerSetting:
    return int32(name, default, doc, rule=rule, change=_DYNAMIC, status=status)


GROUP: Final[tuple[ServerSetting, ...]] = (
    _number(
        WORKS, "consumer.assignment.interval.ms", 1000, "How long an assignment is kept at least.", _FROM_0
    ),
    _number(WORKS, "consumer.heartbeat.interval.ms", 5000, "How often members send heartbeats.", _POSITIVE),
    _number(
        WORKS, "consumer.session.timeout.ms", 45000, "After how long a silent member is dead.", _POSITIVE
    ),
    _number(
        _SHARE_GROUPS,
        "share.assignment.interval.ms",
        1000,
        "How long an assignment is kept at least.",
        _FROM_0,
    ),
    *all_with(
        _SHARE_GROUPS,
        string(
            "share.auto.offset.reset",
            "latest",
            "Where a group begins: latest, earliest, or by_duration: and how long ago.",
            rule=Rule(
                "latest, earliest or by_duration:PnDTnHnMnS",
                lambda value: isinstance(value, str) and _RESET.fullmatch(value) is not None,
            ),
            change=_DYNAMIC,
        ),
        string(
            "share.isolation.level",
            "read_uncommitted",
            "Whether records of unfinished transactions are handed out.",
            rule=one_of("read_committed", "read_uncommitted"),
            change=_DYNAMIC,
        ),
        boolean(
            "share.renew.acknowledge.enable",
            True,
            "Whether a member may ask for more time for a record.",
            change=_DYNAMIC,
        ),
    ),
    _number(_SHARE_GROUPS, "share.delivery.count.limit", 5, "How often a record is handed out.", at_least(2)),
    _number(
        _SHARE_GROUPS, "share.heartbeat.interval.ms", 5000, "How often members send heartbeats.", _POSITIVE
    ),
    _number(
        _SHARE_GROUPS,
        "share.partition.max.record.locks",
        2000,
        "How many records of a partition may be out.",
        at_least(100),
    ),
    _number(
        _SHARE_GROUPS,
        "share.record.lock.duration.ms",
        30000,
        "How long a member has for a record.",
        at_least(1000),
    ),
    _number(
        _SHARE_GROUPS, "share.session.timeout.ms", 45000, "After how long a silent member is dead.", _POSITIVE
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.assignment.interval.ms",
        1000,
        "How long an assignment is kept at least.",
        _FROM_0,
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.heartbeat.interval.ms",
        5000,
        "How often members send heartbeats.",
        _POSITIVE,
    ),
    _number(
        _STREAMS_GROUPS, "streams.initial.rebalance.delay.ms", 3000, "How long a new group waits.", _FROM_0
    ),
    _number(_STREAMS_GROUPS, "streams.num.standby.replicas", 0, "How many standbys each task has.", _FROM_0),
    _number(
        _STREAMS_GROUPS,
        "streams.session.timeout.ms",
        45000,
        "After how long a silent member is dead.",
        _POSITIVE,
    ),
)

CLIENT_METRICS: Final[tuple[ServerSetting, ...]] = all_with(
    unsupported("metrics of clients are not collected yet"),
    int32("interval.ms", 300000, "How often a client pushes its metrics.", change=_DYNAMIC),
    strings("match", (), "Which clients are meant, as property=pattern.", change=_DYNAMIC),
    strings("metrics", (), "The beginnings of the names of metrics to push.", change=_DYNAMIC),
)
