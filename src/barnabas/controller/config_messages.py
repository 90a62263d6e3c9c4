"""Error messages for topic settings in Kafka's words, which clients show to users."""

from typing import Final

from barnabas.base.setting_rules import Rule, Value
from barnabas.base.settings import InvalidSetting, SettingType, format_value, parse_value
from barnabas.storage.topic_settings import SETTINGS

_NUMBERS: Final = (SettingType.INT, SettingType.SHORT, SettingType.LONG, SettingType.DOUBLE)
# Texts of the rules in setting_rules.py that Kafka phrases differently.
_ONE_OF: Final = "one of "
_LIST_OF: Final = "a list of "
_AT_MOST_ONCE: Final = ", each at most once"
_BETWEEN: Final = "between "


def message_of(wrong: InvalidSetting) -> str:
    """The complete message, in our own words where Kafka has none."""
    setting = SETTINGS.get(wrong.name)
    value: object = wrong.value
    why = wrong.what
    if setting is not None:
        try:
            parsed = parse_value(wrong.name, setting.type, wrong.value)
        except InvalidSetting:
            why = _not_of_type(setting.type) or why
        else:
            value = format_value(parsed)
            if setting.rule is not None and not setting.rule.allows(parsed):
                value = _first_invalid(setting.rule, parsed) or value
                why = _not_allowed(setting.rule, parsed)
    return f"Invalid value {value} for configuration {wrong.name}: {why}"


def _not_of_type(kind: SettingType) -> str | None:
    if kind in _NUMBERS:
        return f"Not a number of type {kind.name}"
    return "Expected value to be either true or false" if kind is SettingType.BOOLEAN else None


def _first_invalid(rule: Rule, value: Value) -> str | None:
    """The first invalid entry of a list."""
    if isinstance(value, tuple) and rule.text.startswith(_LIST_OF):
        return next((one for one in value if not rule.allows((one,))), None)
    return None


def _not_allowed(rule: Rule, value: Value) -> str:
    text = rule.text
    if text.startswith(_ONE_OF):
        return f"String must be one of: {text.removeprefix(_ONE_OF)}"
    if text.startswith(_LIST_OF):
        names = text.removeprefix(_LIST_OF).removesuffix(_AT_MOST_ONCE)
        return f"String must be one of: {names}"
    if text.startswith(_BETWEEN) and " or " not in text:
        least, _, most = text.removeprefix(_BETWEEN).partition(" and ")
        below = isinstance(value, int | float) and value < float(least)
        return f"Value must be at least {least}" if below else f"Value must be no more than {most}"
    return f"Value must be {text.replace(' or -1', ' or equal to -1')}"
