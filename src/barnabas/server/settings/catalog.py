"""All settings of a broker, by name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from barnabas.base.setting_rules import Value
from barnabas.base.settings import InvalidSetting, UnknownSetting, nearest
from barnabas.server.settings import (
    cleaner,
    groups,
    logs,
    metrics,
    network,
    node,
    quorum,
    remote_storage,
    resources,
    sasl,
    security,
    share_groups,
    tls,
    topics,
    transactions,
)
from barnabas.server.settings.declare import ServerSetting

# A setting of one listener is named listener.name.NAME.SETTING.
LISTENER_PREFIX: Final = "listener.name."
# Broker settings that can also be set for a single listener.
OF_LISTENERS: Final = ("max.connections", "max.connection.creation.rate")

# By title, in the order of the reference page.
THEMES: Final = {
    "The node": node.SETTINGS,
    "Listeners, connections, requests": network.SETTINGS,
    "The quorum and the metadata log": quorum.SETTINGS,
    "Topics and replicas": topics.SETTINGS,
    "Logs": logs.SETTINGS,
    "Compaction": cleaner.SETTINGS,
    "Consumer groups and offsets": groups.SETTINGS,
    "Share groups": share_groups.SETTINGS,
    "Transactions": transactions.SETTINGS,
    "Security": security.SETTINGS,
    "TLS": tls.SETTINGS,
    "SASL": sasl.SETTINGS,
    "Quotas": metrics.QUOTAS,
    "Metrics": metrics.SETTINGS,
    "Remote storage": remote_storage.SETTINGS,
}


def _by_name(declared: Iterable[ServerSetting]) -> dict[str, ServerSetting]:
    found: dict[str, ServerSetting] = {}
    for one in sorted(declared, key=lambda one: one.name):
        assert one.name not in found, f"{one.name} is declared twice"
        found[one.name] = one
    return found


BROKER: Final = _by_name(one for settings in THEMES.values() for one in settings)
GROUP: Final = _by_name(resources.GROUP)
CLIENT_METRICS: Final = _by_name(resources.CLIENT_METRICS)


def find(name: str, declared: Mapping[str, ServerSetting] = BROKER) -> ServerSetting:
    """The setting of that name. InvalidSetting, which suggests the nearest name, if it does not exist."""
    found = declared.get(name)
    if found is not None:
        return found
    # The value of an unknown setting is not shown: it might be a secret.
    if name.startswith(LISTENER_PREFIX):
        of_listener = _of_listener(name, declared)
        if of_listener is not None:
            return of_listener
        raise InvalidSetting(name, "(hidden)", "this setting cannot be set for a single listener yet")
    raise UnknownSetting(name, "(hidden)", nearest(name, declared))


def _of_listener(name: str, declared: Mapping[str, ServerSetting]) -> ServerSetting | None:
    listener, _, own = name.removeprefix(LISTENER_PREFIX).partition(".")
    if own not in OF_LISTENERS or not listener or own not in declared:
        return None
    return replace(declared[own], name=name)


def by_listener(name: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The values of single listeners, by listener name in upper case."""
    suffix = f".{name}"
    return {
        key.removeprefix(LISTENER_PREFIX).removesuffix(suffix).upper(): found
        for key, found in values.items()
        if key.startswith(LISTENER_PREFIX) and key.endswith(suffix)
    }
