"""Quotas: number and length of the measurement windows."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.settings import nothing_to_tune, unsupported
from barnabas.server.settings.declare import ServerSetting, all_with, int32, java_class


def _windows(prefix: str, what: str) -> tuple[ServerSetting, ServerSetting]:
    return (
        int32(
            f"{prefix}quota.window.num", 11, f"Number of windows kept to measure {what}.", rule=at_least(1)
        ),
        int32(
            f"{prefix}quota.window.size.seconds",
            1,
            f"Length of a window that measures {what}.",
            rule=at_least(1),
        ),
    )


SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        nothing_to_tune("the broker does not support quotas"),
        *_windows("", "client quotas"),
        *_windows("controller.", "the controller mutation quota"),
        *_windows("replication.", "throttled replication"),
        *_windows("alter.log.dirs.replication.", "replication between log directories"),
    ),
    *all_with(
        unsupported("it names a Java class, which this broker cannot load"),
        java_class("client.quota.callback.class", None, "Class that determines the quota of a client."),
    ),
)
