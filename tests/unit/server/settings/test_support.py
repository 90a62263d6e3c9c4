"""The rule for every declared setting: it works, there is nothing to tune, or it is refused with the reason.

tests/simulation/test_settings_over_the_wire.py asks the same of a running broker.
"""

import logging
from collections.abc import Mapping
from dataclasses import fields

import pytest

from barnabas.base.settings import InvalidSetting, Setting, Support
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import BROKER, CLIENT_METRICS, GROUP
from barnabas.storage.topic_settings import SETTINGS as TOPIC
from support.broker_properties import combined
from support.setting_values import other_texts

# Their only other values say what the node is already, or what no node here can be.
SAY_NOTHING_NEW = {
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "node.id",
}
ONLY_THE_DEFAULT = {"security.inter.broker.protocol"}
BY_NAME = ("given", "values")


def with_support(declared: Mapping[str, Setting], *supports: Support) -> list[str]:
    return [name for name, one in declared.items() if one.status.support in supports]


def accepted(name: str) -> dict[str, BrokerSettings]:
    """What the broker has of each other value that it accepts."""
    found = {}
    for text in other_texts(BROKER[name]):
        try:
            found[text] = BrokerSettings.parse(combined({name: text}))
        except InvalidSetting:
            continue
    return found


def typed_fields(settings: BrokerSettings) -> dict[str, object]:
    return {one.name: getattr(settings, one.name) for one in fields(settings) if one.name not in BY_NAME}


@pytest.mark.parametrize("name", with_support(BROKER, Support.WORKS))
def test_a_supported_setting_changes_the_value_that_the_broker_reads(name: str) -> None:
    found = accepted(name)

    assert bool(found) == (name not in ONLY_THE_DEFAULT)
    for settings in found.values():
        changed = typed_fields(settings) != typed_fields(BrokerSettings.parse(combined()))
        assert changed == (name not in SAY_NOTHING_NEW)


@pytest.mark.parametrize("name", with_support(BROKER, Support.NOTHING_TO_TUNE))
def test_a_setting_with_nothing_to_tune_is_accepted_silently_and_changes_nothing(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        found = accepted(name)

    assert found
    assert BROKER[name].status.reason
    for text, settings in found.items():
        assert settings.values[name] == BROKER[name].parse(text) != BROKER[name].default
        # What topics fall back on goes to their logs as well, which do nothing with it.
        own = {**typed_fields(settings), "topic_defaults": {}, "log_config": None}
        assert own == {
            **typed_fields(BrokerSettings.parse(combined())),
            "topic_defaults": {},
            "log_config": None,
        }
    assert caplog.records == []


@pytest.mark.parametrize("name", with_support(BROKER, Support.UNSUPPORTED))
def test_a_setting_that_is_not_supported_is_refused_by_name_with_the_reason(name: str) -> None:
    texts = other_texts(BROKER[name])

    assert texts
    assert BROKER[name].status.reason
    for text in texts:
        with pytest.raises(InvalidSetting) as refused:
            BrokerSettings.parse(combined({name: text}))
        assert refused.value.name == name
        assert refused.value.what == BROKER[name].status.reason


@pytest.mark.parametrize("declared", [TOPIC, GROUP, CLIENT_METRICS], ids=["topic", "group", "metrics"])
def test_settings_of_other_resources_follow_the_same_rule(declared: Mapping[str, Setting]) -> None:
    for name, one in declared.items():
        for text in other_texts(one):
            if one.status.support is not Support.UNSUPPORTED:
                assert one.parse_supported(text) != one.default, name
                continue
            with pytest.raises(InvalidSetting) as refused:
                one.parse_supported(text)
            assert refused.value.name == name
            assert refused.value.what == one.status.reason


@pytest.mark.parametrize("declared", [BROKER, TOPIC, GROUP, CLIENT_METRICS])
def test_every_setting_has_another_value_to_test(declared: Mapping[str, Setting]) -> None:
    assert [name for name, one in declared.items() if not other_texts(one)] == []
