"""The settings reference page, generated from the declarations.

docs/reference/settings.md is the result of settings_page(). A test compares them and says how to regenerate
it.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.base.settings import Setting, Support, format_value
from barnabas.server.settings.catalog import CLIENT_METRICS, GROUP, THEMES
from barnabas.server.settings.declare import Change, ServerSetting
from barnabas.storage.topic_settings import SETTINGS as TOPIC

_INTRODUCTION: Final = """\
# Settings

Generated from the declarations in the code; a test keeps it current. Names, types and defaults are those of
Kafka 4.3.

A broker reads its settings from a properties file. Any Kafka admin client can change some of them while the
broker runs: **cluster-wide** settings for all brokers or a single one, **per-broker** settings only for a
single broker. The value set for this broker takes precedence over the value set for all brokers, then the
properties file, then the default.

No setting is accepted and then ignored. The column *works* shows how far it is supported:

- **yes**: the setting is supported.
- **nothing to tune**: the setting only tunes a mechanism of Kafka that this broker does not have, such as a
  thread pool. Every valid value is accepted and shown, and makes no observable difference.
- **no**: only the default is accepted. Any other value is refused, with the reason in the column.

The same rules apply to the properties file and to requests that change a setting. Values that Kafka refuses
are refused here as well. For an unknown name the error suggests the nearest known one.
"""
_HEAD: Final = "| name | type | default | change | works | description |\n|---|---|---|---|---|---|\n"
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
    parts.append(_section("Topic settings", (_topic_row(one) for one in TOPIC.values())))
    parts.append(_section("Group settings", map(_broker_row, GROUP.values())))
    parts.append(
        _section("Settings of a client metrics subscription", map(_broker_row, CLIENT_METRICS.values()))
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
