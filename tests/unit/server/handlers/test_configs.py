"""DescribeConfigs and ListConfigResources. The expected responses are those of Kafka 4.3.0."""

from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.metadata.image import (
    ALL_BROKERS,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    BrokerImage,
    ConfigResource,
    MetadataImage,
    TopicImage,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_response, response_parts
from barnabas.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ListConfigResourcesRequest,
)
from barnabas.protocol.stored.cluster_nodes import RegisterBrokerRecord
from barnabas.server.handlers.configs import (
    APIS,
    describe_configs,
    list_config_resources,
    refuse_describe,
    refuse_list,
)
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from support.broker_properties import combined

LOGGER_RESOURCE = 8
ME = ConfigResource(BROKER_RESOURCE, "1")


def image(configs: dict[ConfigResource, dict[str, str]] | None = None) -> MetadataImage:
    topics = {name: TopicImage(name, ZERO_UUID, ()) for name in ("orders", "audit")}
    brokers = {
        number: BrokerImage(
            id=number,
            epoch=0,
            fenced=False,
            in_controlled_shutdown=False,
            registration=RegisterBrokerRecord(broker_id=number),
        )
        for number in (2, 1)
    }
    return MetadataImage(topics=topics, brokers=brokers, configs=configs or {})


def describe(
    kind: int,
    name: str,
    *keys: str,
    configs: dict[ConfigResource, dict[str, str]] | None = None,
    **options: bool,
) -> DescribeConfigsResult:
    settings = DynamicSettings(BrokerSettings.parse(combined()))
    settings.take(image(configs))
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    body = DescribeConfigsRequest(resources=[resource], **options)
    response = describe_configs(settings.view(), image(configs), body, node_id=1)
    return response.results[0]


def rows(result: DescribeConfigsResult) -> dict[str, Any]:
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {row.name: row for row in result.configs}


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [
        (BROKER_RESOURCE, "1", 340),
        (BROKER_RESOURCE, "", 0),
        (TOPIC_RESOURCE, "orders", 33),
        (GROUP_RESOURCE, "anybody", 17),
        (CLIENT_METRICS_RESOURCE, "anything", 3),
    ],
)
def test_every_setting_of_a_resource_is_described(kind: int, name: str, count: int) -> None:
    result = describe(kind, name)

    assert (result.resource_type, result.resource_name) == (kind, name)
    assert len(rows(result)) == count
    assert result.error_message == ""


def test_only_requested_settings_are_described() -> None:
    assert rows(describe(TOPIC_RESOURCE, "orders", "retention.ms", "nope")).keys() == {"retention.ms"}


def test_an_empty_list_of_names_means_all() -> None:
    settings = DynamicSettings(BrokerSettings.parse(combined()))
    resource = DescribeConfigsResource(resource_type=2, resource_name="orders", configuration_keys=[])

    response = describe_configs(
        settings.view(), image(), DescribeConfigsRequest(resources=[resource]), node_id=1
    )

    assert len(response.results[0].configs) == 33


def test_a_setting_of_a_topic_is_described_in_full() -> None:
    configs = {
        ConfigResource(TOPIC_RESOURCE, "orders"): {"retention.ms": "6000"},
        ME: {"log.retention.ms": "88"},
    }

    result = describe(
        TOPIC_RESOURCE,
        "orders",
        "retention.ms",
        configs=configs,
        include_synonyms=True,
        include_documentation=True,
    )

    row = rows(result)["retention.ms"]
    assert (row.value, row.config_source, row.config_type) == ("6000", 1, 5)
    assert (row.read_only, row.is_sensitive) == (False, False)
    assert [(one.name, one.value, one.source) for one in row.synonyms] == [
        ("retention.ms", "6000", 1),
        ("log.retention.ms", "88", 2),
        ("log.retention.hours", "168", 5),
    ]
    assert row.documentation.startswith("How old")


def test_synonyms_and_documentation_are_returned_on_request() -> None:
    row = rows(describe(BROKER_RESOURCE, "1", "message.max.bytes"))["message.max.bytes"]

    assert row.synonyms == []
    assert row.documentation is None


