"""Client settings: Kafka's names, keywords, and refused settings."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.client.settings import ClientSettings, NoSettings, parse_settings_of, split_address


def parsed(given: dict[str, object] | None = None, **named: object) -> ClientSettings:
    return parse_settings_of(ClientSettings, given, named)


def test_settings_have_kafkas_names_or_are_keywords() -> None:
    settings = parsed({"bootstrap.servers": "a:1,b:2", "request.timeout.ms": "5"}, retry_backoff_ms=7)

    assert settings.bootstrap_servers == ("a:1", "b:2")
    assert settings.request_timeout_ms == 5
    assert settings.retry_backoff_ms == 7


def test_lists_may_be_lists() -> None:
    assert parsed(bootstrap_servers=["a:1", "b:2"]).bootstrap_servers == ("a:1", "b:2")


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidSetting, match=r"did you mean request\.timeout\.ms"):
        parsed(bootstrap_servers="a:1", request_timeout_mss=5)


@pytest.mark.parametrize(
    "name", ["ssl.keystore.location", "sasl.mechanism", "key.serializer", "metric.reporters"]
)
def test_unsupported_kafka_settings_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InvalidSetting, match=r"not supported|are bytes") as refusal:
        parsed({"bootstrap.servers": "a:1", name: "x"})

    assert refusal.value.name == name


def test_a_setting_given_twice_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="twice"):
        parsed({"bootstrap.servers": "a:1"}, bootstrap_servers="b:2")


def test_a_value_of_no_known_type_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="must be a string, a number"):
        parsed(bootstrap_servers="a:1", client_id=object())


def test_a_value_out_of_its_range_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="at least 1"):
        parsed(bootstrap_servers="a:1", request_timeout_ms=0)


def test_none_means_not_given() -> None:
    assert parsed(bootstrap_servers="a:1", client_id=None).client_id == ""


def test_without_brokers_there_is_no_client() -> None:
    with pytest.raises(NoSettings, match=r"bootstrap\.servers"):
        parsed()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("localhost:9092", ("localhost", 9092)),
        ("[::1]:1", ("::1", 1)),
        ("PLAINTEXT://h:2", ("h", 2)),
    ],
)
def test_addresses(address: str, place: tuple[str, int]) -> None:
    assert split_address(address) == place


@pytest.mark.parametrize("address", ["", "h", "h:", ":1", "h:0", "h:65536", "h:x", "h:-1", "h:\u0661"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidSetting, match="HOST:PORT"):
        split_address(address)
