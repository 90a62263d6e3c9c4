"""The page of the reference about settings, made from the declarations.

docs/reference/settings.md is what settings_page() returns; a test compares them and says how to write it.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.base.settings import Setting, format_value
from barnabas.server.settings.catalog import CLIENT_METRICS, GROUP, THEMES
from barnabas.server.settings.declare import Change, ServerSetting, Support
from barnabas.storage.topic_settings import SETTINGS as TOPIC

_INTRODUCTION: Final = """\
# Settings

Made from the declarations in the code; a test keeps it current. The names, types and defaults are those of
Kafka 4.3.

A broker reads its settings from a properties file. Some can be changed while it runs, by every Kafka admin
client: **cluster-wide** ones for all brokers or for one, **per-broker** ones for one. Of several places where
a setting is given, the nearest counts: what is set for this broker, then for all brokers, then the
properties file, then the default.

A setting that is accepted works. An unknown one is refused, with the nearest name as a hint. One that does
not work is refused with the reason, unless its value is the default, which changes nothing. Settings that
work *later* are accepted with a warning, so that a file made for Kafka can be used as it is: what they are
for does not exist yet.
"""
_HEAD: Final = "| name | type | default | change | works | what it is for |\n|---|---|---|---|---|---|\n"
_LONG: Final = 2**63 - 1
_INT: Final = 2**31 - 1
_DOUBLE_MAX: Final = "1.7976931348623157E308"
_NO_REMOTE: Final = "no: this broker has no remote storage"
_NO_THROTTLE: Final = "later: traffic between replicas cannot be throttled yet"
# Of topics: storage declares these, because topics have them in Kafka's metadata, and does nothing with them.
_TOPIC_WITHOUT_EFFECT: Final = {
    "follower.replication.throttled.replicas": _NO_THROTTLE,
    "leader.replication.throttled.replicas": _NO_THROTTLE,
    "local.retention.bytes": _NO_REMOTE,
    "local.retention.ms": _NO_REMOTE,
    "remote.log.copy.disable": _NO_REMOTE,
    "remote.log.delete.on.disable": _NO_REMOTE,
    "remote.storage.enable": _NO_REMOTE,
}


def settings_page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for title, settings in THEMES.items():
        parts.append(
            _section(title, (_broker_row(one) for one in sorted(settings, key=lambda one: one.name)))
        )
    parts.append(_section("Settings of a topic", (_topic_row(one) for one in TOPIC.values())))
    parts.append(_section("Settings of a group", map(_broker_row, GROUP.values())))
    parts.append(
        _section("Settings of a subscription to clients' metrics", map(_broker_row, CLIENT_METRICS.values()))
    )
    return "\n".join(parts)


def _section(title: str, rows: Iterable[str]) -> str:
    return f"## {title}\n\n{_HEAD}{''.join(rows)}"


def _broker_row(one: ServerSetting) -> str:
    return _row(one, _default(one), _change(one), _support(one))


def _topic_row(one: Setting) -> str:
    names = ", ".join(f"`{synonym.name}`" for synonym in one.synonyms)
    default = _default(one) + (f", or the broker's {names}" if names else "")
    return _row(one, default, "any time", _TOPIC_WITHOUT_EFFECT.get(one.name, "yes"))


def _row(one: Setting, default: str, change: str, works: str) -> str:
    return f"| `{one.name}` | {one.type.label} | {default} | {change} | {works} | {one.doc} |\n"


def _change(one: ServerSetting) -> str:
    if one.change is Change.READ_ONLY or one.fixed:
        return "at start"
    mode: str = one.change.value
    return mode


def _support(one: ServerSetting) -> str:
    match one.status.support:
        case Support.WORKS:
            return "yes"
        case Support.LATER:
            return f"later: {one.status.reason}"
        case Support.UNSUPPORTED:
            return f"no: {one.status.reason}"


def _default(one: Setting) -> str:
    if isinstance(one, ServerSetting) and one.required:
        return "must be set"
    shown = format_value(one.default)
    if shown is None:
        return "none"
    if one.default in (_LONG, _INT) or shown == _DOUBLE_MAX:
        return f"{shown} (no limit)"
    return f"`{shown}`" if shown else "empty"
