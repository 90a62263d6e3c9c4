"""Settings that change while the broker runs."""

import logging

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.metadata.image import ALL_BROKERS, BROKER_RESOURCE, ConfigResource, MetadataImage
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from support.broker_properties import combined

ME = ConfigResource(BROKER_RESOURCE, "1")
OTHER = ConfigResource(BROKER_RESOURCE, "2")


def started(**static: str) -> DynamicSettings:
    return DynamicSettings(
        BrokerSettings.parse(combined({name.replace("_", "."): text for name, text in static.items()}))
    )


def image(configs: dict[ConfigResource, dict[str, str]]) -> MetadataImage:
    return MetadataImage(configs=configs)


def test_the_properties_file_applies_without_dynamic_settings() -> None:
    settings = started(max_connections="10")

    assert settings.take(image({})) == frozenset()
    assert settings.now.max_connections == 10


def test_per_broker_overrides_cluster_wide_and_both_override_the_file() -> None:
    settings = started(max_connections="10")

    settings.take(image({ALL_BROKERS: {"max.connections": "20"}}))
    assert settings.now.max_connections == 20

    settings.take(image({ALL_BROKERS: {"max.connections": "20"}, ME: {"max.connections": "30"}}))
    assert settings.now.max_connections == 30

    settings.take(image({}))
    assert settings.now.max_connections == 10


def test_settings_of_another_broker_have_no_effect() -> None:
    settings = started()

    assert settings.take(image({OTHER: {"max.connections": "1"}})) == frozenset()
    assert settings.now == settings.static


def test_subscribers_are_called_only_for_changes_with_the_changed_fields() -> None:
    settings = started()
    told: list[tuple[int, frozenset[str]]] = []
    settings.subscribe(lambda now, changed: told.append((now.max_connections, changed)))

    settings.take(image({ME: {"max.connections": "7"}}))
    settings.take(image({ME: {"max.connections": "7"}}))
    settings.take(image({ME: {"max.connections": " 7 "}}))

    assert told == [(7, frozenset({"max_connections"}))]


def test_a_changed_topic_default_changes_the_log_config() -> None:
    settings = started(log_retention_hours="5")

    changed = settings.take(image({ALL_BROKERS: {"log.retention.ms": "1000"}}))

    assert changed == {"topic_defaults", "log_config"}
    assert settings.now.log_config.retention_ms == 1000


def test_invalid_dynamic_settings_are_ignored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    settings = started()

    with caplog.at_level(logging.ERROR):
        later = {"log.cleaner.io.max.bytes.per.second": "4"}
        settings.take(image({ALL_BROKERS: {"max.connections": "5", "foo": "1", **later}}))

    assert settings.now.max_connections == 5
    assert "foo" in caplog.text
    assert "compaction cannot be throttled yet" in caplog.text
    shown = {row.name: row.value for row in settings.view().broker()}
    assert shown["max.connections"] == "5"
    assert shown["log.cleaner.io.max.bytes.per.second"] == "1.7976931348623157E308"


def test_settings_without_anything_to_tune_are_shown_and_change_no_field() -> None:
    settings = started()

    assert settings.take(image({ALL_BROKERS: {"num.replica.fetchers": "4"}})) == frozenset()

    shown = {row.name: row.value for row in settings.view().broker()}
    assert shown["num.replica.fetchers"] == "4"


def test_an_invalid_combination_keeps_the_previous_settings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = started()
    settings.take(image({ME: {"max.connections": "5"}}))

    with caplog.at_level(logging.ERROR):
        changed = settings.take(image({ME: {"max.connections": "6", "max.connections.per.ip": "0"}}))

    assert changed == frozenset()
    assert settings.now.max_connections == 5
    assert "max.connections.per.ip=0" in caplog.text
    assert {row.name: row.value for row in settings.view().broker()}["max.connections"] == "5"


def test_a_change_is_checked_against_the_effective_settings() -> None:
    settings = started(max_connections_per_ip_overrides="127.0.0.1:5")
    alone = started()

    settings.check(ME, {"max.connections.per.ip": "0"})
    settings.check(ALL_BROKERS, {"max.connections.per.ip": "0"})
    for resource in (ME, ALL_BROKERS):
        with pytest.raises(InvalidSetting, match=r"unless max\.connections\.per\.ip\.overrides is set"):
            alone.check(resource, {"max.connections.per.ip": "0"})

    assert settings.now.max_connections_per_ip == 2**31 - 1


def test_a_cluster_wide_change_is_checked_with_the_per_broker_settings() -> None:
    settings = started()
    settings.take(image({ME: {"max.connections.per.ip.overrides": "127.0.0.1:5"}}))

    settings.check(ALL_BROKERS, {"max.connections.per.ip": "0"})
    with pytest.raises(InvalidSetting):
        settings.check(ME, {"max.connections.per.ip": "0"})


def test_an_invalid_setting_is_logged_once_and_not_for_every_image(caplog: pytest.LogCaptureFixture) -> None:
    settings = started()

    with caplog.at_level(logging.ERROR):
        settings.take(image({ALL_BROKERS: {"foo": "1"}}))
        settings.take(image({ALL_BROKERS: {"foo": "1"}, OTHER: {"max.connections": "1"}}))

    assert len(caplog.records) == 1


@pytest.mark.parametrize(("threads", "is_fine"), [("4", True), ("16", True), ("3", False), ("17", False)])
def test_the_number_of_threads_can_be_halved_or_doubled_at_most(threads: str, is_fine: bool) -> None:
    settings = started(num_io_threads="8")

    if is_fine:
        settings.check(ME, {"num.io.threads": threads})
        return
    with pytest.raises(InvalidSetting, match="at least half and at most twice"):
        settings.check(ME, {"num.io.threads": threads})
