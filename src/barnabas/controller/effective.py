"""The effective settings of a topic: its own, then the node's, the cluster's, the file's, then defaults."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.base.setting_rules import Value
from barnabas.base.settings import format_value
from barnabas.controller.facts import ELR_FEATURE, ControllerSettings
from barnabas.metadata.image import (
    ALL_BROKERS,
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    MetadataImage,
    TopicImage,
)
from barnabas.storage.topic_settings import SETTINGS

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

# Sources of a value, as in DescribeConfigs.
TOPIC_SOURCE: Final = 1
BROKER_SOURCE: Final = 2
DEFAULT_BROKER_SOURCE: Final = 3
STATIC_SOURCE: Final = 4
DEFAULT_SOURCE: Final = 5


class EffectiveValue(NamedTuple):
    name: str
    value: str | None
    source: int


def levels(image: MetadataImage, settings: ControllerSettings) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The levels of broker settings, highest precedence first."""
    yield BROKER_SOURCE, image.config(ConfigResource(BROKER_RESOURCE, str(settings.node_id)))
    yield DEFAULT_BROKER_SOURCE, image.config(ALL_BROKERS)
    yield STATIC_SOURCE, settings.static_config


def broker_config(image: MetadataImage, settings: ControllerSettings) -> dict[str, str]:
    """All levels merged."""
    merged: dict[str, str] = {}
    for _, level in reversed(list(levels(image, settings))):
        merged.update(level)
    return merged


def effective_values(
    own: Mapping[str, str], image: MetadataImage, settings: ControllerSettings
) -> Iterator[EffectiveValue]:
    """Every setting of a topic with the given own settings, which are shown as they were written."""
    sources = list(levels(image, settings))
    for name, setting in sorted(SETTINGS.items()):
        if name in own:
            yield EffectiveValue(name, own[name], TOPIC_SOURCE)
            continue
        for source, level in sources:
            value = setting.parse_synonym(level) if level else None
            if value is not None:
                yield EffectiveValue(name, format_value(value), source)
                break
        else:
            yield EffectiveValue(name, format_value(setting.default), DEFAULT_SOURCE)


class TopicRules:
    """The two topic settings that elections need. Broker-level values are looked up once.

    Both have the same names on brokers.
    """

    def __init__(self, image: MetadataImage, settings: ControllerSettings) -> None:
        self._configs = image.configs
        above: dict[str, Value] = {}
        for name in (MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION):
            texts = [level[name] for _, level in levels(image, settings) if name in level]
            above[name] = SETTINGS[name].parse(texts[0]) if texts else SETTINGS[name].default
        self._above = above

    def min_isr(self, topic: TopicImage) -> int:
        """min.insync.replicas, limited by the replication factor."""
        wanted = self._value(topic.name, MIN_INSYNC_REPLICAS)
        assert isinstance(wanted, int)
        return min(wanted, len(topic.partitions[0].replicas))

    def allows_unclean(self, topic: str) -> bool:
        return bool(self._value(topic, UNCLEAN_ELECTION))

    def _value(self, topic: str, name: str) -> Value:
        own = self._configs.get(ConfigResource(TOPIC_RESOURCE, topic))
        text = None if own is None else own.get(name)
        return self._above[name] if text is None else SETTINGS[name].parse(text)


def elr_enabled(image: MetadataImage) -> bool:
    return image.features.get(ELR_FEATURE, 0) > 0
