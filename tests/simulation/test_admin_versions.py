"""The admin client and brokers that are older than it: what they can do is done, the rest is told."""

from typing import Any

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.admin import (
    Admin,
    ConfigSource,
    FeatureUpdate,
    ListedOffset,
    OffsetSpec,
    ResourceType,
    UpgradeType,
    topic_resource,
)
from barnabas.client.errors import UnsupportedByBroker
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.brokers import UpdatableFeatureResult, UpdateFeaturesResponse
from barnabas.protocol.messages.cluster import DescribeClusterResponse
from barnabas.protocol.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ListConfigResourcesResponse,
)
from barnabas.protocol.messages.log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.quorum import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from barnabas.protocol.messages.replicas import ElectLeadersResponse
from barnabas.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from barnabas.protocol.messages.transaction_admin import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.peers import in_world
from support.our_client.scripted_brokers import ScriptedBroker, listening_all, metadata_of

ORDERS_0 = TopicPartition("orders", 0)
SOME_ID = Uuid(b"0123456789abcdef")


def created(request: Any) -> object:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=each.name, error_code=0, error_message=None) for each in request.topics
        ]
    )


def deleted(request: Any) -> object:
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(name=name, error_code=0) for name in request.topic_names]
    )


def listed(request: Any) -> object:
    rows = [ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=5)]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=rows)])


def described(request: Any) -> object:
    entry = DescribeConfigsResourceResult(
        name="retention.ms", value="1", read_only=False, config_source=99, is_sensitive=False
    )
    asked = request.resources[0]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=0,
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[entry],
            )
        ]
    )


def quorum(request: Any) -> object:
    voter = ReplicaState(replica_id=1, log_end_offset=5)
    row = DescribeQuorumResponsePartitionData(
        partition_index=0, error_code=0, leader_id=1, leader_epoch=2, high_watermark=5, current_voters=[voter]
    )
    topic = DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[row])
    return DescribeQuorumResponse(error_code=0, topics=[topic])


def updated(request: Any) -> object:
    return UpdateFeaturesResponse(
        error_code=0,
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=each.feature, error_code=0, error_message=None)
            for each in request.feature_updates
        ],
    )


def old_broker() -> ScriptedBroker:
    """It speaks the first version of everything that it speaks, and not all of it."""
    says = {
        ApiKey.METADATA: metadata_of({"orders": [1]}),
        ApiKey.CREATE_TOPICS: created,
        ApiKey.DELETE_TOPICS: deleted,
        ApiKey.LIST_OFFSETS: listed,
        ApiKey.DESCRIBE_CONFIGS: described,
        ApiKey.DESCRIBE_QUORUM: quorum,
        ApiKey.UPDATE_FEATURES: updated,
        ApiKey.ELECT_LEADERS: lambda _: ElectLeadersResponse(),
        ApiKey.LIST_CONFIG_RESOURCES: lambda _: ListConfigResourcesResponse(error_code=0),
        ApiKey.DESCRIBE_LOG_DIRS: lambda _: DescribeLogDirsResponse(
            results=[DescribeLogDirsResult(error_code=0, log_dir="/d")]
        ),
    }
    newest = {
        ApiKey.METADATA: 4,
        ApiKey.CREATE_TOPICS: 2,
        ApiKey.DELETE_TOPICS: 1,
        ApiKey.LIST_OFFSETS: 1,
        ApiKey.DESCRIBE_CONFIGS: 1,
        ApiKey.DESCRIBE_QUORUM: 0,
        ApiKey.UPDATE_FEATURES: 0,
        ApiKey.ELECT_LEADERS: 0,
        ApiKey.LIST_CONFIG_RESOURCES: 0,
        ApiKey.DESCRIBE_LOG_DIRS: 1,
        ApiKey.API_VERSIONS: 2,
    }
    return ScriptedBroker(says=says, newest=newest)


