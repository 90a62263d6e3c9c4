"""What holds for the logs of one topic: its own settings, behind them the broker's, behind them the defaults.

Equal configs are one object. So a broker keeps as many as there are topics that differ, not one for each of
its ten thousand partitions. The settings themselves are declared in topic_settings.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakValueDictionary

from barnabas.base.settings import InvalidSetting, format_value, parse_settings
from barnabas.storage.topic_settings import (
    COMPACT,
    DELETE,
    LOG_APPEND_TIME,
    NO_REMOTE_STORAGE,
    SETTINGS,
    TopicSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class LogConfig(TopicSettings):
    """The constructor takes every value; parse() only what an operator may set."""

    @classmethod
    def parse(
        cls, overrides: Mapping[str, str], broker: Mapping[str, str] = MappingProxyType({})
    ) -> "LogConfig":
        """What the topic sets, otherwise what the broker sets, otherwise the default. InvalidSetting if a
        name is unknown or a value not allowed."""
        config = cls(**parse_settings(SETTINGS, overrides, broker))
        _check_together(config)
        return _shared.setdefault(config._values(), config)

    def to_strings(self) -> dict[str, str]:
        """Every setting, by Kafka's name, as Kafka shows it."""
        shown = {name: format_value(getattr(self, one.attribute)) for name, one in SETTINGS.items()}
        return {name: value for name, value in shown.items() if value is not None}

    @property
    def compacts(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return DELETE in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether records get the time of their being appended."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @property
    def max_segment_ms(self) -> int:
        """When a segment has to be rolled: only what is rolled can be compacted."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, one.name) for one in fields(self))


_shared: Final[WeakValueDictionary[tuple[Any, ...], LogConfig]] = WeakValueDictionary()


def _check_together(config: LogConfig) -> None:
    lag, most = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if lag > most:
        raise InvalidSetting("min.compaction.lag.ms", str(lag), f"is above max.compaction.lag.ms={most}")
    if config.remote_storage_enable:
        # Not only refused to those who ask for it: part of such a topic's log is where we cannot read it.
        raise InvalidSetting("remote.storage.enable", "true", NO_REMOTE_STORAGE.reason)
