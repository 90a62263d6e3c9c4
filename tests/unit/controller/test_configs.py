"""AlterConfigs and IncrementalAlterConfigs."""

from collections.abc import Mapping

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.metadata.image import (
    ALL_BROKERS,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
)
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsAlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.stored.cluster_nodes import ClearElrRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from support.controllers import ActiveController

SET, DELETE, APPEND, SUBTRACT = range(4)
ORDERS = ConfigResource(TOPIC_RESOURCE, "orders")
BROKER_1 = ConfigResource(BROKER_RESOURCE, "1")

Change = tuple[str, int, str | None]


def incremental(resource: tuple[int, str], *changes: Change) -> IncrementalAlterConfigsAlterConfigsResource:
    return IncrementalAlterConfigsAlterConfigsResource(
        resource_type=resource[0],
        resource_name=resource[1],
        configs=[
            IncrementalAlterConfigsAlterableConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in changes
        ],
    )


def whole(resource: tuple[int, str], **values: str | None) -> AlterConfigsResourceRequest:
    return AlterConfigsResourceRequest(
        resource_type=resource[0],
        resource_name=resource[1],
        configs=[
            AlterConfigsAlterableConfig(name=name.replace("_", "."), value=value)
            for name, value in values.items()
        ],
    )


def alter(
    world: ActiveController,
    *resources: IncrementalAlterConfigsAlterConfigsResource,
    validate_only: bool = False,
) -> list[tuple[int, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    return [(one.error_code, one.error_message) for one in world.ask(request).responses]


def replace_all(
    world: ActiveController, *resources: AlterConfigsResourceRequest, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    return [(one.error_code, one.error_message) for one in world.ask(request).responses]


def with_orders(**configs: str) -> ActiveController:
    return ActiveController().with_brokers(1).with_topic("orders", [1], **configs)


def test_settings_are_set_and_deleted_one_by_one() -> None:
    world = with_orders(segment_ms="5")

    results = alter(world, incremental(ORDERS, ("retention.ms", SET, "9"), ("segment.ms", DELETE, None)))

    assert results == [(0, None)]
    assert world.image.config(ORDERS) == {"retention.ms": "9"}
    assert world.image == world.replayed()


def test_alter_configs_resets_omitted_settings() -> None:
    world = with_orders(segment_ms="5", retention_ms="7")

    assert replace_all(world, whole(ORDERS, retention_ms="9")) == [(0, None)]

    assert world.image.config(ORDERS) == {"retention.ms": "9"}
    assert world.image == world.replayed()


def test_a_value_that_a_topic_has_already_is_not_written_again() -> None:
    world = with_orders(segment_ms="5")

    decision = world.decide(
        IncrementalAlterConfigsRequest(resources=[incremental(ORDERS, ("segment.ms", SET, "5"))])
    )

    assert decision.records == ()


def test_unchanged_broker_settings_are_written_again() -> None:
    world = with_orders()
    change = incremental(BROKER_1, ("log.cleaner.threads", SET, "1"))

    assert alter(world, change) == [(0, None)]
    decision = world.decide(IncrementalAlterConfigsRequest(resources=[change]))

    assert decision.records == (
        ConfigRecord(resource_type=4, resource_name="1", name="log.cleaner.threads", value="1"),
    )


@pytest.mark.parametrize("validate_only", [True, False])
def test_validate_only_answers_the_same_and_writes_nothing(validate_only: bool) -> None:
    world = with_orders()
    good, bad = incremental(ORDERS, ("segment.ms", SET, "5")), incremental((2, "none"))

    results = alter(world, good, bad, validate_only=validate_only)

    assert results == [(0, None), (3, "The topic 'none' does not exist.")]
    assert world.image.config(ORDERS) == ({} if validate_only else {"segment.ms": "5"})


def test_lists_grow_and_shrink_from_their_default() -> None:
    world = with_orders()

    assert alter(world, incremental(ORDERS, ("cleanup.policy", APPEND, "compact"))) == [(0, None)]
    assert world.image.config(ORDERS) == {"cleanup.policy": "delete,compact"}

    assert alter(world, incremental(ORDERS, ("cleanup.policy", SUBTRACT, "delete"))) == [(0, None)]
    assert world.image.config(ORDERS) == {"cleanup.policy": "compact"}


def test_appending_an_existing_value_changes_nothing() -> None:
    world = with_orders(cleanup_policy="compact")

    alter(world, incremental(ORDERS, ("cleanup.policy", APPEND, "compact")))

    assert world.image.config(ORDERS) == {"cleanup.policy": "compact"}


def test_broker_lists_are_those_of_the_settings() -> None:
    world = ActiveController(broker_lists={"log.cleanup.policy": "delete"}).with_brokers(1)

    assert alter(world, incremental(ALL_BROKERS, ("log.cleanup.policy", APPEND, "compact"))) == [(0, None)]
    assert world.image.config(ALL_BROKERS)["log.cleanup.policy"] == "delete,compact"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("retention.ms", APPEND, "1"), 40, "Can't APPEND to key retention.ms because its type is not LIST."),
        (("no.such", SUBTRACT, "1"), 40, "Can't SUBTRACT to key no.such because its type is not LIST."),
        (("no.such", SET, "1"), 40, "Unknown topic config name: no.such"),
        (("retention.ms", SET, None), 42, "Null value not supported for : retention.ms"),
        (("retention.ms", 4, "1"), 42, "Unknown operation 4 for retention.ms."),
        (
            ("compression.type", SET, "x" * 32768),
            40,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            "32767 bytes.",
        ),
    ],
)
def test_changes_that_cannot_be(change: Change, code: int, message: str) -> None:
    world = with_orders()

    assert alter(world, incremental(ORDERS, change)) == [(code, message)]
    assert world.image.config(ORDERS) == {}


