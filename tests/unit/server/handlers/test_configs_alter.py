"""AlterConfigs and IncrementalAlterConfigs in the broker. Error codes and messages are Kafka 4.3.0's."""

import asyncio
from typing import Any, cast

import pytest

from barnabas.metadata.image import (
    ALL_BROKERS,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    MetadataImage,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.configs import (
    AlterConfigsAlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.server.handlers.configs_alter import (
    Operation,
    after_operations,
    alter,
    alter_incrementally,
    refuse,
)
from barnabas.server.requests.api import Context
from barnabas.server.services import Services
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from support.broker_properties import combined

SET, DELETE, APPEND, SUBTRACT = Operation
ME = ConfigResource(BROKER_RESOURCE, "1")
Change = tuple[str, int, str | None]


class Controller:
    """Behind the port: agrees to everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def call(self, request: object) -> object:
        self.asked.append(request)
        assert isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest)
        answers = [
            AlterConfigsResourceResponse(
                error_message=None, resource_type=one.resource_type, resource_name=one.resource_name
            )
            for one in reversed(request.resources)
        ]
        if isinstance(request, AlterConfigsRequest):
            return AlterConfigsResponse(responses=answers)
        return IncrementalAlterConfigsResponse(responses=answers)


class Node:
    """One broker as far as these requests see it."""

    def __init__(self, configs: dict[ConfigResource, dict[str, str]] | None = None) -> None:
        image = MetadataImage(configs=configs or {})
        settings = DynamicSettings(BrokerSettings.parse(combined()))
        settings.take(image)
        self.controller = Controller()
        nowhere = cast(Any, None)
        services = Services(
            node_id=1,
            cluster_id="",
            clock=nowhere,
            rng=nowhere,
            executor=nowhere,
            checksums=nowhere,
            tasks=nowhere,
            settings=settings,
            logs=nowhere,
            replicas=nowhere,
            quorum=nowhere,
            controller=self.controller,
            sessions=nowhere,
            producer_ids=nowhere,
            groups=nowhere,
            offsets_topic=nowhere,
            transactions=nowhere,
            transaction_topic=nowhere,
            image=image,
        )
        self._ctx = Context(services, listener="PLAINTEXT", client_address="")

    def change(self, *resources: IncrementalAlterConfigsAlterConfigsResource) -> list[Any]:
        body = IncrementalAlterConfigsRequest(resources=list(resources))
        request = Request(api(ApiKey.INCREMENTAL_ALTER_CONFIGS), 1, 1, None, body)
        return asyncio.run(alter_incrementally(self._ctx, request)).responses

    def replace(self, *resources: AlterConfigsResourceRequest, validate_only: bool = False) -> list[Any]:
        body = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
        request = Request(api(ApiKey.ALTER_CONFIGS), 2, 1, None, body)
        return asyncio.run(alter(self._ctx, request)).responses


def changes(kind: int, name: str, *rows: Change) -> IncrementalAlterConfigsAlterConfigsResource:
    configs = [
        IncrementalAlterConfigsAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in rows
    ]
    return IncrementalAlterConfigsAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )


def whole(kind: int, name: str, *rows: tuple[str, str | None]) -> AlterConfigsResourceRequest:
    configs = [AlterConfigsAlterableConfig(name=key, value=value) for key, value in rows]
    return AlterConfigsResourceRequest(resource_type=kind, resource_name=name, configs=configs)


@pytest.mark.parametrize(
    "resource",
    [
        changes(BROKER_RESOURCE, "1", ("message.max.bytes", SET, "5")),
        changes(BROKER_RESOURCE, "", ("log.cleanup.policy", APPEND, "compact")),
        changes(BROKER_RESOURCE, "", ("foo.bar", DELETE, None)),
        changes(TOPIC_RESOURCE, "orders", ("retention.ms", SET, "5"), ("nobody.knows", SET, "x")),
        changes(GROUP_RESOURCE, "g", ("consumer.session.timeout.ms", DELETE, None)),
        changes(GROUP_RESOURCE, "g", ("share.session.timeout.ms", SET, "50000")),
        changes(GROUP_RESOURCE, "g", ("share.auto.offset.reset", SET, "by_duration:P1DT2H0.5S")),
    ],
)
def test_acceptable_changes_are_forwarded_to_the_controller(
    resource: IncrementalAlterConfigsAlterConfigsResource,
) -> None:
    node = Node()

    responses = node.change(resource)

    assert [(one.error_code, one.error_message) for one in responses] == [(ErrorCode.NONE, None)]
    assert node.controller.asked == [IncrementalAlterConfigsRequest(resources=[resource])]


@pytest.mark.parametrize(
    ("resource", "code", "words"),
    [
        (
            changes(BROKER_RESOURCE, "1", ("num.partitions", SET, "3")),
            42,
            "cannot be changed while the broker",
        ),
        (
            changes(BROKER_RESOURCE, "", ("num.partitions", SET, "3")),
            42,
            "cannot be changed while the broker",
        ),
        (changes(BROKER_RESOURCE, "1", ("message.max.bytes", SET, "x")), 42, "must be a 32-bit integer"),
        (changes(BROKER_RESOURCE, "1", ("message.max.bytes", SET, "-3")), 42, "must be at least 0"),
        (
            changes(BROKER_RESOURCE, "", ("listeners", SET, "PLAINTEXT://:1")),
            42,
            "is a per-broker setting",
        ),
        (changes(BROKER_RESOURCE, "1", ("foo.bar", SET, "3")), 42, "no such setting"),
        (changes(BROKER_RESOURCE, "1", ("max.connections.per.ip", SET, "0")), 42, "overrides is set"),
        (changes(BROKER_RESOURCE, "5", ("message.max.bytes", SET, "7")), 42, "expected 1, but received 5"),
        (changes(BROKER_RESOURCE, "01", ("message.max.bytes", SET, "7")), 42, "expected 1, but received 01"),
        (
            changes(BROKER_RESOURCE, "x", ("message.max.bytes", SET, "7")),
            42,
            "must be an integer, but it is: x",
        ),
        (changes(BROKER_RESOURCE, "1", ("message.max.bytes", SET, None)), 42, "Null value not supported for"),
        (changes(BROKER_RESOURCE, "1", ("message.max.bytes", APPEND, "7")), 40, "append is not allowed"),
        (changes(BROKER_RESOURCE, "1", ("message.max.bytes", SUBTRACT, "7")), 40, "subtract is not allowed"),
        (changes(BROKER_RESOURCE, "1", ("message.max.bytes", 9, "7")), 42, "Unknown operations type 9"),
        (changes(TOPIC_RESOURCE, "t", ("a", SET, "7"), ("a", SET, "8")), 42, "duplicate config keys"),
        (changes(TOPIC_RESOURCE, "t", ("retention.ms", SET, None)), 42, "Null value not supported for : ret"),
        (changes(8, "1", ("kafka", SET, "DEBUG")), 42, "Unknown resource type 8"),
        (changes(99, "1", ("kafka", SET, "DEBUG")), 42, "Unknown resource type 99"),
        (changes(GROUP_RESOURCE, "g", ("share.session.timeout.ms", SET, "60001")), 40, "must be at most"),
        (changes(GROUP_RESOURCE, "g", ("share.auto.offset.reset", SET, "PT1H")), 40, "must be latest, earl"),
        (changes(GROUP_RESOURCE, "g", ("streams.num.standby.replicas", SET, "3")), 40, "must be at most"),
        (changes(GROUP_RESOURCE, "g", ("nope", SET, "1")), 40, "no such setting"),
        (changes(GROUP_RESOURCE, ""), 42, "must not be empty"),
        (changes(CLIENT_METRICS_RESOURCE, "", ("interval.ms", DELETE, None)), 42, "must not be empty"),
        (changes(CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "100")), 42, "not collected yet"),
    ],
)
def test_refused_changes_are_not_forwarded_to_the_controller(
    resource: IncrementalAlterConfigsAlterConfigsResource, code: int, words: str
) -> None:
    node = Node()

    (answer,) = node.change(resource)

    assert answer.error_code == code
    assert words in answer.error_message
    assert (answer.resource_type, answer.resource_name) == (resource.resource_type, resource.resource_name)
    assert node.controller.asked == []


def test_other_resources_are_forwarded_despite_a_refused_one() -> None:
    node = Node()
    good, bad = changes(TOPIC_RESOURCE, "a"), changes(BROKER_RESOURCE, "1", ("foo", SET, "1"))
    also_good = changes(TOPIC_RESOURCE, "b")

    answers = node.change(good, bad, also_good)

    assert [(one.resource_name, one.error_code) for one in answers] == [("a", 0), ("1", 42), ("b", 0)]
    assert node.controller.asked[0].resources == [good, also_good]


def test_a_duplicate_resource_is_refused_in_both_places() -> None:
    node = Node()

    answers = node.change(*[changes(TOPIC_RESOURCE, "t", ("retention.ms", SET, "1"))] * 2)

    assert [(one.error_code, one.error_message) for one in answers] == [
        (42, "Each resource must appear at most once.")
    ] * 2
    assert node.controller.asked == []


def test_a_change_is_checked_together_with_existing_settings() -> None:
    overrides = {"max.connections.per.ip.overrides": "10.0.0.1:5"}
    no_limit = changes(BROKER_RESOURCE, "1", ("max.connections.per.ip", SET, "0"))
    drop = changes(BROKER_RESOURCE, "1", ("max.connections.per.ip.overrides", DELETE, None))

    assert Node({ME: overrides}).change(no_limit)[0].error_code == ErrorCode.NONE
    assert Node({ALL_BROKERS: overrides}).change(no_limit)[0].error_code == ErrorCode.NONE
    with_both = Node({ME: {**overrides, "max.connections.per.ip": "0"}})
    assert with_both.change(drop)[0].error_code == ErrorCode.INVALID_REQUEST


def test_unusable_settings_written_by_kafka_do_not_block_other_changes() -> None:
    node = Node({ALL_BROKERS: {"leader.replication.throttled.rate": "4"}})

    assert (
        node.change(changes(BROKER_RESOURCE, "", ("max.connections", SET, "9")))[0].error_code
        == ErrorCode.NONE
    )


def test_alter_configs_replaces_all_settings() -> None:
    overrides = {"max.connections.per.ip.overrides": "10.0.0.1:5"}

    alone = Node({ME: overrides}).replace(whole(BROKER_RESOURCE, "1", ("max.connections.per.ip", "0")))

    assert alone[0].error_code == ErrorCode.INVALID_REQUEST
    assert "overrides is set" in alone[0].error_message


def test_alter_configs_is_forwarded_unchanged() -> None:
    node = Node()
    topic = whole(TOPIC_RESOURCE, "t", ("retention.ms", "5"))

    answers = node.replace(topic, whole(TOPIC_RESOURCE, "u", ("retention.ms", None)), validate_only=True)

    assert [one.error_code for one in answers] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert node.controller.asked == [AlterConfigsRequest(resources=[topic], validate_only=True)]


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({}, ("log.cleanup.policy", APPEND, "compact"), "delete,compact"),
        ({"log.cleanup.policy": "compact"}, ("log.cleanup.policy", APPEND, "compact"), "compact"),
        ({"log.cleanup.policy": "compact,delete"}, ("log.cleanup.policy", SUBTRACT, "delete"), "compact"),
        ({"log.cleanup.policy": "compact"}, ("log.cleanup.policy", SUBTRACT, "compact"), ""),
        ({"log.cleanup.policy": "compact"}, ("log.cleanup.policy", SET, "delete"), "delete"),
        ({"log.cleanup.policy": "compact"}, ("log.cleanup.policy", DELETE, None), None),
    ],
)
def test_operations_change_lists(before: dict[str, str], change: Change, after: str | None) -> None:
    operations = changes(BROKER_RESOURCE, "1", change).configs

    assert after_operations(before, operations).get("log.cleanup.policy") == after


def test_a_request_that_fails_as_a_whole_says_so_of_everything_in_it() -> None:
    body = IncrementalAlterConfigsRequest(
        resources=[changes(TOPIC_RESOURCE, "a"), changes(TOPIC_RESOURCE, "b")]
    )

    answer = refuse(body, 1, ErrorCode.UNKNOWN_SERVER_ERROR)

    assert isinstance(answer, IncrementalAlterConfigsResponse)
    assert [one.error_code for one in answer.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
