"""Configs of resources: DescribeConfigs, IncrementalAlterConfigs, ListConfigResources.

Only a broker itself knows its configs and loggers, so those requests go to that broker. Any broker answers or
forwards the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from barnabas.base.settings import SettingType
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, check, outcome_of
from barnabas.client.errors import ClientError
from barnabas.client.settings import setting_text
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
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


V = TypeVar("V")

_DOCUMENTATION_FROM: Final = 3
_ALL_TYPES_FROM: Final = 1


# Describe


async def describe_configs(
    call: Call,
    wanted: Mapping[Resource, Collection[str] | None],
    *,
    synonyms: bool,
    documentation: bool,
) -> dict[Resource, Outcome[dict[str, ConfigEntry]]]:
    """Return the named configs of each resource, or all of them for None."""

    async def ask(node: int | None, share: list[Resource]) -> dict[Resource, Outcome[dict[str, ConfigEntry]]]:
        def make(api: NegotiatedApi) -> object:
            if documentation:
                api.require(_DOCUMENTATION_FROM, "config documentation")
            return DescribeConfigsRequest(
                resources=[_described_resource(resource, wanted[resource]) for resource in share],
                include_synonyms=synonyms,
                include_documentation=documentation,
            )

        answer = await call.ask(ApiKey.DESCRIBE_CONFIGS, make, node)
        found: dict[Resource, Outcome[dict[str, ConfigEntry]]] = {}
        asked = {(resource.type.value, resource.name): resource for resource in share}
        for entry in answer.results:
            resource = asked.get((entry.resource_type, entry.resource_name))
            if resource is not None:
                entries = {each.name: entry_of(each) for each in entry.configs}
                found[resource] = outcome_of(
                    entry.error_code, entries, about=str(resource), message=entry.error_message
                )
        return found

    return await _ask_each(call, "DESCRIBE_CONFIGS", wanted, ask)


def _described_resource(resource: Resource, names: Collection[str] | None) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configuration_keys=None if names is None else list(names),
    )


# Alter


async def alter_configs(
    call: Call, changes: Mapping[Resource, Sequence[ConfigChange]], *, validate_only: bool
) -> dict[Resource, Outcome[None]]:
    async def ask(node: int | None, share: list[Resource]) -> dict[Resource, Outcome[None]]:
        request = IncrementalAlterConfigsRequest(
            resources=[_altered_resource(resource, changes[resource]) for resource in share],
            validate_only=validate_only,
        )
        answer = await call.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, lambda _: request, node)
        asked = {(resource.type.value, resource.name): resource for resource in share}
        found: dict[Resource, Outcome[None]] = {}
        for entry in answer.responses:
            resource = asked.get((entry.resource_type, entry.resource_name))
            if resource is not None:
                found[resource] = outcome_of(
                    entry.error_code, None, about=str(resource), message=entry.error_message
                )
        return found

    return await _ask_each(call, "INCREMENTAL_ALTER_CONFIGS", changes, ask)


def _altered_resource(
    resource: Resource, changes: Sequence[ConfigChange]
) -> IncrementalAlterConfigsAlterConfigsResource:
    return IncrementalAlterConfigsAlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            IncrementalAlterConfigsAlterableConfig(
                name=change.name, config_operation=change.operation, value=change.value
            )
            for change in changes
        ],
    )


async def _ask_each(
    call: Call,
    what: str,
    wanted: Iterable[Resource],
    ask: Callable[[int | None, list[Resource]], Awaitable[Mapping[Resource, Outcome[V]]]],
) -> dict[Resource, Outcome[V]]:
    """Send one request per broker resource to that broker, and one for all other resources."""

    async def guarded(node: int | None, share: list[Resource]) -> Mapping[Resource, Outcome[V]]:
        try:
            return await ask(node, share)
        except ClientError as error:
            return dict.fromkeys(share, error)

    async def attempt(pending: list[Resource]) -> dict[Resource, Outcome[V]]:
        shares: dict[int | None, list[Resource]] = {}
        for resource in pending:
            shares.setdefault(resource.node, []).append(resource)
        found: dict[Resource, Outcome[V]] = {}
        for answered in await asyncio.gather(*(guarded(node, share) for node, share in shares.items())):
            found.update(answered)
        return found

    return await call.retry_items(what, wanted, attempt)


# List


async def list_resources(call: Call, types: Collection[ResourceType]) -> list[Resource]:
    """List the resources that have configs, of these types or of all."""

    def make(api: NegotiatedApi) -> object:
        if api.version >= _ALL_TYPES_FROM:
            return ListConfigResourcesRequest(resource_types=[kind.value for kind in types])
        if set(types) != {ResourceType.CLIENT_METRICS}:
            api.require(_ALL_TYPES_FROM, "resource types other than client metrics")
        return ListConfigResourcesRequest()

    async def attempt() -> list[Resource]:
        answer = await call.ask(ApiKey.LIST_CONFIG_RESOURCES, make)
        check(answer.error_code, about="the list of resources")
        known = {kind.value: kind for kind in ResourceType}
        return [
            Resource(known[entry.resource_type], entry.resource_name)
            for entry in answer.config_resources
            if entry.resource_type in known
        ]

    return await call.retry_single("LIST_CONFIG_RESOURCES", attempt)
