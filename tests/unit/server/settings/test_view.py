"""The content of DescribeConfigs: values, sources and synonyms, as in Kafka 4.3."""

import csv
from pathlib import Path

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.server.settings.view import Given, SettingsView, Shown, Source
from support.broker_properties import combined

FIXTURE = Path(__file__).parents[3] / "fixtures" / "kafka-4.3" / "configs.tsv"
DEFAULT, STATIC = Source.DEFAULT_CONFIG, Source.STATIC_BROKER_CONFIG
OF_ALL, OF_ONE = Source.DYNAMIC_DEFAULT_BROKER_CONFIG, Source.DYNAMIC_BROKER_CONFIG
OF_TOPIC = Source.DYNAMIC_TOPIC_CONFIG


def view(
    static: dict[str, str] | None = None,
    *,
    for_all: dict[str, str] | None = None,
    for_one: dict[str, str] | None = None,
) -> SettingsView:
    return SettingsView(static=combined(static), cluster_wide=for_all or {}, per_broker=for_one or {})


def row(rows: list[Shown], name: str) -> Shown:
    return next(one for one in rows if one.name == name)


def fixture(scope: str) -> list[dict[str, str]]:
    with FIXTURE.open() as lines:
        found = [one for one in csv.DictReader(lines, delimiter="\t") if one["scope"] == scope]
    assert found, scope
    return found


@pytest.mark.parametrize("scope", ["broker", "topic", "group", "client_metrics"])
def test_a_fresh_broker_shows_the_same_as_one_of_kafka(scope: str) -> None:
    fresh = view()
    shown = {
        "broker": fresh.broker(),
        "topic": fresh.topic({}),
        "group": fresh.group({}),
        "client_metrics": fresh.client_metrics({}),
    }[scope]

    rows = fixture(scope)

    assert [one.name for one in shown] == sorted(theirs["name"] for theirs in rows)
    for theirs in rows:
        ours = row(shown, theirs["name"])
        assert ours.type.label == theirs["type"], ours.name
        assert ours.read_only == (theirs["change"] == "read-only"), ours.name
        assert ours.is_sensitive == (theirs["sensitive"] == "sensitive"), ours.name
        others = [one.name for one in ours.synonyms if one.name != ours.name]
        assert ",".join(dict.fromkeys(others)) == theirs["synonyms"], ours.name
        if "(set" not in theirs["default"]:
            assert ("null" if ours.value is None else ours.value) == theirs["default"], ours.name
            assert ours.source is DEFAULT, ours.name


def test_synonyms_are_shown_in_order_of_precedence() -> None:
    shown = view(
        {"message.max.bytes": "1"}, for_all={"message.max.bytes": "2"}, for_one={"message.max.bytes": "3"}
    ).broker()

    found = row(shown, "message.max.bytes")

    assert (found.value, found.source) == ("3", OF_ONE)
    assert found.synonyms == (
        Given("message.max.bytes", "3", OF_ONE),
        Given("message.max.bytes", "2", OF_ALL),
        Given("message.max.bytes", "1", STATIC),
        Given("message.max.bytes", "1048588", DEFAULT),
    )


def test_a_topic_shows_its_own_value_before_those_of_brokers() -> None:
    shown = view(for_all={"log.retention.ms": "77"}, for_one={"log.retention.ms": "88"}).topic(
        {"retention.ms": "6000"}
    )

    assert row(shown, "retention.ms").synonyms == (
        Given("retention.ms", "6000", OF_TOPIC),
        Given("log.retention.ms", "88", OF_ONE),
        Given("log.retention.ms", "77", OF_ALL),
        Given("log.retention.hours", "168", DEFAULT),
    )


def test_a_topic_inherits_broker_settings() -> None:
    found = row(view(for_all={"log.cleanup.policy": "compact"}).topic({}), "cleanup.policy")

    assert (found.value, found.source) == ("compact", OF_ALL)
    assert found.synonyms == (
        Given("log.cleanup.policy", "compact", OF_ALL),
        Given("log.cleanup.policy", "delete", DEFAULT),
    )


