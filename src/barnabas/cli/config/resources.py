"""Describe and alter settings of config resources: topics, brokers, loggers, client metrics, groups."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.config.entities import (
    BROKERS,
    DEFAULT,
    GROUPS,
    LOGGERS,
    METRICS,
    TOPICS,
    Entities,
    singular,
)
from barnabas.cli.tool import ToolFailed, print_json
from barnabas.client.admin.configs import ConfigEntry, ConfigSource, Resource, ResourceType

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_TYPES = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    LOGGERS: ResourceType.BROKER_LOGGER,
    METRICS: ResourceType.CLIENT_METRICS,
    GROUPS: ResourceType.GROUP,
}
_SOURCES = {
    TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG,
    METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    GROUPS: ConfigSource.DYNAMIC_GROUP_CONFIG,
}


# Describe


async def describe(admin: "Admin", meant: Entities, *, everything: bool, as_json: bool) -> None:
    kind, name = meant.type, meant.name
    if name is not None and not everything and not await _exists(admin, kind, name):
        if as_json:
            print_json({"entities": []})
        else:
            print(f"The {meant.singular} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    names = [name] if name is not None else await _all(admin, kind)
    found = await _settings(admin, kind, names, everything=everything)
    if as_json:
        print_json({"entities": [_document(kind, each, entries) for each, entries in found.items()]})
        return
    for each, entries in found.items():
        print(_heading(kind, each, everything))
        for entry in entries:
            print(_line(entry))


async def _exists(admin: "Admin", kind: str, name: str) -> bool:
    return (kind in (BROKERS, LOGGERS) and name == DEFAULT) or name in await _all(admin, kind)


async def _all(admin: "Admin", kind: str) -> list[str]:
    """Return the names of all entities of a type that exist or have settings, and the broker default."""
    if kind == TOPICS:
        return sorted(await admin.list_topics(internal=True))
    if kind in (BROKERS, LOGGERS):
        return [*map(str, (await admin.describe_cluster()).nodes), DEFAULT]
    found = {each.name for each in await admin.list_config_resources([_TYPES[kind]])}
    return sorted(found | await _groups(admin)) if kind == GROUPS else sorted(found)


async def _groups(admin: "Admin") -> set[str]:
    """Return the groups of all brokers. Brokers that do not support ListGroups are skipped."""
    from barnabas.client.errors import UnsupportedByBroker, refused
    from barnabas.protocol.messages.group_admin import ListGroupsRequest

    found: set[str] = set()
    for node in (await admin.describe_cluster()).nodes:
        try:
            answer = await admin.cluster.ask(ListGroupsRequest(), node=node)
        except UnsupportedByBroker:
            continue
        if answer.error_code:
            raise refused(answer.error_code, about=f"the groups of broker {node}")
        found.update(group.group_id for group in answer.groups)
    return found


async def _settings(
    admin: "Admin", kind: str, names: Sequence[str], *, everything: bool
) -> dict[str, list[ConfigEntry]]:
    """Return the settings by entity name; only dynamic ones unless `everything` is true."""
    found = await admin.describe_configs([Resource(_TYPES[kind], name) for name in names], synonyms=True)
    return {
        resource.name: sorted(
            (each for each in entries.values() if everything or _is_dynamic(kind, resource.name, each)),
            key=lambda entry: entry.name,
        )
        for resource, entries in found.items()
    }


def _is_dynamic(kind: str, name: str, entry: ConfigEntry) -> bool:
    if kind == BROKERS and name == DEFAULT:
        return entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    # All settings of loggers are dynamic.
    return kind == LOGGERS or entry.source is _SOURCES[kind]


def _heading(kind: str, name: str, everything: bool) -> str:
    if name == DEFAULT:
        return f"Default configs for {kind} in the cluster are:"
    return f"{'All' if everything else 'Dynamic'} configs for {singular(kind)} {name} are:"


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{each.source.name}:{each.name}={_value(each.value)}" for each in entry.synonyms)
    sensitive = str(entry.sensitive).lower()
    return f"  {entry.name}={_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _document(kind: str, name: str, entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    configs = [
        {
            "name": entry.name,
            "value": entry.value,
            "source": entry.source.name,
            "sensitive": entry.sensitive,
            "readOnly": entry.read_only,
            "synonyms": [
                {"name": each.name, "value": each.value, "source": each.source.name}
                for each in entry.synonyms
            ],
        }
        for entry in entries
    ]
    return {"type": kind, "name": name or None, "configs": configs}


# Alter


async def alter(admin: "Admin", meant: Entities, added: dict[str, str], deleted: list[str]) -> None:
    kind, name = meant.type, meant.names[0]
    if kind == LOGGERS:
        loggers = await _settings(admin, kind, [name], everything=True)
        known = {entry.name for entry in loggers[name]}
        wrong = [each for each in (*deleted, *added) if each not in known]
        if wrong:
            raise ToolFailed(f"Invalid broker logger(s): {','.join(wrong)}")
    await admin.alter_config(Resource(_TYPES[kind], name), added, delete=deleted)
