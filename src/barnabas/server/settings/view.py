"""The effective value, the source and the synonyms of a setting: the content of DescribeConfigs.

A setting can be given at several levels, and some under several names. Its synonyms are all the places where
it is given, in order of precedence. As in Kafka, the list starts at the first entry with the setting's own
name: a topic's retention.ms does not list log.retention.hours unless log.retention.ms is given.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from barnabas.base.setting_rules import Value
from barnabas.base.settings import Setting, SettingType, format_value
from barnabas.base.values import value
from barnabas.server.settings.catalog import BROKER, CLIENT_METRICS, GROUP, find
from barnabas.server.settings.resources import GROUP_PREFIX
from barnabas.storage.config import LogConfig
from barnabas.storage.topic_settings import SETTINGS as TOPIC


class Source(IntEnum):
    """The source of a value; the numbers are those of DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


@value
class Given:
    """One place where a setting is given. The value of a sensitive setting is None."""

    name: str
    value: str | None
    source: Source


@value(kw_only=True)
class Shown:
    """One row of DescribeConfigs. The value of a sensitive setting is None."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    is_sensitive: bool
    type: SettingType
    synonyms: tuple[Given, ...]
    doc: str


_ROLL: Final = ("log.roll.ms", "log.roll.hours")
_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
# Names of the same broker setting, in order of precedence.
_SAME: Final = {
    **{name: same for same in (_ROLL, _JITTER, _RETENTION) for name in same},
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
_NODE_ID: Final = ("node.id", "broker.id")


def _defaults() -> dict[str, str]:
    shown = {name: format_value(one.default) for name, one in BROKER.items()}
    return {name: value for name, value in shown.items() if value is not None}


_DEFAULTS: Final = _defaults()


class SettingsView:
    """All levels of one broker's settings, all of them valid. Topic and group settings are layered over
    them."""

    def __init__(
        self, *, static: Mapping[str, str], cluster_wide: Mapping[str, str], per_broker: Mapping[str, str]
    ) -> None:
        self._static: Final = _with_both_ids(static)
        self._cluster_wide: Final = cluster_wide
        self._per_broker: Final = per_broker
        self._levels: Final = (
            (per_broker, Source.DYNAMIC_BROKER_CONFIG),
            (cluster_wide, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self._static, Source.STATIC_BROKER_CONFIG),
            (_DEFAULTS, Source.DEFAULT_CONFIG),
        )

    def broker(self) -> list[Shown]:
        """Every setting of this broker."""
        public = {name for name, one in BROKER.items() if not one.internal}
        names = public.union(self._static, self._cluster_wide, self._per_broker)
        return [self._broker_row(name) for name in sorted(names)]

    def cluster_wide(self) -> list[Shown]:
        """The settings that are set for all brokers."""
        return [self._cluster_wide_row(name, text) for name, text in sorted(self._cluster_wide.items())]

    def topic(self, own: Mapping[str, str]) -> list[Shown]:
        """Every setting of a topic that overrides `own`. InvalidSetting if one of these is invalid."""
        above = {**self._static, **self._cluster_wide, **self._per_broker}
        config = LogConfig.parse(own, above)
        return [
            self._row_above(one, own, getattr(config, one.attribute), Source.DYNAMIC_TOPIC_CONFIG)
            for one in TOPIC.values()
        ]

    def group(self, own: Mapping[str, str]) -> list[Shown]:
        """Every setting of a group that overrides `own`."""
        return [self._group_row(one, own) for one in GROUP.values()]

    def client_metrics(self, own: Mapping[str, str]) -> list[Shown]:
        """Every setting of a client metrics subscription that sets `own`; there is no other level."""
        return [_client_metrics_row(one, own) for one in CLIENT_METRICS.values()]

    def _broker_row(self, name: str) -> Shown:
        setting, synonyms = find(name), self._synonyms(name)
        source = synonyms[0].source if synonyms else Source.DEFAULT_CONFIG
        text = next((level[name] for level, _ in self._levels if name in level), None)
        value = None if text is None else format_value(setting.parse(text))
        return _shown(setting, value, source, synonyms, read_only=not setting.is_dynamic)

    def _cluster_wide_row(self, name: str, text: str) -> Shown:
        setting, source = find(name), Source.DYNAMIC_DEFAULT_BROKER_CONFIG
        synonyms = tuple(one for one in self._synonyms(name) if one.source is source)
        return _shown(setting, text, source, synonyms, read_only=not setting.is_dynamic)

    def _row_above(self, setting: Setting, own: Mapping[str, str], value: Value, source: Source) -> Shown:
        """A row of a topic setting, whose default is a broker setting."""
        shown = format_value(value)
        synonyms = self._synonyms(setting.synonyms[0].name) if setting.synonyms else ()
        if setting.name in own:
            synonyms = (Given(setting.name, shown, source), *synonyms)
        return _shown(setting, shown, synonyms[0].source if synonyms else Source.DEFAULT_CONFIG, synonyms)

    def _group_row(self, setting: Setting, own: Mapping[str, str]) -> Shown:
        above = GROUP_PREFIX + setting.name
        if above in BROKER:
            synonyms = self._synonyms(above)
        else:
            synonyms = (Given(setting.name, format_value(setting.default), Source.DEFAULT_CONFIG),)
        if setting.name in own:
            synonyms = (Given(setting.name, own[setting.name], Source.GROUP_CONFIG), *synonyms)
        return _shown(setting, synonyms[0].value, synonyms[0].source, synonyms)

    def _synonyms(self, name: str) -> tuple[Given, ...]:
        """All places where a broker setting is given, starting with its own name."""
        names = _SAME.get(name, (name,))
        found = [
            Given(one, None if find(one).sensitive else level[one], source)
            for level, source in self._levels
            for one in names
            if one in level
        ]
        while found and found[0].name != name:
            found.pop(0)
        return tuple(found)


def _shown(
    setting: Setting,
    value: str | None,
    source: Source,
    synonyms: tuple[Given, ...],
    *,
    read_only: bool = False,
) -> Shown:
    return Shown(
        name=setting.name,
        value=None if setting.sensitive else value,
        source=source,
        read_only=read_only,
        is_sensitive=setting.sensitive,
        type=setting.type,
        synonyms=synonyms,
        doc=setting.doc,
    )


def _client_metrics_row(setting: Setting, own: Mapping[str, str]) -> Shown:
    if setting.name not in own:
        # Unlike a group setting's, its default is not a synonym.
        return _shown(setting, format_value(setting.default), Source.DEFAULT_CONFIG, ())
    given = Given(setting.name, own[setting.name], Source.CLIENT_METRICS_CONFIG)
    return _shown(setting, given.value, given.source, (given,))


def _with_both_ids(static: Mapping[str, str]) -> dict[str, str]:
    """node.id and broker.id are the same number; both are shown, whichever was given."""
    given = [static[name] for name in _NODE_ID if name in static]
    return {**static, **{name: given[0] for name in _NODE_ID if given and name not in static}}
