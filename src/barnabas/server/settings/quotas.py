"""Quotas: over how many windows of which length they are measured."""

from typing import Final

from barnabas.server.settings.declare import ServerSetting, all_with, int32, java_class, unsupported


def _windows(prefix: str, what: str) -> tuple[ServerSetting, ServerSetting]:
    return (
        int32(f"{prefix}quota.window.num", 11, f"How many windows are remembered for {what}."),
        int32(f"{prefix}quota.window.size.seconds", 1, f"How long each window is for {what}."),
    )


SETTINGS: Final[tuple[ServerSetting, ...]] = all_with(
    unsupported("quotas are not built yet"),
    *_windows("", "the quotas of clients"),
    *_windows("controller.", "the quota of changes to topics"),
    *_windows("replication.", "throttled replication"),
    *_windows("alter.log.dirs.replication.", "moves between directories"),
    java_class("client.quota.callback.class", None, "A class that decides which quota holds for a client."),
)