def test_the_values_of_one_topic_must_fit_together() -> None:
    world = with_orders(max_compaction_lag_ms="5")

    ((code, message),) = alter(world, incremental(ORDERS, ("min.compaction.lag.ms", SET, "6")))

    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None
    assert message.startswith("Invalid value 6 for configuration min.compaction.lag.ms")


def test_a_key_twice_in_one_resource_is_refused() -> None:
    world = with_orders()
    twice = (("segment.ms", SET, "5"), ("segment.ms", DELETE, None))

    assert alter(world, incremental(ORDERS, *twice)) == [(42, "Error due to duplicate config keys")]


def test_a_resource_twice_is_answered_once_and_stops_no_others() -> None:
    world = with_orders().with_topic("other", [1])
    other = ConfigResource(TOPIC_RESOURCE, "other")
    change = ("segment.ms", SET, "5")

    results = alter(
        world, incremental(ORDERS, change), incremental(other, change), incremental(ORDERS, change)
    )

    assert results == [(42, "Duplicate resource."), (0, None)]
    assert world.image.config(ORDERS) == {}
    assert world.image.config(other) == {"segment.ms": "5"}


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        ((2, "none"), 3, "The topic 'none' does not exist."),
        ((2, ""), 42, "Default topic resources are not allowed."),
        ((2, "a b"), 17, None),
        ((4, "7"), 102, "No node with id 7 found."),
        ((4, "one"), 42, "Unable to parse broker name as a base 10 number."),
        ((4, "-1"), 42, "Invalid negative broker ID."),
        ((16, ""), 42, "Subscription name can't be empty"),
        ((32, ""), 42, "Default group resources are not allowed."),
        ((8, "1"), 42, "Unknown resource type 8"),
        ((0, "x"), 42, "Unknown resource type 0"),
        ((99, "x"), 42, "Unknown resource type 99"),
    ],
)
def test_resources_that_have_no_settings(resource: tuple[int, str], code: int, message: str | None) -> None:
    world = with_orders()

    for results in (alter(world, incremental(resource)), replace_all(world, whole(resource))):
        ((found, said),) = results
        assert found == code
        assert message is None or said == message


THROTTLED = "leader.replication.throttled.replicas"