@in_world
async def test_a_field_that_an_old_broker_lacks_is_none(world: World) -> None:
    async with listening_all(old_broker()), new_admin(world) as admin:
        made = await admin.create_topic("new", partitions=1, replication_factor=1)
        topics = await admin.list_topics()
        topic = await admin.describe_topic("orders")
        every = await admin.describe_topics()
        offset = await admin.list_offsets({ORDERS_0: OffsetSpec.LATEST})
        config = await admin.describe_config(topic_resource("orders"), synonyms=True)
        cluster = await admin.describe_cluster()
        found_quorum = await admin.describe_quorum()
        log_dirs = await admin.describe_log_dirs()
        await admin.delete_topic("orders")

    assert (made.topic_id, made.partitions, made.settings) == (None, None, None)
    assert topics["orders"].topic_id is None
    assert (topic.topic_id, topic.partitions[0].elr, topic.operations) == (None, None, None)
    assert every == {"orders": topic}
    assert offset == {ORDERS_0: ListedOffset(offset=5, timestamp_ms=None, leader_epoch=None)}
    entry = config["retention.ms"]
    # The source is one that we cannot name, as a newer broker's may be.
    assert (entry.type, entry.documentation, entry.source) == (None, None, ConfigSource.UNKNOWN)
    assert list(cluster.nodes) == [1]
    assert (found_quorum.nodes, found_quorum.voters[0].last_fetch_ms) == ({}, None)
    assert found_quorum.voters[0].directory_id is None
    assert log_dirs[1]["/d"].total_bytes is None


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda admin: admin.create_topic("x"), "default partition and replica counts"),
        (lambda admin: admin.delete_topic(SOME_ID), "topic ids"),
        (lambda admin: admin.describe_topic(SOME_ID), "topic ids"),
        (lambda admin: admin.describe_topics(["orders"], operations=True), "operations of a topic"),
        (lambda admin: admin.list_offsets({ORDERS_0: OffsetSpec.MAX_TIMESTAMP}), "MAX_TIMESTAMP"),
        (lambda admin: admin.list_offsets({ORDERS_0: -1}, isolation="read_committed"), "read_committed"),
        (lambda admin: admin.describe_config(topic_resource("x"), documentation=True), "documentation"),
        (lambda admin: admin.describe_cluster(fenced=True), "DESCRIBE_CLUSTER"),
        (lambda admin: admin.describe_cluster(operations=True), "operations of the cluster"),
        (lambda admin: admin.describe_features(), "features"),
        (
            lambda admin: admin.update_features({"f": FeatureUpdate(level=1)}, validate_only=True),
            "validate_only",
        ),
        (
            lambda admin: admin.update_features(
                {"f": FeatureUpdate(level=1, type=UpgradeType.UNSAFE_DOWNGRADE)}
            ),
            "unsafe downgrade",
        ),
        (lambda admin: admin.elect_leaders("unclean"), "unclean elections"),
        (lambda admin: admin.list_config_resources(), "client metrics"),
        (lambda admin: admin.alter_config(topic_resource("x"), {"a": 1}), "INCREMENTAL_ALTER_CONFIGS"),
        (lambda admin: admin.delete_records({ORDERS_0: 1}), "DELETE_RECORDS"),
        (lambda admin: admin.describe_producers([ORDERS_0]), "DESCRIBE_PRODUCERS"),
    ],
)
@in_world
async def test_an_option_that_an_old_broker_lacks_is_an_error(world: World, call: Any, what: str) -> None:
    async with listening_all(old_broker()), new_admin(world) as admin:
        with pytest.raises(UnsupportedByBroker, match=what):
            await call(admin)


@in_world
async def test_a_call_uses_the_older_api_of_an_old_broker(world: World) -> None:
    broker = old_broker()
    async with listening_all(broker), new_admin(world) as admin:
        await admin.update_features({"f": FeatureUpdate(level=1, type=UpgradeType.SAFE_DOWNGRADE)})
        await admin.elect_leaders("preferred")
        assert await admin.list_config_resources([ResourceType.CLIENT_METRICS]) == []

    (update,) = broker.asked_for(ApiKey.UPDATE_FEATURES)
    assert update.feature_updates[0].allow_downgrade


