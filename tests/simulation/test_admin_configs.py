"""The admin client and a broker in the simulated world: settings described, changed and listed."""

import pytest

from barnabas.base.settings import SettingType
from barnabas.client.admin import (
    ConfigChange,
    ConfigOperation,
    ConfigSource,
    ConfigSynonym,
    NewTopic,
    PartlyRefused,
    Resource,
    ResourceType,
    broker_resource,
    topic_resource,
)
from barnabas.client.errors import Refused, UnknownTopic
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.admin_worlds import administrated
from support.our_client.peers import in_world
from support.stories import Stopwatch

ORDERS = topic_resource("orders")


@in_world
async def test_a_config_entry_has_its_value_type_and_source(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders", settings={"retention.ms": 1000})
        found = await admin.describe_config(ORDERS, synonyms=True, documentation=True)

    retention = found["retention.ms"]
    assert (retention.value, retention.source) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert (retention.type, retention.read_only, retention.sensitive) == (SettingType.LONG, False, False)
    assert retention.synonyms[0] == ConfigSynonym("retention.ms", "1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert retention.documentation
    assert len(found) > 20


@in_world
async def test_synonyms_documentation_and_names_are_returned_on_request(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")
        found = await admin.describe_config(ORDERS, ["retention.ms", "no.such"])

    assert list(found) == ["retention.ms"]
    assert found["retention.ms"].synonyms == ()
    assert found["retention.ms"].documentation is None


@in_world
async def test_several_resources_are_described_at_once(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")
        everyone, nobody = broker_resource(None), topic_resource("nope")
        with pytest.raises(PartlyRefused) as refused:
            await admin.describe_configs([ORDERS, broker_resource(1), everyone, nobody])
        some = await admin.describe_configs({ORDERS: ["retention.ms"], broker_resource(1): ["node.id"]})

    done = refused.value.done
    assert isinstance(refused.value.refused["topic nope"], UnknownTopic)
    assert list(done) == [ORDERS, broker_resource(1), everyone]
    assert done[broker_resource(1)]["node.id"].read_only
    assert {resource: list(entries) for resource, entries in some.items()} == {
        ORDERS: ["retention.ms"],
        broker_resource(1): ["node.id"],
    }


@in_world
async def test_settings_are_set_deleted_appended_and_subtracted(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders", settings={"cleanup.policy": "compact", "segment.bytes": 5_000_000})
        await admin.alter_config(
            ORDERS, {"retention.ms": 77}, delete=["segment.bytes"], append={"cleanup.policy": "delete"}
        )
        both = await admin.describe_config(ORDERS)
        await admin.alter_config(ORDERS, subtract={"cleanup.policy": ["compact"]})
        one = await admin.describe_config(ORDERS)

    assert both["cleanup.policy"].value == "compact,delete"
    assert both["retention.ms"].value == "77"
    assert both["segment.bytes"].is_default
    assert one["cleanup.policy"].value == "delete"


@in_world
async def test_a_change_that_is_only_validated_changes_nothing(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")
        await admin.alter_config(ORDERS, {"retention.ms": 77}, validate_only=True)
        with pytest.raises(Refused) as refused:
            await admin.alter_config(ORDERS, {"retention.ms": "soon"}, validate_only=True)

        assert refused.value.code is ErrorCode.INVALID_CONFIG
        assert (await admin.describe_config(ORDERS))["retention.ms"].is_default


@in_world
async def test_one_change_that_is_refused_does_not_keep_others_from_being_made(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topics([NewTopic(name="orders"), NewTopic(name="payments")])
        payments = topic_resource("payments")
        with pytest.raises(PartlyRefused) as refused:
            await admin.alter_configs(
                {
                    ORDERS: [ConfigChange("no.such", ConfigOperation.SET, "1")],
                    payments: [ConfigChange("retention.ms", ConfigOperation.SET, "5")],
                    broker_resource(1): [ConfigChange("log.retention.ms", ConfigOperation.SET, "6")],
                }
            )

        assert {name: error.code for name, error in refused.value.refused.items()} == {
            "topic orders": ErrorCode.INVALID_CONFIG
        }
        assert (await admin.describe_config(payments))["retention.ms"].value == "5"
        changed = (await admin.describe_config(broker_resource(1)))["log.retention.ms"]
        assert (changed.value, changed.source) == ("6", ConfigSource.DYNAMIC_BROKER_CONFIG)


@in_world
async def test_an_unknown_broker_is_looked_up_briefly_only(world: World) -> None:
    async with administrated(world) as admin:
        watch = Stopwatch(world)
        with pytest.raises(Refused) as refused:
            await admin.describe_config(broker_resource(77))

        assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE
        assert "broker 77" in str(refused.value)
        assert 5_000 <= watch.ms <= 7_000


@in_world
async def test_any_broker_rejects_a_broker_id_that_is_not_a_number(world: World) -> None:
    async with administrated(world) as admin:
        with pytest.raises(Refused) as refused:
            await admin.describe_config(Resource(ResourceType.BROKER, "seven"))
        with pytest.raises(Refused) as loggers:
            await admin.describe_config(Resource(ResourceType.BROKER_LOGGER, "1"))

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert loggers.value.code is ErrorCode.INVALID_REQUEST


@in_world
async def test_resources_with_settings_are_listed(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")
        everything = await admin.list_config_resources()
        topics = await admin.list_config_resources([ResourceType.TOPIC])

    assert set(everything) == {ORDERS, broker_resource(1)}
    assert topics == [ORDERS]