def test_an_unsupported_value_is_rejected_unless_already_set() -> None:
    fresh, of_kafka = with_orders(), with_orders()
    of_kafka.write_record(
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="orders", name=THROTTLED, value="0:1")
    )
    retention = incremental(ORDERS, ("retention.ms", SET, "5"))

    refused = (
        f"Invalid value 0:1 for configuration {THROTTLED}: traffic between replicas cannot be throttled yet"
    )
    for results in (
        alter(fresh, incremental(ORDERS, (THROTTLED, SET, "0:1"))),
        replace_all(fresh, whole(ORDERS, leader_replication_throttled_replicas="0:1")),
    ):
        assert results == [(ErrorCode.INVALID_CONFIG, refused)]
    assert alter(fresh, incremental(ORDERS, (THROTTLED, SET, ""))) == [(0, None)]

    # A change of another setting, and a request that repeats all settings.
    assert alter(of_kafka, retention) == [(0, None)]
    everything = whole(ORDERS, leader_replication_throttled_replicas="0:1", retention_ms="6")
    assert replace_all(of_kafka, everything) == [(0, None)]
    assert alter(of_kafka, incremental(ORDERS, (THROTTLED, DELETE, None))) == [(0, None)]
    assert of_kafka.image.config(ORDERS) == {"retention.ms": "6"}


def test_broker_settings_are_checked_by_the_injected_validator() -> None:
    asked: list[tuple[dict[str, str], str]] = []

    def validate(configs: Mapping[str, str], broker: str) -> None:
        asked.append((dict(configs), broker))
        if "listeners" in configs:
            raise InvalidSetting("listeners", configs["listeners"], "is read when a broker starts")

    world = ActiveController(validate_broker_config=validate).with_brokers(1)

    results = alter(
        world,
        incremental(BROKER_1, ("listeners", SET, "x")),
        incremental(ALL_BROKERS, ("message.max.bytes", SET, "5")),
    )

    refused = "Invalid value x for configuration listeners: is read when a broker starts"
    assert results == [(ErrorCode.INVALID_CONFIG, refused), (0, None)]
    # Existing settings are not validated: another release may have written them, and must not block changes.
    assert asked == [({"listeners": "x"}, "1"), ({"message.max.bytes": "5"}, "")]


@pytest.mark.parametrize("kind", [GROUP_RESOURCE, CLIENT_METRICS_RESOURCE])
def test_group_and_client_metrics_settings_need_a_validator(kind: int) -> None:
    resource = ConfigResource(kind, "g")
    change = incremental(resource, ("interval.ms", SET, "5"))
    knowing = ActiveController(validate_other_config=lambda resource, configs: None)

    assert alter(knowing, change) == [(0, None)]
    assert knowing.image.config(resource) == {"interval.ms": "5"}
    ((code, _),) = alter(ActiveController(), change)
    assert code == ErrorCode.INVALID_CONFIG
    assert alter(ActiveController(), incremental(resource, ("interval.ms", DELETE, None))) == [(0, None)]


# min.insync.replicas decides who is eligible to lead


def test_a_new_min_insync_replicas_clears_eligible_leaders() -> None:
    world = with_orders()

    decision = world.decide(
        IncrementalAlterConfigsRequest(
            resources=[
                incremental(ORDERS, ("min.insync.replicas", SET, "2")),
                incremental(ALL_BROKERS, ("min.insync.replicas", SET, "2")),
            ]
        )
    )

    assert decision.records[2:] == (ClearElrRecord(topic_name="orders"), ClearElrRecord(topic_name=""))


def test_the_minimum_is_one_number_for_the_cluster() -> None:
    world = with_orders()

    assert alter(world, incremental(BROKER_1, ("min.insync.replicas", SET, "2"))) == [
        (40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    ]
    removed = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert alter(world, incremental(ALL_BROKERS, ("min.insync.replicas", DELETE, None))) == [(40, removed)]
    assert replace_all(world, whole(ALL_BROKERS)) == [(40, removed)]
    assert world.image.config(ALL_BROKERS) == {"min.insync.replicas": "1"}
