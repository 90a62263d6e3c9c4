"""Every declared setting over the wire: a running broker accepts and refuses what a starting one does.

tests/unit/server/settings/test_support.py asks the same of a properties file.
"""

from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.settings import InvalidSetting, Setting, Support
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsAlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.server.broker import Broker
from barnabas.server.settings.catalog import BROKER, CLIENT_METRICS, GROUP
from barnabas.server.settings.change import ALL_BROKERS_NAME
from barnabas.server.settings.declare import ServerSetting
from barnabas.sim.world import World
from barnabas.storage.topic_settings import SETTINGS as TOPIC
from support.brokers import broker_settings
from support.setting_values import other_texts
from support.stories import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, Client, told
from support.wire.requests import TIMEOUT_MS, new_topic

CLIENT_METRICS_RESOURCE: Final = 16
SET, DELETE = 0, 1
# With eligible leader replicas (KIP-966) it is one number for all brokers, and cannot be unset.
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNTIL_RESTART: Final = "cannot be changed while the broker runs"


async def change(client: Client, kind: int, resource: str, name: str, text: str | None) -> Any:
    """One incremental change; None deletes."""
    row = IncrementalAlterConfigsAlterableConfig(
        name=name, config_operation=DELETE if text is None else SET, value=text
    )
    asked = IncrementalAlterConfigsAlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=[row]
    )
    return (await client.asked(IncrementalAlterConfigsRequest(resources=[asked]), 1)).responses[0]


async def replaced(client: Client, kind: int, resource: str, name: str, text: str) -> Any:
    """What the older request would be answered."""
    row = AlterConfigsAlterableConfig(name=name, value=text)
    asked = AlterConfigsResourceRequest(resource_type=kind, resource_name=resource, configs=[row])
    return (await client.asked(AlterConfigsRequest(resources=[asked], validate_only=True), 2)).responses[0]


async def shown(client: Client, kind: int, resource: str, name: str) -> str | None:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=[name])
    answer = await client.asked(DescribeConfigsRequest(resources=[asked]), 4)
    value: str | None = answer.results[0].configs[0].value
    return value


def refusal_at_start(name: str, text: str) -> str | None:
    try:
        broker_settings({name: text})
    except InvalidSetting as refused:
        return refused.what
    return None


async def try_it(client: Client, kind: int, resource: str, one: Setting, text: str) -> str | None:
    """Why a value is refused, by both requests alike; None if it is accepted, is shown, and can be unset."""
    answer = await change(client, kind, resource, one.name, text)
    older = await replaced(client, kind, resource, one.name, text)
    assert older.error_code == answer.error_code, one.name
    if answer.error_code:
        assert one.name in answer.error_message
        return str(answer.error_message)
    assert await shown(client, kind, resource, one.name) == text
    if (resource, one.name) != (ALL_BROKERS_NAME, MIN_INSYNC_REPLICAS):
        unset = await change(client, kind, resource, one.name, None)
        assert unset.error_code == ErrorCode.NONE, (one.name, unset.error_message)
    return None


def can_change(one: ServerSetting) -> bool:
    return one.is_dynamic and not one.fixed


@told()
async def test_settings_of_brokers_are_taken_and_refused_as_at_the_start(
    world: World, broker: Broker, client: Client
) -> None:
    for one in BROKER.values():
        resource = ALL_BROKERS_NAME if one.name == MIN_INSYNC_REPLICAS else "1"
        for text in other_texts(one):
            at_start = refusal_at_start(one.name, text)
            found = await try_it(client, BROKER_RESOURCE, resource, one, text)

            if can_change(one):
                assert (found is None) == (at_start is None), (one.name, found, at_start)
                assert at_start is None or at_start in str(found)
            else:
                assert found is not None
                assert UNTIL_RESTART in found, found


@told()
async def test_topic_settings_are_validated_at_creation_and_change(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("changed")
    for number, one in enumerate(TOPIC.values()):
        for text in other_texts(one):
            fresh = new_topic(f"made-{number}-{other_texts(one).index(text)}", 1, {one.name: text})
            made = await client.asked(CreateTopicsRequest(topics=[fresh], timeout_ms=TIMEOUT_MS), 7)
            found = await try_it(client, TOPIC_RESOURCE, "changed", one, text)

            if one.status.support is Support.UNSUPPORTED:
                assert found is not None
                assert one.status.reason in found
                assert made.topics[0].error_code == ErrorCode.INVALID_CONFIG
                assert one.status.reason in made.topics[0].error_message
            else:
                assert found is None
                assert made.topics[0].error_code == ErrorCode.NONE


@told()
async def test_settings_of_groups_and_of_metrics_follow_the_same_rule(
    world: World, broker: Broker, client: Client
) -> None:
    kinds: tuple[tuple[int, Mapping[str, ServerSetting]], ...] = (
        (GROUP_RESOURCE, GROUP),
        (CLIENT_METRICS_RESOURCE, CLIENT_METRICS),
    )
    for kind, declared in kinds:
        for one in declared.values():
            refusals = [await try_it(client, kind, "g", one, text) for text in other_texts(one)]

            if one.status.support is Support.UNSUPPORTED:
                assert all(one.status.reason in str(refusal) for refusal in refusals), refusals
            else:
                # The broker's bounds may be as near as this.
                assert None in refusals, refusals
                assert all("must be at" in str(refusal) for refusal in refusals if refusal), refusals


@told()
async def test_settings_with_nothing_to_tune_reject_invalid_values(
    world: World, broker: Broker, client: Client
) -> None:
    wrong = {
        "num.network.threads": "0",
        "log.cleaner.threads": "many",
        "group.share.assignment.interval.ms": "15001",
        "remote.log.reader.threads": "-1",
    }
    for name, text in wrong.items():
        refused = refusal_at_start(name, text)
        assert refused is not None

        found = await try_it(client, BROKER_RESOURCE, "1", BROKER[name], text)

        assert found is not None
        assert refused in found
