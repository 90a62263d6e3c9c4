"""The effective settings of a running broker: its properties file overridden by the metadata.

A per-broker value takes precedence over a cluster-wide one, and that over the properties file. The broker
calls take() with every new image. Code that has to act on a change subscribes; code that only reads a setting
reads `now` each time.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.base.settings import InvalidSetting
from barnabas.metadata.image import ALL_BROKERS, BROKER_RESOURCE, ConfigResource, MetadataImage
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.change import usable
from barnabas.server.settings.view import SettingsView

logger = logging.getLogger(__name__)

# Called with the new settings and the names of the fields that changed.
Listener = Callable[[BrokerSettings, frozenset[str]], None]

# Kafka limits how much these can change at once, so that one mistake cannot stop the broker or the machine.
_THREADS: Final = ("num.io.threads", "background.threads", "num.recovery.threads.per.data.dir")
# Excluded from the comparison: these hold all settings, and each changed setting has a field of its own.
_BY_NAME: Final = ("given", "values")


class Layers(NamedTuple):
    """The settings of one broker in the metadata."""

    cluster_wide: Mapping[str, str]
    per_broker: Mapping[str, str]


_NOTHING: Final = Layers(MappingProxyType({}), MappingProxyType({}))


class DynamicSettings:
    """The settings of one broker, from its start to its end."""

    def __init__(self, static: BrokerSettings) -> None:
        self.static: Final = static
        self.now = static
        self.me: Final = ConfigResource(BROKER_RESOURCE, str(static.node_id))
        # The settings in the last image, and those of them that are valid and applied.
        self._seen = _NOTHING
        self._applied = _NOTHING
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` after every change, with the new settings."""
        self._listeners.append(listener)

    def view(self) -> SettingsView:
        """The effective values and their sources, for DescribeConfigs."""
        return SettingsView(static=self.static.given, **self._applied._asdict())

    def take(self, image: MetadataImage) -> frozenset[str]:
        """Apply the settings in the image. Return the names of the changed fields."""
        seen = Layers(image.config(ALL_BROKERS), image.config(self.me))
        if seen == self._seen:
            return frozenset()
        self._seen = seen
        layers = Layers(self._usable(ALL_BROKERS, seen.cluster_wide), self._usable(self.me, seen.per_broker))
        try:
            settings = self._over_static(layers)
        except InvalidSetting as error:
            # Each setting is valid alone, but their combination is not: keep the previous settings.
            logger.error("dynamic settings not applied broker=%s error=%s", self.me.name, error)
            return frozenset()
        before, self.now, self._applied = self.now, settings, layers
        changed = _difference(before, settings)
        for listener in self._listeners if changed else ():
            listener(settings, changed)
        return changed

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """InvalidSetting if this broker could not run with exactly `configs` set for the resource."""
        layers = self._applied
        is_for_all = resource == ALL_BROKERS
        after = self._over_static(
            layers._replace(cluster_wide=configs) if is_for_all else layers._replace(per_broker=configs)
        )
        for name in _THREADS:
            self._check_threads(name, getattr(self.now, BROKER[name].attribute), after)

    def _check_threads(self, name: str, before: int, after: BrokerSettings) -> None:
        threads: int = getattr(after, BROKER[name].attribute)
        if not before // 2 <= threads <= before * 2:
            raise InvalidSetting(
                name, str(threads), f"must be at least half and at most twice the current value, {before}"
            )

    def _usable(self, resource: ConfigResource, configs: Mapping[str, str]) -> Mapping[str, str]:
        good, wrong = usable(configs, resource.name)
        for error in wrong:
            logger.error(
                "dynamic setting ignored broker=%s resource=%r error=%s", self.me.name, resource.name, error
            )
        return good

    def _over_static(self, layers: Layers) -> BrokerSettings:
        return BrokerSettings.parse({**self.static.given, **layers.cluster_wide, **layers.per_broker})


def _difference(before: BrokerSettings, after: BrokerSettings) -> frozenset[str]:
    return frozenset(
        one.name
        for one in fields(BrokerSettings)
        if one.name not in _BY_NAME and getattr(before, one.name) != getattr(after, one.name)
    )