def test_the_default_of_all_brokers_is_described_by_an_empty_name() -> None:
    configs = {ALL_BROKERS: {"message.max.bytes": "5"}, ME: {"max.connections": "6"}}

    assert {
        name: row.value for name, row in rows(describe(BROKER_RESOURCE, "", configs=configs)).items()
    } == {"message.max.bytes": "5"}


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC_RESOURCE, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            TOPIC_RESOURCE,
            "",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (BROKER_RESOURCE, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (
            BROKER_RESOURCE,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (
            CLIENT_METRICS_RESOURCE,
            "",
            ErrorCode.INVALID_REQUEST,
            "Client metrics subscription name must not be empty",
        ),
        (GROUP_RESOURCE, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (
            LOGGER_RESOURCE,
            "1",
            ErrorCode.INVALID_REQUEST,
            "logger levels are not supported yet",
        ),
        (99, "x", ErrorCode.INVALID_REQUEST, "Unsupported resource type: 99"),
    ],
)
def test_a_resource_that_cannot_be_described_says_why(
    kind: int, name: str, code: ErrorCode, message: str
) -> None:
    result = describe(kind, name)

    assert (result.error_code, result.error_message) == (code, message)
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert result.configs == []


def test_one_failing_resource_does_not_affect_the_others() -> None:
    settings = DynamicSettings(BrokerSettings.parse(combined()))
    asked = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in ("nope", "orders")]

    response = describe_configs(settings.view(), image(), DescribeConfigsRequest(resources=asked), node_id=1)

    assert [one.error_code for one in response.results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]


def test_unsupported_settings_of_a_topic_are_an_error_of_that_topic() -> None:
    configs = {ConfigResource(TOPIC_RESOURCE, "orders"): {"remote.storage.enable": "true"}}

    result = describe(TOPIC_RESOURCE, "orders", configs=configs)

    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert "this broker has no remote storage" in (result.error_message or "")


@pytest.mark.parametrize("version", APIS[0].versions)
def test_the_answer_can_be_sent_in_every_version(version: int) -> None:
    answer = DescribeConfigsResponse(
        results=[describe(BROKER_RESOURCE, "1", include_synonyms=True, include_documentation=True)]
    )

    frame = b"".join(response_parts(answer, version, key=ApiKey.DESCRIBE_CONFIGS, correlation_id=1))[4:]
    _, back = decode_response(frame, version, key=ApiKey.DESCRIBE_CONFIGS)

    assert [row.name for row in back.results[0].configs] == [row.name for row in answer.results[0].configs]


LISTED = image(
    {
        ConfigResource(GROUP_RESOURCE, "g"): {"a": "1"},
        ConfigResource(CLIENT_METRICS_RESOURCE, "m"): {"a": "1"},
        ConfigResource(TOPIC_RESOURCE, "orders"): {"retention.ms": "1"},
        ME: {"max.connections": "1"},
    }
)


@pytest.mark.parametrize(
    ("version", "types", "expected"),
    [
        (0, [], [(16, "m")]),
        (1, [], [(32, "g"), (16, "m"), (4, "1"), (4, "2"), (2, "audit"), (2, "orders")]),
        (1, [2], [(2, "audit"), (2, "orders")]),
        (1, [4, 16], [(16, "m"), (4, "1"), (4, "2")]),
        (1, [4, 4], [(4, "1"), (4, "2")]),
        (1, [32], [(32, "g")]),
    ],
)
def test_resources_are_listed_by_their_types(
    version: int, types: list[int], expected: list[tuple[int, str]]
) -> None:
    response = list_config_resources(LISTED, ListConfigResourcesRequest(resource_types=types), version)

    assert response.error_code == ErrorCode.NONE
    assert [(one.resource_type, one.resource_name) for one in response.config_resources] == expected


@pytest.mark.parametrize("kind", [LOGGER_RESOURCE, 99, 0, -1])
def test_types_that_cannot_be_listed_are_refused(kind: int) -> None:
    response = list_config_resources(LISTED, ListConfigResourcesRequest(resource_types=[2, kind]), 1)

    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == []


def test_a_request_that_fails_as_a_whole_says_so_of_everything_in_it() -> None:
    asked = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in ("a", "b")]
    code = ErrorCode.UNKNOWN_SERVER_ERROR

    described = refuse_describe(DescribeConfigsRequest(resources=asked), 4, code)

    assert [(one.error_code, one.resource_name) for one in described.results] == [(code, "a"), (code, "b")]
    assert refuse_list(ListConfigResourcesRequest(), 1, code).error_code == code
