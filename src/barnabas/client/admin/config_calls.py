"""Configs of resources: DescribeConfigs, IncrementalAlterConfigs, ListConfigResources.

Only a broker itself knows its configs and loggers, so those requests go to that broker. Any broker answers or
forwards the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from barnabas.client.admin.call import Call, Outcome, Spoken, check, judged
from barnabas.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    Resource,
    ResourceType,
    entry_of,
)
from barnabas.client.errors import ClientError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)

V = TypeVar("V")

_DOCUMENTATION_FROM: Final = 3
_ALL_TYPES_FROM: Final = 1


# Describe


async def describe(
    call: Call,
    wanted: Mapping[Resource, Collection[str] | None],
    *,
    synonyms: bool,
    documentation: bool,
) -> dict[Resource, Outcome[dict[str, ConfigEntry]]]:
    """Return the named configs of each resource, or all of them for None."""

    async def ask(node: int | None, share: list[Resource]) -> dict[Resource, Outcome[dict[str, ConfigEntry]]]:
        def make(spoken: Spoken) -> object:
            if documentation:
                spoken.needs(_DOCUMENTATION_FROM, "config documentation")
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
                found[resource] = judged(
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


async def alter(
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
                found[resource] = judged(
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

    return await call.settle(what, wanted, attempt)


# List


async def list_resources(call: Call, types: Collection[ResourceType]) -> list[Resource]:
    """List the resources that have configs, of these types or of all."""

    def make(spoken: Spoken) -> object:
        if spoken.version >= _ALL_TYPES_FROM:
            return ListConfigResourcesRequest(resource_types=[kind.value for kind in types])
        if set(types) != {ResourceType.CLIENT_METRICS}:
            spoken.needs(_ALL_TYPES_FROM, "resource types other than client metrics")
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

    return await call.single("LIST_CONFIG_RESOURCES", attempt)
