"""Rules for dynamic settings of one broker or of all brokers.

The controller calls validate_broker_config() with the complete resulting settings of a resource. It does not
know the brokers' properties files: each broker checks its combination with DynamicSettings.check().
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.settings import InvalidSetting
from barnabas.metadata.image import GROUP_RESOURCE, ConfigResource
from barnabas.server.settings.catalog import CLIENT_METRICS, GROUP, find
from barnabas.server.settings.declare import Change, ServerSetting

# Resource name of the cluster-wide broker settings.
ALL_BROKERS_NAME: Final = ""


def validate_broker_config(configs: Mapping[str, str], broker_name: str) -> None:
    """InvalidSetting for the first of `configs` that cannot be set for this broker or, if "", for all
    brokers."""
    for name, text in configs.items():
        _check(find(name), text, for_all=broker_name == ALL_BROKERS_NAME)


def validate_other_config(resource: ConfigResource, configs: Mapping[str, str]) -> None:
    """InvalidSetting for the first of `configs` that is invalid for this group or metrics subscription."""
    declared = GROUP if resource.type == GROUP_RESOURCE else CLIENT_METRICS
    for name, text in configs.items():
        find(name, declared).parse_supported(text)


def _check(setting: ServerSetting, text: str, *, for_all: bool) -> None:
    if not setting.is_dynamic:
        raise setting.refusal(text, "cannot be changed while the broker runs; set it in its properties file")
    if for_all and setting.change is Change.PER_BROKER:
        raise setting.refusal(text, "is a per-broker setting; set it for a single broker")
    setting.parse_supported(text)
    if setting.fixed:
        raise setting.refusal(
            text, f"cannot be changed while the broker runs: {setting.fixed}; set it in its properties file"
        )


def usable(configs: Mapping[str, str], broker_name: str) -> tuple[dict[str, str], list[InvalidSetting]]:
    """The settings that can be applied, and the errors of the others.

    The metadata may have been written by Kafka, and hold settings that this controller would have refused.
    """
    good: dict[str, str] = {}
    wrong: list[InvalidSetting] = []
    for name, text in configs.items():
        try:
            validate_broker_config({name: text}, broker_name)
        except InvalidSetting as error:
            wrong.append(error)
        else:
            good[name] = text
    return good, wrong
