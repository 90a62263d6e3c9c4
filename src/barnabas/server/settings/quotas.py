"""Quotas: over how many windows of which length they are measured."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.setting_support import nothing_to_tune, unsupported
from barnabas.server.settings.declare import ServerSetting, all_with, int32, java_class


def _windows(prefix: str, what: str) -> tuple[ServerSetting, ServerSetting]:
    return (
        int32(
            f"{prefix}quota.window.num", 11, f"How many windows are remembered for {what}.", rule=at_least(1)
        ),
        int32(
            f"{prefix}quota.window.size.seconds", 1, f"How long each window is for {what}.", rule=at_least(1)
        ),
    )


SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        nothing_to_tune("the broker refuses requests to set a quota"),
        *_windows("", "the quotas of clients"),
        *_windows("controller.", "the quota of changes to topics"),
        *_windows("replication.", "throttled replication"),
        *_windows("alter.log.dirs.replication.", "moves between directories"),
    ),
    *all_with(
        unsupported("it names a Java class, which this broker cannot load"),
        java_class(
            "client.quota.callback.class", None, "A class that decides which quota holds for a client."
        ),
    ),
)
