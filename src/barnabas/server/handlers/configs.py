"""DescribeConfigs (key 32), versions 1-4, and ListConfigResources (key 74), versions 0-1.

Supported: topics, this broker, cluster-wide broker settings, groups, client metrics subscriptions; synonyms,
documentation. Not supported: logger levels; settings of another broker, because only that broker knows them.
DescribeConfigs: v3 types and documentation. ListConfigResources: v0 lists client metrics subscriptions only,
v1 all types.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.settings import InvalidSetting
from barnabas.controller.topic_names import topic_name_error
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
from barnabas.protocol.messages.configs import ConfigResource as ListedResource
from barnabas.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.server.requests.api import Api, Context
from barnabas.server.requests.slices import Slices
from barnabas.server.settings.view import SettingsView, Shown

_BROKER_LOGGER_RESOURCE: Final = 8
# In Kafka's order.
_LISTED_TYPES: Final = (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE)
_ALL_TYPES_FROM: Final = 1
_ID_DIGITS_MAX: Final = 10


class Refused(BarnabasError):
    """The settings of one resource cannot be shown or changed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def describe(ctx: Context, request: Request) -> DescribeConfigsResponse:
    broker = ctx.broker
    return describe_configs(broker.settings.view(), broker.image, request.body, node_id=broker.node_id)


def describe_configs(
    view: SettingsView, image: MetadataImage, body: DescribeConfigsRequest, *, node_id: int
) -> DescribeConfigsResponse:
    """Every requested resource, with its settings or its error."""
    return DescribeConfigsResponse(
        results=[_result(view, image, body, one, node_id) for one in body.resources]
    )


def _result(
    view: SettingsView,
    image: MetadataImage,
    body: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    node_id: int,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        rows = _rows(view, image, resource, node_id)
    except Refused as refused:
        result.error_code, result.error_message = refused.code, refused.message
    except InvalidSetting as error:
        # Only if Kafka wrote the metadata: our controller refuses an invalid setting.
        result.error_code, result.error_message = ErrorCode.INVALID_CONFIG, str(error)
    else:
        wanted = set(resource.configuration_keys or ())
        result.configs = [_row(body, one) for one in rows if not wanted or one.name in wanted]
    return result


def _rows(
    view: SettingsView, image: MetadataImage, resource: DescribeConfigsResource, node_id: int
) -> list[Shown]:
    name = resource.resource_name
    own = image.config(ConfigResource(resource.resource_type, name))
    kind = resource.resource_type
    if kind == TOPIC_RESOURCE:
        _need_topic(image, name)
        return view.topic(own)
    if kind == BROKER_RESOURCE and not name:
        return view.cluster_wide()
    if kind == BROKER_RESOURCE:
        _need_me(name, node_id)
        return view.broker()
    if kind == CLIENT_METRICS_RESOURCE:
        return _named("Client metrics subscription name", name, view.client_metrics, own)
    if kind == GROUP_RESOURCE:
        return _named("Group name", name, view.group, own)
    if kind == _BROKER_LOGGER_RESOURCE:
        raise Refused(ErrorCode.INVALID_REQUEST, "logger levels are not supported yet")
    raise Refused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def _need_topic(image: MetadataImage, name: str) -> None:
    if name in image.topics:
        return
    wrong = topic_name_error(name)
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    # Kafka sends no message.
    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")


def _need_me(name: str, node_id: int) -> None:
    number = broker_id(name)
    if number is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if number != node_id:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )


def broker_id(name: str) -> int | None:
    """The broker id in the name of a broker resource; None if the name is not a number."""
    digits = name[1:] if name[:1] in ("+", "-") else name
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _ID_DIGITS_MAX
    return int(name) if is_number else None


def _named(
    what: str, name: str, rows: Callable[[Mapping[str, str]], list[Shown]], own: Mapping[str, str]
) -> list[Shown]:
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")
    return rows(own)


def _row(body: DescribeConfigsRequest, one: Shown) -> DescribeConfigsResourceResult:
    synonyms = one.synonyms if body.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=one.name,
        value=one.value,
        read_only=one.read_only,
        config_source=one.source,
        is_sensitive=one.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=one.type.value,
        documentation=one.doc if body.include_documentation else None,
    )


def refuse_describe(body: DescribeConfigsRequest, version: int, code: ErrorCode) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=code, resource_type=one.resource_type, resource_name=one.resource_name
            )
            for one in body.resources
        ]
    )


def list_resources(ctx: Context, request: Request) -> ListConfigResourcesResponse:
    return list_config_resources(ctx.broker.image, request.body, request.version)


def list_config_resources(
    image: MetadataImage, body: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    """Every resource that has settings, of the requested types or of all types."""
    wanted = set(body.resource_types) if version >= _ALL_TYPES_FROM else {CLIENT_METRICS_RESOURCE}
    if not wanted <= set(_LISTED_TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListedResource(resource_name=name, resource_type=kind)
            for kind in _LISTED_TYPES
            if not wanted or kind in wanted
            for name in _names(image, kind)
        ]
    )


def _names(image: MetadataImage, kind: int) -> Iterable[str]:
    if kind == TOPIC_RESOURCE:
        return sorted(image.topics)
    if kind == BROKER_RESOURCE:
        return [str(number) for number in sorted(image.brokers)]
    return sorted(resource.name for resource in image.configs if resource.type == kind)


def refuse_list(
    body: ListConfigResourcesRequest, version: int, code: ErrorCode
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code)


APIS = (
    Api(
        ApiKey.DESCRIBE_CONFIGS,
        versions=range(1, 5),
        handle=describe,
        refuse=refuse_describe,
        # A broker has hundreds of settings with several synonyms each.
        slices=(Slices("resources", "results", at_once=1),),
    ),
    Api(
        ApiKey.LIST_CONFIG_RESOURCES,
        versions=range(2),
        handle=list_resources,
        refuse=refuse_list,
        long_lists=(("config_resources",),),
    ),
)
