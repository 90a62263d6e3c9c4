"""What may be changed on a running broker."""

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
        ("message.max.bytes", "x", "must be a whole number"),
        ("retention.ms", "5", "no such setting; is log.retention.ms meant?"),
        ("listener.name.plaintext.ssl.keystore.location", "/x", "a listener cannot have settings of its own"),
    ],
)
def test_what_cannot_be_changed_is_refused_with_the_reason(
    broker: str, name: str, value: str, words: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        validate_broker_config({"max.connections": "5", name: value}, broker)

    assert refused.value.name == name
    assert words in str(refused.value)


def test_a_setting_of_one_broker_cannot_be_set_for_all() -> None:
    with pytest.raises(InvalidSetting, match="must be set for one broker, not for all of them"):
        validate_broker_config({"listeners": "PLAINTEXT://:1"}, ALL)


def test_what_somebody_else_wrote_is_used_as_far_as_it_can_be() -> None:
    good, wrong = usable(
        {"message.max.bytes": "5", "foo.bar": "1", "leader.replication.throttled.rate": "4"}, ALL
    )

    assert good == {"message.max.bytes": "5"}
    assert [error.name for error in wrong] == ["foo.bar", "leader.replication.throttled.rate"]


def test_listeners_stay_as_they_are_until_a_restart() -> None:
    with pytest.raises(InvalidSetting, match="it is read once, at the start of the broker"):
        validate_broker_config({"listeners": "PLAINTEXT://:1"}, "1")