@in_world
async def test_asking_an_old_broker_for_topics_does_not_make_them(world: World) -> None:
    broker = old_broker()
    async with listening_all(broker), new_admin(world) as admin:
        await admin.describe_topic("orders")
        await admin.describe_topics()
        await admin.list_topics()

    asked = broker.asked_for(ApiKey.METADATA)
    assert len(asked) > 3
    assert not any(request.allow_auto_topic_creation for request in asked)


@in_world
async def test_a_request_has_the_arguments_of_the_call(world: World) -> None:
    list_offsets, elect, cluster = ApiKey.LIST_OFFSETS, ApiKey.ELECT_LEADERS, ApiKey.DESCRIBE_CLUSTER
    broker = ScriptedBroker(
        says={
            ApiKey.METADATA: metadata_of({"orders": [1]}),
            list_offsets: listed,
            elect: lambda _: ElectLeadersResponse(),
            cluster: lambda _: DescribeClusterResponse(error_code=0, cluster_id="c"),
        }
    )
    async with listening_all(broker), new_admin(world) as admin:
        await admin.list_offsets({ORDERS_0: OffsetSpec.LATEST})
        await admin.list_offsets({ORDERS_0: OffsetSpec.LATEST}, isolation="read_committed")
        await admin.elect_leaders("preferred")
        await admin.elect_leaders("unclean", [ORDERS_0])
        await admin.describe_cluster()
        await admin.describe_cluster(endpoints="controllers", fenced=True, operations=True)

    assert [each.isolation_level for each in broker.asked_for(list_offsets)] == [0, 1]
    assert [each.election_type for each in broker.asked_for(elect)] == [0, 1]
    assert [each.topic_partitions is None for each in broker.asked_for(elect)] == [True, False]
    assert [
        (each.endpoint_type, each.include_fenced_brokers, each.include_cluster_authorized_operations)
        for each in broker.asked_for(cluster)
    ] == [(1, False, False), (2, True, True)]


@in_world
async def test_internal_topics_are_listed_on_request(world: World) -> None:
    def say(request: Any) -> Any:
        answer = metadata_of({"orders": [1], "__consumer_offsets": [1]})(request)
        for topic in answer.topics:
            topic.is_internal = topic.name.startswith("__")
        return answer

    async with listening_all(ScriptedBroker(says={ApiKey.METADATA: say})), new_admin(world) as admin:
        assert list(await admin.list_topics()) == ["orders"]
        assert list(await admin.list_topics(internal=True)) == ["__consumer_offsets", "orders"]


@in_world
async def test_producers_are_described_by_the_given_broker(world: World) -> None:
    def described(request: Any) -> Any:
        rows = [PartitionResponse(partition_index=0, error_code=0, error_message=None)]
        return DescribeProducersResponse(topics=[TopicResponse(name="orders", partitions=rows)])

    metadata = metadata_of({"orders": [1]}, brokers=(1, 2))
    key = ApiKey.DESCRIBE_PRODUCERS
    first, second = (
        ScriptedBroker(node, says={ApiKey.METADATA: metadata, key: described}) for node in (1, 2)
    )
    async with listening_all(first, second), new_admin(world) as admin:
        await admin.describe_producers([ORDERS_0])
        assert (len(first.asked_for(key)), len(second.asked_for(key))) == (1, 0)
        await admin.describe_producers([ORDERS_0], broker=2)
        assert (len(first.asked_for(key)), len(second.asked_for(key))) == (1, 1)


def test_calls_that_our_broker_does_not_serve_do_not_exist() -> None:
    """Nothing of the class is a stub: every call is one that the broker of this repository answers."""
    calls = [name for name in vars(Admin) if not name.startswith("_")]

    assert "alter_replica_log_dirs" not in calls
    assert "list_consumer_groups" not in calls
