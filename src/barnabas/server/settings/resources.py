"""Settings of single groups and of client metrics subscriptions."""

import re
from typing import Final

from barnabas.base.setting_rules import Rule, at_least, one_of
from barnabas.base.settings import WORKS, Status, nothing_to_tune, unsupported
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
_SHARE_GROUPS: Final = nothing_to_tune("the broker does not support share groups")
_STREAMS_GROUPS: Final = nothing_to_tune("the broker does not support streams groups")
# A non-negative ISO 8601 duration as Java parses it: PT1H30M.
_DURATION: Final = r"P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?"
_RESET: Final = re.compile(f"latest|earliest|by_duration:(?i:{_DURATION})")
# The broker setting with a group setting's default has the same name with this prefix.
GROUP_PREFIX: Final = "group."


def _number(status: Status, name: str, default: int, doc: str, rule: Rule) -> ServerSetting:
    return int32(name, default, doc, rule=rule, change=_DYNAMIC, status=status)


GROUP: Final[tuple[ServerSetting, ...]] = (
    _number(
        WORKS,
        "consumer.assignment.interval.ms",
        1000,
        "Minimum time between two computations of the group's assignment.",
        _FROM_0,
    ),
    _number(WORKS, "consumer.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", _POSITIVE),
    _number(
        WORKS,
        "consumer.session.timeout.ms",
        45000,
        "Time without a heartbeat after which a member is removed.",
        _POSITIVE,
    ),
    _number(
        _SHARE_GROUPS,
        "share.assignment.interval.ms",
        1000,
        "Minimum time between two computations of the group's assignment.",
        _FROM_0,
    ),
    *all_with(
        _SHARE_GROUPS,
        string(
            "share.auto.offset.reset",
            "latest",
            "Start offset of a new group: latest, earliest, or by_duration: followed by an ISO 8601 "
            "duration before now.",
            rule=Rule(
                "latest, earliest or by_duration:PnDTnHnMnS",
                lambda value: isinstance(value, str) and _RESET.fullmatch(value) is not None,
            ),
            change=_DYNAMIC,
        ),
        string(
            "share.isolation.level",
            "read_uncommitted",
            "Isolation level: read_uncommitted also delivers records of open and aborted transactions.",
            rule=one_of("read_committed", "read_uncommitted"),
            change=_DYNAMIC,
        ),
        boolean(
            "share.renew.acknowledge.enable",
            True,
            "Allow members to extend the lock of a record.",
            change=_DYNAMIC,
        ),
    ),
    _number(
        _SHARE_GROUPS,
        "share.delivery.count.limit",
        5,
        "Maximum number of delivery attempts of a record.",
        at_least(2),
    ),
    _number(_SHARE_GROUPS, "share.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", _POSITIVE),
    _number(
        _SHARE_GROUPS,
        "share.partition.max.record.locks",
        2000,
        "Maximum number of locked records per partition.",
        at_least(100),
    ),
    _number(
        _SHARE_GROUPS,
        "share.record.lock.duration.ms",
        30000,
        "Time a member may hold the lock of a record.",
        at_least(1000),
    ),
    _number(
        _SHARE_GROUPS,
        "share.session.timeout.ms",
        45000,
        "Time without a heartbeat after which a member is removed.",
        _POSITIVE,
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.assignment.interval.ms",
        1000,
        "Minimum time between two computations of the group's assignment.",
        _FROM_0,
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.heartbeat.interval.ms",
        5000,
        "Heartbeat interval of members.",
        _POSITIVE,
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.initial.rebalance.delay.ms",
        3000,
        "Time a new group waits for more members before its first rebalance.",
        _FROM_0,
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.num.standby.replicas",
        0,
        "Number of standby replicas of each task.",
        _FROM_0,
    ),
    _number(
        _STREAMS_GROUPS,
        "streams.session.timeout.ms",
        45000,
        "Time without a heartbeat after which a member is removed.",
        _POSITIVE,
    ),
)

CLIENT_METRICS: Final[tuple[ServerSetting, ...]] = all_with(
    unsupported("client metrics are not collected yet"),
    int32("interval.ms", 300000, "Interval at which a client pushes its metrics.", change=_DYNAMIC),
    strings("match", (), "Clients that the subscription applies to, as property=pattern.", change=_DYNAMIC),
    strings("metrics", (), "Prefixes of the names of the metrics to push.", change=_DYNAMIC),
)
