"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1.

The controller decides. Before the request is forwarded, this broker refuses settings that it could not run
with: only it knows its properties file. The other resources of the request are still forwarded. Not
supported: logger levels. AlterConfigs v2 and IncrementalAlterConfigs v1 are flexible and otherwise unchanged.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

from barnabas.base.setting_rules import Value
from barnabas.base.settings import InvalidSetting, SettingType, format_value
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    MetadataImage,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.server.handlers.configs import Refused, broker_id
from barnabas.server.requests.api import Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.settings.catalog import CLIENT_METRICS, GROUP, find
from barnabas.server.settings.change import usable, validate_broker_config
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.server.settings.group_limits import check_group_config

# The declarations of the other resource types, and Kafka's error code for an invalid setting.
_OTHER_SETTINGS: Final = {
    CLIENT_METRICS_RESOURCE: (CLIENT_METRICS, ErrorCode.INVALID_REQUEST),
    GROUP_RESOURCE: (GROUP, ErrorCode.INVALID_CONFIG),
}
_ALTERABLE_TYPES: Final = (TOPIC_RESOURCE, BROKER_RESOURCE, *_OTHER_SETTINGS)

_Resource: TypeAlias = AlterConfigsResourceRequest | IncrementalAlterConfigsAlterConfigsResource


