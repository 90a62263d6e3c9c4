"""Declaration of a broker setting: name, default, description and support in one call.

A broker setting extends base/settings.py (name, type, default, rule, support) by whether it can be changed
while the broker runs. The files beside this one declare all settings of Kafka 4.3, by theme; catalog.py joins
them. `Support` in base/settings.py has the rule for which values are accepted.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypedDict, Unpack

from barnabas.base.setting_rules import Rule, Value
from barnabas.base.settings import Setting, SettingType, Status, Support, parse_value

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


class Change(Enum):
    """Whether, and for whom, a setting can be changed while the broker runs. The values are Kafka's terms."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


# The reason for settings that are dynamic in Kafka but need a restart here.
UNTIL_RESTART: Final = "it is only read at startup"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSetting(Setting):
    """One declaration. DescribeConfigs does not show `internal` settings, as in Kafka.

    `fixed` is the reason why a setting that is dynamic in Kafka cannot be changed here without a restart.
    `required` settings have no default: the broker does not start without them.
    """

    change: Change = Change.READ_ONLY
    internal: bool = False
    fixed: str = ""
    required: bool = False

    @property
    def works(self) -> bool:
        return self.status.support is Support.WORKS

    @property
    def is_dynamic(self) -> bool:
        return self.change is not Change.READ_ONLY

    def parse(self, text: str) -> Value:
        value = parse_value(self.name, self.type, text)
        # Duplicate list entries are dropped, as in Kafka.
        value = tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value
        self._check(value, self.name, text)
        return value


class Options(TypedDict, total=False):
    """Optional arguments of a declaration."""

    rule: Rule | None
    change: Change
    status: Status
    internal: bool
    fixed: str
    required: bool


def boolean(name: str, default: bool, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.BOOLEAN, default, doc, options)


def int16(name: str, default: int, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.SHORT, default, doc, options)


def int32(name: str, default: int | None, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.INT, default, doc, options)


def int64(name: str, default: int | None, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.LONG, default, doc, options)


def double(name: str, default: float, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.DOUBLE, default, doc, options)


def string(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.STRING, default, doc, options)


def strings(
    name: str, default: tuple[str, ...] | None, doc: str, **options: Unpack[Options]
) -> ServerSetting:
    return _declare(name, SettingType.LIST, default, doc, options)


def java_class(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.CLASS, default, doc, options)


def password(name: str, doc: str, **options: Unpack[Options]) -> ServerSetting:
    return _declare(name, SettingType.PASSWORD, None, doc, options)


def _declare(name: str, kind: SettingType, default: Value, doc: str, options: Options) -> ServerSetting:
    rule = options.setdefault("rule", None)
    assert default is None or rule is None or rule.allows(default), f"{name}: its own default is refused"
    return ServerSetting(name=name, type=kind, default=default, synonyms=(), doc=doc, **options)


def all_with(status: Status, *declared: ServerSetting) -> tuple[ServerSetting, ...]:
    """These settings, with the given support status."""
    return tuple(replace(one, status=status) for one in declared)
