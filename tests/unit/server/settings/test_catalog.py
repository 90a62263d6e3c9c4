"""The declarations compared with the settings of a Kafka 4.3 broker, and their own consistency."""

import csv
from dataclasses import fields
from pathlib import Path

import pytest

from barnabas.base.settings import InvalidSetting, Support, format_value
from barnabas.server.settings.broker_settings import TOPIC_FALLBACKS, BrokerSettings
from barnabas.server.settings.catalog import BROKER, CLIENT_METRICS, GROUP, find
from barnabas.server.settings.declare import Change
from barnabas.storage.topic_settings import SETTINGS as TOPIC

FIXTURE = Path(__file__).parents[3] / "fixtures" / "kafka-4.3" / "configs.tsv"
# The value that the sample's broker had was not the default, so the fixture does not know the default.
SET_IN_THIS_RUN = "(set in this run)"
# Read together with others, under another name.
COMBINED = {
    "broker.id": "node_id",
    "listeners": "broker_listeners",
    "advertised.listeners": "advertised_broker_listeners",
    "listener.security.protocol.map": "broker_listeners",
    "controller.listener.names": "controller_listeners",
    "security.inter.broker.protocol": "inter_broker_listener_name",
    "log.dir": "log_dirs",
    "controller.quorum.bootstrap.servers": "controller_quorum_voters",
}


def rows(scope: str) -> dict[str, dict[str, str]]:
    with FIXTURE.open() as lines:
        found = {row["name"]: row for row in csv.DictReader(lines, delimiter="\t") if row["scope"] == scope}
    assert found, scope
    return found


SCOPES = {
    "broker": {name: one for name, one in BROKER.items() if not one.internal},
    "group": GROUP,
    "client_metrics": CLIENT_METRICS,
}


@pytest.mark.parametrize("scope", SCOPES)
def test_the_settings_are_those_of_kafka(scope: str) -> None:
    assert SCOPES[scope].keys() == rows(scope).keys()


@pytest.mark.parametrize("scope", SCOPES)
def test_types_defaults_and_secrets_are_those_of_kafka(scope: str) -> None:
    for name, theirs in rows(scope).items():
        ours = SCOPES[scope][name]
        assert ours.type.label == theirs["type"], name
        assert ours.sensitive == (theirs["sensitive"] == "sensitive"), name
        assert ours.is_dynamic == (theirs["change"] == "dynamic"), name
        if theirs["default"] != SET_IN_THIS_RUN:
            assert (format_value(ours.default) or "") == theirs["default"].replace("null", ""), name
            assert (ours.default is None) == (theirs["default"] == "null"), name


@pytest.mark.parametrize("scope", SCOPES)
def test_every_setting_has_a_one_sentence_description(scope: str) -> None:
    for name, one in SCOPES[scope].items():
        assert one.doc.endswith("."), name
        assert one.doc[0].isupper() or one.doc.split()[0] in TOPIC, name
        assert (one.status.reason == "") == (one.status.support is Support.WORKS), name


def test_every_supported_setting_is_read_somewhere() -> None:
    read = {one.name for one in fields(BrokerSettings)}

    unread = {
        name
        for name, one in BROKER.items()
        if one.works
        and one.attribute not in read
        and name not in TOPIC_FALLBACKS
        and COMBINED.get(name) not in read
    }

    assert unread == set()


def test_topic_defaults_have_the_type_and_default_of_the_topic_setting() -> None:
    for setting in TOPIC.values():
        for synonym in setting.synonyms:
            assert BROKER[synonym.name].type is synonym.type, synonym.name
        if setting.synonyms:
            first = BROKER[setting.synonyms[0].name]
            assert first.default in (setting.default, None), first.name


def test_only_settings_that_are_dynamic_in_kafka_can_be_fixed() -> None:
    for name, one in BROKER.items():
        assert not one.fixed or one.is_dynamic, name
        assert not one.fixed or one.works, name


def test_per_broker_and_cluster_wide_settings_are_distinguished() -> None:
    assert find("listeners").change is Change.PER_BROKER
    assert find("message.max.bytes").change is Change.CLUSTER_WIDE
    assert find("num.partitions").change is Change.READ_ONLY


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(
        InvalidSetting, match=r"num\.partition=\(hidden\): no such setting; did you mean num\.partitions"
    ):
        find("num.partition")


def test_an_unknown_name_without_a_similar_one_is_refused_without_a_suggestion() -> None:
    with pytest.raises(InvalidSetting, match=r"no such setting$"):
        find("xyzzy")


def test_connection_limits_can_be_set_for_one_listener() -> None:
    name = "listener.name.plaintext.max.connections"

    assert find(name).name == name
    assert find(name).parse("5") == 5
    with pytest.raises(InvalidSetting, match="must be at least 0"):
        find(name).parse("-1")


@pytest.mark.parametrize(
    "name", ["listener.name.plaintext.num.partitions", "listener.name.max.connections", "listener.name."]
)
def test_other_settings_of_one_listener_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InvalidSetting, match="this setting cannot be set for a single listener yet"):
        find(name)


def test_an_unsupported_setting_accepts_only_its_default() -> None:
    rate = find("leader.replication.throttled.rate")

    assert rate.parse_supported("9223372036854775807") == 2**63 - 1
    with pytest.raises(InvalidSetting, match=r"rate=4: traffic between replicas cannot be throttled"):
        rate.parse_supported("4")


def test_a_refused_secret_is_not_repeated() -> None:
    with pytest.raises(InvalidSetting) as refused:
        find("ssl.key.password").parse_supported("hunter2")

    assert "hunter2" not in str(refused.value)
    assert "TLS is not built yet" in str(refused.value)


def test_duplicate_list_entries_are_dropped() -> None:
    assert find("log.dirs").parse("/a, /b,/a") == ("/a", "/b")


@pytest.mark.parametrize("text", ["", "/a,,/b"])
def test_lists_that_kafka_refuses_are_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="a list of at least one entry"):
        find("log.dirs").parse(text)
