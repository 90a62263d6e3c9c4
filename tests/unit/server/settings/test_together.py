"""Settings that depend on one another. Each accepted and refused case was tried on Kafka 4.3.0."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.endpoints import Endpoint
from barnabas.server.settings.group_limits import group_settings
from support.broker_properties import combined

MAP = "listener.security.protocol.map"
TWO_STACKS = "PLAINTEXT://127.0.0.1:9092,OTHER://[::1]:9092,CONTROLLER://localhost:9093"
CLIENTS = "CLIENTS://localhost:9092,CONTROLLER://localhost:9093"
FOO = "PLAINTEXT://localhost:9092,FOO://localhost:9094,CONTROLLER://localhost:9093"


@pytest.mark.parametrize(
    "changes",
    [
        {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "localhost:9093"},
        {"controller.quorum.voters": "1@0.0.0.0:0"},
        {"controller.quorum.voters": "1@[::1]:9093"},
        {"listeners": TWO_STACKS, MAP: "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT"},
        {"listeners": "PLAINTEXT://localhost:0,CONTROLLER://localhost:0"},
        {"listeners": "plaintext://localhost:9092,CONTROLLER://localhost:9093"},
        {"listeners": "PLAINTEXT://localhost:9092,controller://localhost:9093"},
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
        {
            "listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093",
            "advertised.listeners": "PLAINTEXT://host:9092",
        },
        {"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://0.0.0.0:9093"},
        {"advertised.listeners": "PLAINTEXT://a:9092,CONTROLLER://b:9092"},
        {"advertised.listeners": "PLAINTEXT://a:0"},
        {"controller.listener.names": "CONTROLLER,CONTROLLER"},
        {MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:plaintext"},
        {"inter.broker.listener.name": "plaintext"},
        {
            "listeners": CLIENTS,
            MAP: "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENTS",
        },
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:3"},
        {"connections.max.idle.ms": "101"},
        {"connections.max.idle.ms": "-1"},
        {"log.cleaner.dedupe.buffer.size": "1048577"},
        {"log.cleaner.dedupe.buffer.size": "2097154", "log.cleaner.threads": "2"},
        {"replica.fetch.wait.max.ms": "30000"},
        {"group.share.session.timeout.ms": "60000", "group.share.heartbeat.interval.ms": "15000"},
        {"group.coordinator.rebalance.protocols": "consumer,classic"},
        {"log.retention.ms": "-5"},
        {"group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform"},
    ],
)
def test_settings_that_kafka_accepts_are_accepted(changes: dict[str, str | None]) -> None:
    BrokerSettings.parse(combined(changes))


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"node.id": None}, "node.id", "must be set"),
        ({"broker.id": "2"}, "broker.id", "must equal node.id=1"),
        ({"process.roles": None}, "process.roles", "must be set"),
        ({"process.roles": ""}, "process.roles", "one or more of broker, controller"),
        ({"process.roles": "broker,boss"}, "process.roles", "one or more of broker, controller"),
        (
            {"controller.quorum.voters": "2@localhost:9093"},
            "controller.quorum.voters",
            "must include this controller, node.id=1",
        ),
        ({"controller.quorum.voters": None}, "controller.quorum.voters", "as 1@host:port"),
        ({"controller.quorum.voters": "localhost:9093"}, "controller.quorum.voters", "must be id@host:port"),
        (
            {"controller.quorum.voters": "x@localhost:9093"},
            "controller.quorum.voters",
            "where id is a number",
        ),
        (
            {"controller.quorum.voters": "1@localhost"},
            "controller.quorum.voters",
            "'localhost' must be host:port",
        ),
        (
            {"controller.quorum.bootstrap.servers": "localhost"},
            "controller.quorum.bootstrap.servers",
            "must be host:port",
        ),
        (
            {"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9092"},
            "listeners",
            "PLAINTEXT and CONTROLLER have the same port 9092",
        ),
        (
            {"listeners": "PLAINTEXT://a:9092,PLAINTEXT://a:9094,CONTROLLER://a:9093"},
            "listeners",
            "duplicate listener PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://localhost,CONTROLLER://a:9093"},
            "listeners",
            "'PLAINTEXT://localhost' must be",
        ),
        ({"listeners": "PLAINTEXT:a:9092,CONTROLLER://a:9093"}, "listeners", "must be NAME://host:port"),
        ({"listeners": "://a:9092,CONTROLLER://a:9093"}, "listeners", "must be NAME://host:port"),
        ({"listeners": FOO}, "listeners", "listener FOO is not in listener.security.protocol.map"),
        (
            {"listeners": "CONTROLLER://localhost:9093"},
            "advertised.listeners",
            "must have a listener for clients",
        ),
        (
            {"listeners": "PLAINTEXT://localhost:9092"},
            "controller.listener.names",
            "CONTROLLER must be one of",
        ),
        (
            {"listeners": None},
            "controller.listener.names",
            "CONTROLLER must be one of the listeners: PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093"},
            "advertised.listeners",
            "clients cannot connect to 0.0.0.0",
        ),
        (
            {"advertised.listeners": "FOO://localhost:9092"},
            "advertised.listeners",
            "listener FOO is not in listener.security.protocol.map",
        ),
        (
            {"advertised.listeners": "CONTROLLER://b:9092"},
            "advertised.listeners",
            "must have a listener for clients",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"},
            "advertised.listeners",
            "duplicate listener PLAINTEXT",
        ),
        (
            {
                "advertised.listeners": "PLAINTEXT://a:1,FOO://b:2",
                MAP: "PLAINTEXT:PLAINTEXT,FOO:PLAINTEXT,CONTROLLER:PLAINTEXT",
            },
            "advertised.listeners",
            "FOO must be one of the listeners: PLAINTEXT, CONTROLLER",
        ),
        ({"controller.listener.names": None}, "controller.listener.names", "must be set"),
        ({"controller.listener.names": "CONTROLLER,BAR"}, "controller.listener.names", "BAR must be one of"),
        (
            {"controller.listener.names": "PLAINTEXT"},
            "listeners",
            "listener CONTROLLER is not in listener.security.protocol.map",
        ),
        (
            {MAP: "PLAINTEXT:PLAINTEXT"},
            "listeners",
            "listener CONTROLLER is not in listener.security.protocol.map",
        ),
        ({MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:FOO"}, MAP, "'CONTROLLER:FOO' must be NAME:PROTOCOL"),
        ({MAP: "PLAINTEXT"}, MAP, "'PLAINTEXT' must be NAME:PROTOCOL"),
        ({MAP: ""}, "listeners", "listener PLAINTEXT is not in listener.security.protocol.map"),
        (
            {"inter.broker.listener.name": "FOO"},
            "inter.broker.listener.name",
            "one of the advertised broker listeners: PLAINTEXT",
        ),
        (
            {"inter.broker.listener.name": "CONTROLLER"},
            "inter.broker.listener.name",
            "must name one of the advertised broker listeners",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "security.inter.broker.protocol",
            "only one of",
        ),
        (
            {"security.inter.broker.protocol": "SSL"},
            "security.inter.broker.protocol",
            "must name one of the advertised broker listeners",
        ),
        (
            {"listeners": CLIENTS, MAP: "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT"},
            "security.inter.broker.protocol",
            "inter.broker.listener.name selects one",
        ),
        (
            {"queued.max.request.bytes": "100"},
            "queued.max.request.bytes",
            "must be at least socket.request.max",
        ),
        (
            {"group.consumer.assignors": "uniform,foo"},
            "group.consumer.assignors",
            "one or more of uniform, range",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip",
            "unless max.connections.per.ip.overrides is set",
        ),
        (
            {"max.connections.per.ip.overrides": "127.0.0.1"},
            "max.connections.per.ip.overrides",
            "address:number",
        ),
        (
            {"max.connections.per.ip.overrides": "127.0.0.1:x"},
            "max.connections.per.ip.overrides",
            "address:number",
        ),
        (
            {"max.connections.per.ip.overrides": "bad host:1"},
            "max.connections.per.ip.overrides",
            "address:number",
        ),
        ({"connections.max.idle.ms": "100"}, "connections.max.idle.ms", "must be negative or more than"),
        ({"connections.max.idle.ms": "0"}, "connections.max.idle.ms", "must be negative or more than"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size", "at least 1048577"),
        (
            {"log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.threads": "2"},
            "log.cleaner.dedupe.buffer.size",
            "must be more than 1048576 for each of log.cleaner.threads=2",
        ),
        (
            {"replica.socket.timeout.ms": "499"},
            "replica.socket.timeout.ms",
            "must be at least replica.fetch.wait.max.ms=500",
        ),
        (
            {"replica.fetch.wait.max.ms": "30001", "replica.socket.timeout.ms": "40000"},
            "replica.lag.time.max.ms",
            "must be at least replica.fetch.wait.max.ms=30001",
        ),
        (
            {"group.share.session.timeout.ms": "60001"},
            "group.share.session.timeout.ms",
            "must be at most group.share.max.session.timeout.ms=60000",
        ),
        (
            {"group.share.record.lock.duration.ms": "14999"},
            "group.share.record.lock.duration.ms",
            "must be at least group.share.min.record.lock.duration.ms=15000",
        ),
        (
            {"group.streams.num.standby.replicas": "3"},
            "group.streams.num.standby.replicas",
            "must be at most group.streams.max.standby.replicas=2",
        ),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "group.coordinator.rebalance.protocols",
            "classic, which cannot be disabled",
        ),
    ],
)
def test_settings_that_kafka_rejects_are_rejected_with_the_reason(
    changes: dict[str, str | None], name: str, words: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        BrokerSettings.parse(combined(changes))

    assert refused.value.name == name
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"process.roles": "broker", "node.id": "2"}, "a node with one role is not built yet"),
        ({"controller.quorum.voters": "1@a:1,2@b:2"}, "a quorum of several controllers is not built yet"),
        ({"controller.quorum.voters": "1@a:1,1@b:2"}, "duplicate voter 1"),
        ({"listeners": "PLAINTEXT://a:70000,CONTROLLER://a:1"}, "must be between 0 and 65535"),
        ({"listeners": "PLAINTEXT://a:-1,CONTROLLER://a:1"}, "must be between 0 and 65535"),
        (
            {"listeners": "SSL://a:1,CONTROLLER://a:2", MAP: "SSL:SSL,CONTROLLER:PLAINTEXT"},
            "listener SSL has protocol SSL; only PLAINTEXT is supported so far",
        ),
        ({"max.connections.per.ip.overrides": "127.0.0.1:-1"}, "where number is at least 0"),
        ({"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "3"}, "is above"),
        ({"socket.send.buffer.bytes": "0"}, "must be -1 or at least 1"),
        ({"group.coordinator.rebalance.protocols": "classic,share"}, "share groups are not built yet"),
    ],
)
def test_unsupported_values_that_kafka_accepts_are_refused(
    changes: dict[str, str | None], words: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        BrokerSettings.parse(combined(changes))

    assert words in str(refused.value)


def test_an_unused_protocol_mapping_is_accepted() -> None:
    settings = BrokerSettings.parse(combined({MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL"}))

    assert [one.name for one in settings.broker_listeners] == ["PLAINTEXT"]


def test_of_two_mappings_of_one_listener_the_last_counts() -> None:
    with pytest.raises(InvalidSetting, match="listener PLAINTEXT has protocol SSL"):
        BrokerSettings.parse(combined({MAP: "PLAINTEXT:PLAINTEXT,PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"}))


def test_controllers_are_advertised_at_their_listener_by_default() -> None:
    plain = BrokerSettings.parse(combined({"advertised.listeners": "PLAINTEXT://a:1"}))
    told = BrokerSettings.parse(combined({"advertised.listeners": "PLAINTEXT://a:1,CONTROLLER://b:2"}))

    assert [(one.host, one.port) for one in plain.advertised_controller_listeners] == [("localhost", 9093)]
    assert [(one.host, one.port) for one in told.advertised_controller_listeners] == [("b", 2)]
    assert [(one.host, one.port) for one in told.advertised_broker_listeners] == [("a", 1)]


def test_an_address_of_ipv6_loses_its_brackets() -> None:
    settings = BrokerSettings.parse(
        combined({"listeners": "PLAINTEXT://[::1]:9092,CONTROLLER://localhost:9093"})
    )

    assert settings.broker_listeners[0].host == "::1"


def test_unspecified_host_and_port_of_a_listener_are_filled_in() -> None:
    anywhere = Endpoint(name="PLAINTEXT", host="", port=0, protocol="PLAINTEXT")
    fixed = Endpoint(name="PLAINTEXT", host="a", port=1, protocol="PLAINTEXT")

    assert anywhere.reached_at(hostname="box", port=4711) == Endpoint(
        name="PLAINTEXT", host="box", port=4711, protocol="PLAINTEXT"
    )
    assert fixed.reached_at(hostname="box", port=4711) == fixed


def test_assignors_can_be_given_by_kafkas_class_names() -> None:
    package = "org.apache.kafka.coordinator.group.assignor"
    told = f"{package}.RangeAssignor,uniform,{package}.UniformAssignor"
    settings = BrokerSettings.parse(combined({"group.consumer.assignors": told}))

    assert group_settings(settings, EMPTY_IMAGE).assignors == ("range", "uniform")
