"""The pure parts of the admin client: setting values, routing of requests, and outcomes."""

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.settings import InvalidSetting
from barnabas.client.admin.call import PartlyRefused, all_of, check, name_of, only, outcome_of
from barnabas.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    Resource,
    ResourceType,
    broker_resource,
    changes_of,
    setting_text,
    topic_resource,
)
from barnabas.client.admin.leaders import by_topic
from barnabas.client.errors import ConnectionLost, Refused, UnknownTopic
from barnabas.client.settings import AdminSettings, parse_settings_of
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import AclOperation, operations_of

ADDRESS = {"bootstrap.servers": "localhost:9092"}
NO = Refused(ErrorCode.INVALID_CONFIG, about="topic b")


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (True, "true"), (False, "false"), (5, "5"), (0.5, "0.5"), (["a", "b"], "a,b"), ((), "")],
)
def test_a_value_is_spelled_as_kafka_spells_it(value: object, text: str) -> None:
    assert setting_text("s", value) == text


@pytest.mark.parametrize("value", [None, object(), {"a": 1}, b"x"])
def test_a_value_without_a_spelling_is_refused(value: object) -> None:
    with pytest.raises(InvalidSetting, match=r"retention\.ms"):
        setting_text("retention.ms", value)


def test_a_brokers_own_settings_are_asked_of_that_broker_and_others_of_any() -> None:
    assert broker_resource(7).node == 7
    assert Resource(ResourceType.BROKER_LOGGER, "7").node == 7
    assert broker_resource(None).node is None
    assert topic_resource("7").node is None
    # Not ids; any broker rejects them.
    assert Resource(ResourceType.BROKER, "seven").node is None
    assert Resource(ResourceType.BROKER, "\u0667").node is None
    assert Resource(ResourceType.BROKER, "7" * 400).node is None


def test_a_resource_is_named_in_errors() -> None:
    assert str(topic_resource("orders")) == "topic orders"
    assert str(broker_resource(None)) == "every broker"
    assert str(Resource(ResourceType.CLIENT_METRICS, "m")) == "client metrics m"


def test_changes_are_named_by_their_operation() -> None:
    changes = changes_of(set_to={"a": 1}, delete=["b"], append={"c": ["x", "y"]}, subtract={"d": "z"})

    assert changes == [
        ConfigChange("b", ConfigOperation.DELETE, None),
        ConfigChange("a", ConfigOperation.SET, "1"),
        ConfigChange("c", ConfigOperation.APPEND, "x,y"),
        ConfigChange("d", ConfigOperation.SUBTRACT, "z"),
    ]


def test_operations_are_bits_and_not_asked_is_none() -> None:
    assert operations_of(1 << 3 | 1 << 10) == {AclOperation.READ, AclOperation.DESCRIBE_CONFIGS}
    assert operations_of(0) == frozenset()
    assert operations_of(-(2**31)) is None
    # Values that only newer brokers have.
    assert operations_of(1 << 30 | 1 << 4) == {AclOperation.WRITE}


def test_partitions_are_grouped_by_topic_once_each() -> None:
    tps = [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("b", 1)]

    assert by_topic(tps) == [("a", [2]), ("b", [0, 1])]


def test_resources_are_named_by_their_keys() -> None:
    assert name_of("orders") == "orders"
    assert name_of(TopicPartition("orders", 3)) == "orders-3"
    assert name_of(Uuid(bytes(15) + b"\x01")) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert name_of(topic_resource("orders")) == "topic orders"


def test_partly_refused_has_the_errors_and_the_results() -> None:
    with pytest.raises(PartlyRefused) as caught:
        all_of({"a": 1, "b": NO, "c": 3})

    assert caught.value.refused == {"b": NO}
    assert caught.value.done == {"a": 1, "c": 3}
    assert all_of({"a": 1}) == {"a": 1}


def test_an_error_that_is_not_a_refusal_is_raised_unchanged() -> None:
    lost = ConnectionLost("host:1", "gone")

    with pytest.raises(ConnectionLost):
        all_of({"a": 1, "b": NO, "c": lost})
    with pytest.raises(ConnectionLost):
        only({"c": lost})
    assert only({"a": 1}) == 1


def test_a_code_becomes_the_error_that_it_names() -> None:
    assert outcome_of(0, 5, about="x") == 5
    unknown = outcome_of(3, 5, about="topic x", message="nobody knows it")
    assert isinstance(unknown, UnknownTopic)
    assert str(unknown) == "topic x: UNKNOWN_TOPIC_OR_PARTITION: nobody knows it"
    check(0, about="x")
    with pytest.raises(Refused) as caught:
        check(40, about="x")
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_the_defaults_are_those_of_kafkas_admin() -> None:
    settings = parse_settings_of(AdminSettings, ADDRESS, {})

    assert settings.retries == 2**31 - 1
    assert settings.default_api_timeout_ms == 60_000
    assert settings.connections_max_idle_ms == 300_000


@pytest.mark.parametrize("name", ["bootstrap.controllers", "metadata.recovery.strategy", "linger.ms"])
def test_unsupported_admin_settings_are_refused(name: str) -> None:
    with pytest.raises(BarnabasError, match=name):
        parse_settings_of(AdminSettings, {**ADDRESS, name: "1"}, {})