class Operation(IntEnum):
    """The operation of an incremental change; the numbers are those of the request."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


async def alter(ctx: Context, request: Request) -> AlterConfigsResponse:
    body: AlterConfigsRequest = request.body
    refused = refused_resources(ctx.broker.settings, ctx.broker.image, body.resources)
    left = [one for at, one in enumerate(body.resources) if at not in refused]
    decided = AlterConfigsResponse()
    if left:
        answer = await ctx.broker.controller.call(
            AlterConfigsRequest(resources=left, validate_only=body.validate_only)
        )
        assert isinstance(answer, AlterConfigsResponse)
        decided = answer
    return AlterConfigsResponse(responses=_in_order(body.resources, refused, decided.responses))


async def alter_incrementally(ctx: Context, request: Request) -> IncrementalAlterConfigsResponse:
    body: IncrementalAlterConfigsRequest = request.body
    refused = refused_resources(ctx.broker.settings, ctx.broker.image, body.resources)
    left = [one for at, one in enumerate(body.resources) if at not in refused]
    decided = IncrementalAlterConfigsResponse()
    if left:
        answer = await ctx.broker.controller.call(
            IncrementalAlterConfigsRequest(resources=left, validate_only=body.validate_only)
        )
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        decided = answer
    return IncrementalAlterConfigsResponse(responses=_in_order(body.resources, refused, decided.responses))


def _in_order(
    resources: Sequence[_Resource],
    refused: Mapping[int, AlterConfigsResourceResponse],
    decided: Sequence[AlterConfigsResourceResponse],
) -> list[AlterConfigsResourceResponse]:
    """One result for each resource: this broker's or the controller's."""
    answers = {(one.resource_type, one.resource_name): one for one in decided}
    return [
        refused[at] if at in refused else answers[one.resource_type, one.resource_name]
        for at, one in enumerate(resources)
    ]


def refused_resources(
    settings: DynamicSettings, image: MetadataImage, resources: Sequence[_Resource]
) -> dict[int, AlterConfigsResourceResponse]:
    """The results of the resources that are not forwarded to the controller, by index in the request."""
    places: dict[ConfigResource, int] = {}
    found: dict[int, Refused] = {}
    twice = Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    for at, one in enumerate(resources):
        resource = ConfigResource(one.resource_type, one.resource_name)
        if resource in places:
            found[at] = found[places[resource]] = twice
            continue
        places[resource] = at
        try:
            _check(settings, image, one)
        except Refused as refused:
            found[at] = refused
        except InvalidSetting as error:
            found[at] = Refused(ErrorCode.INVALID_REQUEST, str(error))
    return {at: _answer(resources[at], refused.code, refused.message) for at, refused in found.items()}


def _check(settings: DynamicSettings, image: MetadataImage, one: _Resource) -> None:
    names = [config.name for config in one.configs]
    if len(set(names)) < len(names):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        config.name
        for config in one.configs
        if config.value is None and getattr(config, "config_operation", Operation.SET) != Operation.DELETE
    ]
    if nulls:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    if one.resource_type not in _ALTERABLE_TYPES:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {one.resource_type}")
    if one.resource_type == BROKER_RESOURCE:
        _check_broker(settings, image, one)
    elif one.resource_type in _OTHER_SETTINGS:
        _check_supported(one)
        if one.resource_type == GROUP_RESOURCE:
            _check_group(settings, image, one)


def _check_broker(settings: DynamicSettings, image: MetadataImage, one: _Resource) -> None:
    name = one.resource_name
    if name and broker_id(name) is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name not in ("", settings.me.name):
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {settings.static.node_id}, but received {name}",
        )
    resource = ConfigResource(BROKER_RESOURCE, name)
    if isinstance(one, AlterConfigsResourceRequest):
        configs = {config.name: config.value for config in one.configs if config.value is not None}
    else:
        # Settings that Kafka wrote to the metadata and that are invalid here must not block other changes.
        before, _ = usable(image.config(resource), name)
        configs = after_operations(before, one.configs)
    validate_broker_config(configs, name)
    settings.check(resource, configs)


def _check_supported(one: _Resource) -> None:
    """Refuse unsupported and unknown settings. The controller checks the rest."""
    if not one.resource_name:
        raise Refused(ErrorCode.INVALID_REQUEST, "the resource name must not be empty")
    declared, code = _OTHER_SETTINGS[one.resource_type]
    try:
        for config in one.configs:
            if config.value is not None:
                find(config.name, declared).parse_supported(config.value)
    except InvalidSetting as error:
        raise Refused(code, str(error)) from None


def _check_group(settings: DynamicSettings, image: MetadataImage, one: _Resource) -> None:
    if isinstance(one, AlterConfigsResourceRequest):
        configs = {config.name: config.value for config in one.configs if config.value is not None}
    else:
        before = image.config(ConfigResource(GROUP_RESOURCE, one.resource_name))
        configs = {
            **before,
            **{config.name: config.value for config in one.configs if config.value is not None},
        }
        for config in one.configs:
            if config.config_operation == Operation.DELETE:
                configs.pop(config.name, None)
    try:
        check_group_config(settings.now, configs)
    except InvalidSetting as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None


def after_operations(
    before: Mapping[str, str], operations: Sequence[IncrementalAlterConfigsAlterableConfig]
) -> dict[str, str]:
    """The resulting settings of a broker after these operations."""
    configs = dict(before)
    for one in operations:
        match one.config_operation:
            case Operation.SET:
                assert one.value is not None, "checked before"
                configs[one.name] = one.value
            case Operation.DELETE:
                configs.pop(one.name, None)
            case Operation.APPEND | Operation.SUBTRACT:
                configs[one.name] = _changed_list(configs.get(one.name), one)
            case other:
                raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown operations type {other}")
    return configs


def _changed_list(before: str | None, one: IncrementalAlterConfigsAlterableConfig) -> str:
    setting = find(one.name)
    if setting.type is not SettingType.LIST:
        word = "append" if one.config_operation == Operation.APPEND else "subtract"
        raise Refused(
            ErrorCode.INVALID_CONFIG, f"Config value {word} is not allowed for config key: {one.name}"
        )
    assert one.value is not None, "checked before"
    had: Value = setting.default if before is None else setting.parse(before)
    entries = one.value.split(",")
    kept = had if isinstance(had, tuple) else ()
    if one.config_operation == Operation.APPEND:
        changed = tuple(dict.fromkeys((*kept, *entries)))
    else:
        changed = tuple(entry for entry in kept if entry not in entries)
    return format_value(changed) or ""


def _answer(one: _Resource, code: ErrorCode, message: str | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=one.resource_type,
        resource_name=one.resource_name,
    )


def refuse(
    body: AlterConfigsRequest | IncrementalAlterConfigsRequest, version: int, code: ErrorCode
) -> object:
    return refusal(body, code)


_SLICES: Final = Slices(
    "resources", "responses", at_once=50, together=("resource_type", "resource_name"), is_change=True
)
APIS = (
    Api(ApiKey.ALTER_CONFIGS, versions=range(3), handle=alter, refuse=refuse, slices=(_SLICES,)),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        versions=range(2),
        handle=alter_incrementally,
        refuse=refuse,
        slices=(_SLICES,),
    ),
)
