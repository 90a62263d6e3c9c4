"""Parsing of broker settings: typed values, refused settings and their errors."""

from pathlib import Path

import pytest

from barnabas.base import properties
from barnabas.base.settings import InvalidSetting
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.endpoints import Endpoint, Voter
from support.broker_properties import combined

SHIPPED = Path(__file__).parents[3] / "fixtures" / "properties" / "server.properties"


def parse(**changes: str | None) -> BrokerSettings:
    """With `__` for `.` in names, so that they can be keywords."""
    return BrokerSettings.parse(combined({name.replace("__", "."): text for name, text in changes.items()}))


def test_a_node_gets_the_defaults_of_kafka() -> None:
    settings = parse()

    assert settings.node_id == 1
    assert settings.num_partitions == 1
    assert settings.socket_request_max_bytes == 100 << 20
    assert settings.broker_session_timeout_ms == 9000
    assert settings.log_dirs == ("/tmp/kafka-logs",)
    assert settings.metadata_log_dir == "/tmp/kafka-logs"
    assert settings.broker_rack is None
    assert settings.log_config.retention_ms == 7 * 24 * 60 * 60 * 1000


def test_kafkas_default_properties_file_is_accepted() -> None:
    settings = BrokerSettings.parse(properties.parse(SHIPPED.read_bytes()))

    assert settings.broker_listeners == (
        Endpoint(name="PLAINTEXT", host="", port=9092, protocol="PLAINTEXT"),
    )
    assert settings.controller_listeners == (
        Endpoint(name="CONTROLLER", host="", port=9093, protocol="PLAINTEXT"),
    )
    assert settings.advertised_broker_listeners[0].host == "localhost"
    assert settings.advertised_controller_listeners[0].host == "localhost"
    assert settings.controller_quorum_voters == (Voter(id=1, host="localhost", port=9093),)
    assert settings.num_recovery_threads_per_data_dir == 1


def test_a_setting_with_nothing_to_tune_is_still_validated() -> None:
    with pytest.raises(InvalidSetting, match=r"share\.coordinator\.threads=0: must be at least 1"):
        parse(share__coordinator__threads="0")


def test_every_setting_has_a_typed_value() -> None:
    values = parse(num__network__threads="8").values

    assert values.keys() == BROKER.keys()
    assert values["num.network.threads"] == 8
    assert values["replica.fetch.wait.max.ms"] == 500


def test_topic_defaults_reach_the_log_config() -> None:
    settings = parse(log__retention__hours="1", message__max__bytes="5000", log__cleanup__policy="compact")

    assert settings.log_config.retention_ms == 3_600_000
    assert settings.log_config.max_message_bytes == 5000
    assert settings.log_config.compacts
    assert settings.topic_defaults.keys() == {
        "log.retention.hours",
        "message.max.bytes",
        "log.cleanup.policy",
    }


def test_upkeep_intervals_follow_the_settings() -> None:
    upkeep = parse(
        log__retention__check__interval__ms="7",
        log__flush__offset__checkpoint__interval__ms="900",
        log__flush__start__offset__checkpoint__interval__ms="800",
        log__cleaner__backoff__ms="5",
        log__cleaner__enable="false",
        log__flush__scheduler__interval__ms="100",
        producer__id__expiration__ms="3",
        producer__id__expiration__check__interval__ms="4",
        log__cleaner__dedupe__buffer__size="2000000",
    ).upkeep

    assert upkeep.retention_check_ms == 7
    assert upkeep.checkpoint_ms == 800
    assert upkeep.cleaner_backoff_ms == 5
    assert not upkeep.cleaner_enable
    assert upkeep.flush_check_ms == 100
    assert upkeep.producer_expiration_ms == 3
    assert upkeep.producer_check_ms == 4
    assert upkeep.cleaner_map_bytes == 2_000_000


def test_flushes_are_checked_every_second_even_if_kafka_would_never_check() -> None:
    assert parse().upkeep.flush_check_ms == 1000


def test_io_and_background_threads_share_one_pool() -> None:
    assert parse(num__io__threads="3", background__threads="2").blocking_threads == 5


def test_log_dirs_overrides_log_dir_and_its_first_entry_holds_the_metadata() -> None:
    settings = parse(log__dirs="/a,/b", log__dir="/c")

    assert settings.log_dirs == ("/a", "/b")
    assert settings.metadata_log_dir == "/a"
    assert parse(log__dir="/c", metadata__log__dir="/m").metadata_log_dir == "/m"


def test_the_node_id_can_be_given_as_broker_id() -> None:
    settings = BrokerSettings.parse(combined({"node.id": None, "broker.id": "1"}))

    assert settings.node_id == 1
    assert settings.controller_quorum_voters == (Voter(id=1, host="localhost", port=9093),)


def test_limits_of_single_addresses_are_parsed() -> None:
    overrides = parse(
        max__connections__per__ip__overrides="10.0.0.1:3, ::1:5"
    ).max_connections_per_ip_overrides

    assert overrides == {"10.0.0.1": 3, "::1": 5}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("node.id", "-1", "must be at least 0"),
        ("num.io.threads", "many", "must be a 32-bit integer"),
        ("auto.create.topics.enable", "yes", "must be true or false"),
        ("ssl.keystore.location", "/x", "TLS is not built yet"),
        ("remote.log.storage.system.enable", "true", "this broker has no remote storage"),
        ("log.cleaner.io.max.bytes.per.second", "1000000", "compaction cannot be throttled yet"),
        ("log.cleaner.threads", "0", "must be at least 1"),
        ("offsets.topic.compression.codec", "5", "must be between 0 and 4"),
        ("zookeeper.connect", "localhost:2181", "no such setting"),
        ("log.retention.ms", "0", "must be at least 1, or negative for no limit"),
        ("log.segment.bytes", "1000", "must be at least 1048576"),
        ("replica.lag.time.max.ms", "499", "must be at least 500"),
    ],
)
def test_an_invalid_setting_is_refused_with_the_expected_value(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words) as refused:
        BrokerSettings.parse(combined({name: value}))

    assert refused.value.name == name


def test_the_given_texts_are_preserved() -> None:
    given = combined({"num.partitions": "7"})

    assert BrokerSettings.parse(given).given == given
