"""Which settings can be changed on a running broker."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.server.settings.change import usable, validate_broker_config

ALL, ONE = "", "1"


@pytest.mark.parametrize("broker", [ALL, ONE])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message.max.bytes", "5000"),
        ("log.retention.ms", "-1"),
        ("max.connections", "0"),
        ("compression.type", "zstd"),
        # Nothing to tune.
        ("num.network.threads", "8"),
        ("group.streams.assignment.interval.ms", "5"),
        ("max.connection.creation.rate", "7"),
        ("listener.name.plaintext.max.connections", "7"),
        # Not supported, but this is the default.
        ("leader.replication.throttled.rate", "9223372036854775807"),
    ],
)
def test_dynamic_settings_can_be_set_for_one_broker_and_for_all(broker: str, name: str, value: str) -> None:
    validate_broker_config({name: value}, broker)


@pytest.mark.parametrize("broker", [ALL, ONE])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num.partitions", "3", "cannot be changed while the broker runs; set it in its properties file"),
        ("log.retention.hours", "3", "cannot be changed while the broker runs"),
        ("num.network.threads", "0", "must be at least 1"),
        ("leader.replication.throttled.rate", "1000", "traffic between replicas cannot be throttled yet"),
        ("message.max.bytes", "-3", "must be at least 0"),
        ("message.max.bytes", "x", "must be a 32-bit integer"),
        ("retention.ms", "5", "no such setting; did you mean log.retention.ms?"),
        (
            "listener.name.plaintext.ssl.keystore.location",
            "/x",
            "this setting cannot be set for a single listener",
        ),
    ],
)
def test_a_read_only_setting_is_rejected_with_the_reason(
    broker: str, name: str, value: str, words: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        validate_broker_config({"max.connections": "5", name: value}, broker)

    assert refused.value.name == name
    assert words in str(refused.value)


def test_a_per_broker_setting_cannot_be_set_cluster_wide() -> None:
    with pytest.raises(InvalidSetting, match="is a per-broker setting; set it for a single broker"):
        validate_broker_config({"listeners": "PLAINTEXT://:1"}, ALL)


def test_valid_settings_of_a_partly_invalid_resource_are_used() -> None:
    good, wrong = usable(
        {"message.max.bytes": "5", "foo.bar": "1", "leader.replication.throttled.rate": "4"}, ALL
    )

    assert good == {"message.max.bytes": "5"}
    assert [error.name for error in wrong] == ["foo.bar", "leader.replication.throttled.rate"]


def test_listeners_cannot_be_changed_without_a_restart() -> None:
    with pytest.raises(InvalidSetting, match="it is only read at startup"):
        validate_broker_config({"listeners": "PLAINTEXT://:1"}, "1")
