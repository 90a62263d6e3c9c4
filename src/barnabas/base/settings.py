"""Declare, parse, validate and format settings by Kafka's rules.

A package declares its settings as fields of a frozen dataclass, one setting() each, with Kafka's name, type,
default, rule and documentation. settings_of() returns the declarations by name. Parsing, DescribeConfigs and
the reference page all use them, so there is no second list. This module knows nothing about topics or
brokers. Rules for values are in setting_rules.py.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final

from barnabas.base.errors import Malformed
from barnabas.base.setting_rules import Rule, Value
from barnabas.base.values import value


class Support(Enum):
    """How far a setting of Kafka's is supported.

    The question that decides: could an operator who sets it observe that we ignore it? If so, it has to work
    or be refused. Setting.parse_supported() applies this, to a properties file and to a request alike.
    """

    # The setting is acted on.
    WORKS = "supported"
    # The setting only tunes a mechanism of Kafka's that does not exist here. Every valid value is accepted,
    # because no client could tell one from another.
    NOTHING_TO_TUNE = "nothing to tune"
    # Only the default is accepted: another value asks for behaviour that does not exist here.
    UNSUPPORTED = "not supported"


@value
class Status:
    """`reason` tells users why a setting has no effect; it is empty for one that works."""

    support: Support
    reason: str = ""


WORKS: Final = Status(Support.WORKS)


def nothing_to_tune(reason: str) -> Status:
    return Status(Support.NOTHING_TO_TUNE, reason)


def unsupported(reason: str) -> Status:
    return Status(Support.UNSUPPORTED, reason)


# More digits than any valid number has; longer input is refused before it is converted.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,64}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([eE][+-]?[0-9]{1,4})?[dDfF]?")
_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
# As Java's trim(): the blank and all characters below it.
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_BITS: Final = {"INT": 32, "SHORT": 16, "LONG": 64}
_SHOWN_MAX: Final = 100
# Seventeen digits identify every double.
_DOUBLE_DIGITS: Final = 17
_KEY: Final = "setting"


class SettingType(Enum):
    """Kafka's types, with the numbers of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @property
    def label(self) -> str:
        return self.name.lower()


class InvalidSetting(Malformed):
    """An unknown setting, or an invalid value."""

    def __init__(self, name: str, value: str, what: str) -> None:
        shown = value if len(value) <= _SHOWN_MAX else value[:_SHOWN_MAX] + "..."
        super().__init__(what, where=f"{name}={shown}")
        self.name = name
        self.value = value


class UnknownSetting(InvalidSetting):
    """A name that no setting has; `nearest` is the most similar existing name."""

    def __init__(self, name: str, value: str, nearest: str | None) -> None:
        super().__init__(name, value, "no such setting" + (f"; did you mean {nearest}?" if nearest else ""))
        self.nearest = nearest


