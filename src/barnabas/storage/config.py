"""The effective settings of one topic's logs: topic overrides, then broker settings, then defaults.

Equal configs are interned, so a broker has one object per distinct configuration instead of one for each of
its ten thousand partitions. topic_settings.py declares the settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakValueDictionary

from barnabas.base.settings import InvalidSetting, parse_settings
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
    """The constructor accepts every value; parse() only those that an operator may set."""

    @classmethod
    def parse(
        cls, overrides: Mapping[str, str], broker: Mapping[str, str] = MappingProxyType({})
    ) -> "LogConfig":
        """Resolve each setting: topic value, else broker value, else default. InvalidSetting if a name is
        unknown or a value is not allowed."""
        config = cls(**parse_settings(SETTINGS, overrides, broker))
        _check_together(config)
        return _shared.setdefault(config._values(), config)

    @property
    def compacts(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return DELETE in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether records get their timestamp from the broker on append."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled. A compacted topic rolls in time for max.compaction.lag.ms."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, one.name) for one in fields(self))


_shared: Final[WeakValueDictionary[tuple[Any, ...], LogConfig]] = WeakValueDictionary()


def _check_together(config: LogConfig) -> None:
    lag, most = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if lag > most:
        raise InvalidSetting("min.compaction.lag.ms", str(lag), f"is above max.compaction.lag.ms={most}")
    if config.remote_storage_enable:
        # Rejected even for an existing topic: part of its log is in remote storage, which we cannot read.
        raise InvalidSetting("remote.storage.enable", "true", NO_REMOTE_STORAGE.reason)