def test_synonyms_in_hours_are_hidden_while_milliseconds_are_not_set() -> None:
    shown = view({"log.retention.hours": "1"})

    assert row(shown.broker(), "log.retention.ms").value is None
    assert row(shown.broker(), "log.retention.ms").synonyms == ()
    hours = row(shown.broker(), "log.retention.hours")
    assert hours.synonyms == (
        Given("log.retention.hours", "1", STATIC),
        Given("log.retention.hours", "168", DEFAULT),
    )
    assert row(shown.topic({}), "retention.ms").value == "3600000"
    assert row(shown.topic({}), "retention.ms").source is DEFAULT


def test_values_are_shown_parsed_and_synonyms_as_written() -> None:
    found = row(view({"auto.create.topics.enable": " TRUE "}).broker(), "auto.create.topics.enable")

    assert found.value == "true"
    assert found.synonyms[0] == Given("auto.create.topics.enable", " TRUE ", STATIC)


def test_the_node_id_is_shown_as_node_id_and_broker_id() -> None:
    by_node = view().broker()
    by_broker = SettingsView(static={"broker.id": "4"}, cluster_wide={}, per_broker={}).broker()

    assert (row(by_node, "broker.id").value, row(by_node, "broker.id").source) == ("1", STATIC)
    assert row(by_broker, "node.id").value == "4"


def test_secrets_are_not_shown() -> None:
    found = row(view({"ssl.key.password": "hunter2"}).broker(), "ssl.key.password")

    assert found.is_sensitive
    assert found.value is None
    assert found.synonyms == (Given("ssl.key.password", None, STATIC),)


def test_internal_settings_are_shown_only_if_they_are_set() -> None:
    name = "log.initial.task.delay.ms"

    assert name not in [one.name for one in view().broker()]
    assert row(view({name: "5"}).broker(), name).value == "5"


def test_cluster_wide_settings_are_shown_without_other_levels() -> None:
    shown = view({"max.connections": "4"}, for_all={"max.connections": "5"}, for_one={"max.connections": "6"})

    assert [(one.name, one.value, one.source) for one in shown.cluster_wide()] == [
        ("max.connections", "5", OF_ALL)
    ]
    assert shown.cluster_wide()[0].synonyms == (Given("max.connections", "5", OF_ALL),)
    assert view().cluster_wide() == []


def test_a_groups_own_setting_precedes_the_brokers() -> None:
    shown = view({"group.consumer.session.timeout.ms": "50000"}).group(
        {"consumer.session.timeout.ms": "55000"}
    )

    assert row(shown, "consumer.session.timeout.ms").value == "55000"
    assert row(shown, "consumer.session.timeout.ms").synonyms == (
        Given("consumer.session.timeout.ms", "55000", Source.GROUP_CONFIG),
        Given("group.consumer.session.timeout.ms", "50000", STATIC),
        Given("group.consumer.session.timeout.ms", "45000", DEFAULT),
    )
    alone = row(shown, "share.auto.offset.reset")
    assert alone.synonyms == (Given("share.auto.offset.reset", "latest", DEFAULT),)


def test_a_subscription_shows_its_own_settings() -> None:
    shown = view().client_metrics({"interval.ms": "100"})

    assert row(shown, "interval.ms").value == "100"
    assert row(shown, "interval.ms").source is Source.CLIENT_METRICS_CONFIG
    assert row(shown, "interval.ms").synonyms == (Given("interval.ms", "100", Source.CLIENT_METRICS_CONFIG),)
    assert (row(shown, "match").source, row(shown, "match").synonyms) == (DEFAULT, ())


def test_an_unsupported_topic_setting_is_an_error() -> None:
    with pytest.raises(InvalidSetting, match="this broker has no remote storage"):
        view().topic({"remote.storage.enable": "true"})
