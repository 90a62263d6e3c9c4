"""Subscriptions by regular expression: RE2 syntax, matched against whole topic names, in linear time.

Kafka has an executor resolve them and takes the result in later; here it is done at once, so that a member
gets its partitions with the heartbeat in which it joins. Internal topics are matched like any other.
"""

from collections.abc import Iterable
from typing import Any, Final

from barnabas.base.re2_patterns import NotRe2, compile_re2
from barnabas.coordinators.group.consumer.subscriptions import ResolvedRegex, Subscriptions
from barnabas.coordinators.group.errors import GroupError
from barnabas.protocol.error_codes import ErrorCode

# What was resolved is not looked at again before this time has passed, whatever topics are made.
REFRESH_INTERVAL_MS_MIN: Final = 10_000


def check_regex(regex: str) -> None:
    _compiled(regex)


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """The names that it matches. One that a later release took and we cannot read matches none."""
    try:
        matches = _compiled(regex).fullmatch
    except GroupError:
        return frozenset()
    return frozenset(name for name in names if matches(name))


def refresh_is_due(subscriptions: Subscriptions, *, new_since: int, now_ms: int, interval_ms: int) -> bool:
    """Whether topics were made since the expressions were resolved, or it is long ago.

    All of a group are resolved together, so that any one stands for all.
    """
    last: ResolvedRegex = next(iter(subscriptions.resolved.values()))
    if now_ms <= last.time_ms + REFRESH_INTERVAL_MS_MIN:
        return False
    return last.version < new_since or now_ms > last.time_ms + interval_ms


def _compiled(regex: str) -> Any:
    try:
        return compile_re2(regex)
    except NotRe2 as error:
        raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{error}.") from None