@value(kw_only=True)
class Synonym:
    """Another name for a setting at a higher level, such as the broker's, possibly in a larger unit."""

    name: str
    type: SettingType
    times: int = 1
    # Lower values are raised to this.
    floor: int | None = None
    rule: Rule | None = None

    def parse(self, text: str) -> Value:
        value = parse_value(self.name, self.type, text)
        if isinstance(value, int) and not isinstance(value, bool):
            value *= self.times
            value = value if self.floor is None else max(value, self.floor)
        if self.rule is not None and not self.rule.allows(value):
            raise InvalidSetting(self.name, text, f"must be {self.rule.text}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One declaration. `synonyms` are tried in order."""

    name: str
    type: SettingType
    default: Value
    rule: Rule | None
    synonyms: tuple[Synonym, ...]
    doc: str
    status: Status = WORKS

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def sensitive(self) -> bool:
        return self.type is SettingType.PASSWORD

    def parse(self, text: str) -> Value:
        value = parse_value(self.name, self.type, text)
        self._check(value, self.name, text)
        return value

    def parse_supported(self, text: str) -> Value:
        """Parse a requested value: an unsupported setting may only have its default."""
        value = self.parse(text)
        if self.status.support is Support.UNSUPPORTED and value != self.default:
            raise self.refusal(text, self.status.reason)
        return value

    def refusal(self, text: str, why: str) -> InvalidSetting:
        return InvalidSetting(self.name, "(hidden)" if self.sensitive else text, why)

    def parse_synonym(self, given: Mapping[str, str]) -> Value:
        """The value of the first synonym that is given, None if there is none."""
        for synonym in self.synonyms:
            text = given.get(synonym.name)
            if text is not None:
                value = synonym.parse(text)
                self._check(value, synonym.name, text)
                return value
        return None

    def _check(self, value: Value, name: str, text: str) -> None:
        if self.rule is not None and not self.rule.allows(value):
            raise InvalidSetting(name, "(hidden)" if self.sensitive else text, f"must be {self.rule.text}")


def setting(
    name: str,
    kind: SettingType,
    default: Value,
    doc: str,
    *,
    rule: Rule | None = None,
    synonyms: tuple[Synonym, ...] = (),
    status: Status = WORKS,
) -> Any:
    """Declare a dataclass field as a setting. The field has the setting's name, with `_` for `.`."""
    assert default is None or rule is None or rule.allows(default), f"{name}: rule refuses the default"
    declared = Setting(
        name=name, type=kind, default=default, rule=rule, synonyms=synonyms, doc=doc, status=status
    )
    return field(default=default, metadata={_KEY: declared})


def settings_of(declaring: type) -> dict[str, Setting]:
    """The settings that a dataclass declares, by Kafka's names, in the order of declaration."""
    found: dict[str, Setting] = {}
    for one in fields(declaring):
        declared: Setting = one.metadata[_KEY]
        assert declared.attribute == one.name, f"{one.name} declares {declared.name}"
        found[declared.name] = declared
    return found


def parse_settings(
    declared: Mapping[str, Setting], given: Mapping[str, str], above: Mapping[str, str]
) -> dict[str, Any]:
    """Values, by field name, of settings that are set: by name in `given`, or by a synonym in `above`.

    An unknown name in `given` is an error. `above` has the settings of a higher level, most of no relevance.
    """
    for name, text in given.items():
        if name not in declared:
            raise UnknownSetting(name, text, nearest(name, declared))
    values: dict[str, Any] = {}
    for name, one in declared.items():
        own = given.get(name)
        value = one.parse(own) if own is not None else one.parse_synonym(above) if above else None
        if value is not None:
            values[one.attribute] = value
    return values


def parse_value(name: str, kind: SettingType, text: str) -> Value:
    """Parse a text as Kafka does; InvalidSetting if it does not have the type."""
    trimmed = text.strip(_TRIMMED)
    match kind:
        case SettingType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise InvalidSetting(name, text, "must be true or false")
            return trimmed.lower() == "true"
        case SettingType.INT | SettingType.SHORT | SettingType.LONG:
            bits = _BITS[kind.name]
            number = int(trimmed) if _WHOLE.fullmatch(trimmed) else None
            if number is None or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
                raise InvalidSetting(name, text, f"must be a {bits}-bit integer")
            return number
        case SettingType.DOUBLE:
            decimal = float(trimmed.rstrip("dDfF")) if _DECIMAL.fullmatch(trimmed) else None
            if decimal is None or decimal in (float("inf"), float("-inf")):
                raise InvalidSetting(name, text, "must be a number")
            return decimal
        case SettingType.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case SettingType.STRING | SettingType.CLASS | SettingType.PASSWORD:
            return trimmed


def format_value(value: Value) -> str | None:
    """The text that Kafka shows for a value."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _format_double(value)
        case tuple():
            return ",".join(value)


def _format_double(value: float) -> str:
    """As Java's Double.toString(): always with a point, with an exponent outside of 0.001 to 10 million."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    for precision in range(1, _DOUBLE_DIGITS):
        digits, _, exponent = f"{value:.{precision}e}".partition("e")
        if float(f"{digits}e{exponent}") == value:
            break
    return f"{digits}E{int(exponent)}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name, whatever its case; None if no name is similar."""
    # Imported here because only error messages need it.
    from difflib import get_close_matches

    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None
