"""The page of the reference about settings, made from the declarations.

docs/reference/settings.md is what settings_page() returns; a test compares them and says how to write it.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.base.setting_support import Support
from barnabas.base.settings import Setting, format_value
from barnabas.server.settings.catalog import CLIENT_METRICS, GROUP, THEMES
from barnabas.server.settings.declare import Change, ServerSetting
from barnabas.storage.topic_settings import SETTINGS as TOPIC

_INTRODUCTION: Final = """\
# Settings

Made from the declarations in the code; a test keeps it current. The names, types and defaults are those of
Kafka 4.3.

A broker reads its settings from a properties file. Some can be changed while it runs, by every Kafka admin
client: **cluster-wide** ones for all brokers or for one, **per-broker** ones for one. Of several places where
a setting is given, the nearest counts: what is set for this broker, then for all brokers, then the
properties file, then the default.

A setting that is accepted can be relied on. The column *works* says how:

- **yes**: the broker acts on it.
- **nothing to tune**: it only tunes a mechanism of Kafka's that this broker does not have, such as a pool of
  threads. Every valid value is accepted and shown, and no client can tell one from another.
- **no**: a value other than the default asks for something that the broker does not do. It is refused, with
  the reason that the column gives.

The rule is the same for the properties file and for requests to change a setting. A value that Kafka refuses
is refused here as well. So is an unknown name, with the nearest one as a hint.
"""
_HEAD: Final = "| name | type | default | change | works | what it is for |\n|---|---|---|---|---|---|\n"
_LONG: Final = 2**63 - 1
_INT: Final = 2**31 - 1
_DOUBLE_MAX: Final = "1.7976931348623157E308"


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
    return _row(one, _default(one), _change(one))


def _topic_row(one: Setting) -> str:
    names = ", ".join(f"`{synonym.name}`" for synonym in one.synonyms)
    default = _default(one) + (f", or the broker's {names}" if names else "")
    return _row(one, default, "any time")


def _row(one: Setting, default: str, change: str) -> str:
    return f"| `{one.name}` | {one.type.label} | {default} | {change} | {_support(one)} | {one.doc} |\n"


def _change(one: ServerSetting) -> str:
    if one.change is Change.READ_ONLY or one.fixed:
        return "at start"
    mode: str = one.change.value
    return mode


def _support(one: Setting) -> str:
    match one.status.support:
        case Support.WORKS:
            return "yes"
        case Support.NOTHING_TO_TUNE:
            return f"nothing to tune: {one.status.reason}"
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
