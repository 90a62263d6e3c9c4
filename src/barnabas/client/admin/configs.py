"""Types for configs: resources, entries and changes, used by config_calls.py and its callers."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.base.settings import SettingType
from barnabas.base.values import value
from barnabas.client.settings import setting_text
from barnabas.protocol.messages.configs import DescribeConfigsResourceResult
from barnabas.protocol.messages.topics import CreatableTopicConfigs

_ID_DIGITS_MAX: Final = 10


class ResourceType(IntEnum):
    """Types of resources that have configs, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """A resource with configs. A broker is named by its id; the empty name means all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} {self.name}" if self.name else f"every {kind}"

    @property
    def node(self) -> int | None:
        """The broker that must receive the request; None: any broker."""
        is_of_broker = self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        is_id = self.name.isascii() and self.name.isdigit() and len(self.name) <= _ID_DIGITS_MAX
        # Any broker rejects an invalid broker name.
        return int(self.name) if is_of_broker and is_id else None


def topic_resource(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def broker_resource(node: int | None) -> Resource:
    """Return the resource of one broker, or of the cluster-wide default (None)."""
    return Resource(ResourceType.BROKER, "" if node is None else str(node))


class ConfigSource(IntEnum):
    """The source of a value, with Kafka's names."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    """One level at which a config is set; the first in the list is effective."""

    name: str
    value: str | None
    source: ConfigSource


@value(kw_only=True)
class ConfigEntry:
    """One config. Sensitive values are never returned; old brokers return no type."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: SettingType | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class ConfigOperation(IntEnum):
    """The kind of a change. The last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    name: str
    operation: ConfigOperation
    # None with DELETE.
    value: str | None


def changes_of(
    *,
    set_to: Mapping[str, object],
    delete: Iterable[str],
    append: Mapping[str, object],
    subtract: Mapping[str, object],
) -> list[ConfigChange]:
    """Return the list of changes for alter_config()."""
    changes = [ConfigChange(name, ConfigOperation.DELETE, None) for name in delete]
    for operation, values in (
        (ConfigOperation.SET, set_to),
        (ConfigOperation.APPEND, append),
        (ConfigOperation.SUBTRACT, subtract),
    ):
        changes += [
            ConfigChange(name, operation, setting_text(name, value)) for name, value in values.items()
        ]
    return changes


def entry_of(entry: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=_source(entry.config_source),
        read_only=entry.read_only,
        sensitive=entry.is_sensitive,
        type=_TYPES.get(entry.config_type),
        synonyms=tuple(ConfigSynonym(one.name, one.value, _source(one.source)) for one in entry.synonyms),
        # Old brokers return no documentation, which decodes as an empty text.
        documentation=entry.documentation or None,
    )


def entry_of_new_topic(entry: CreatableTopicConfigs) -> ConfigEntry:
    """Convert a config of a CreateTopics response."""
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=_source(entry.config_source),
        read_only=entry.read_only,
        sensitive=entry.is_sensitive,
    )


_TYPES: Final = {kind.value: kind for kind in SettingType}
_SOURCES: Final = {source.value: source for source in ConfigSource}


def _source(number: int) -> ConfigSource:
    """Return the source; UNKNOWN for one that only newer brokers have."""
    return _SOURCES.get(number, ConfigSource.UNKNOWN)
