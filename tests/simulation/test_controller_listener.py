"""The controller's own door: tools and other nodes ask the controller there, and clients are refused."""

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import BrokerHeartbeatRequest
from barnabas.protocol.messages.cluster import ApiVersionsRequest, DescribeClusterRequest, MetadataRequest
from barnabas.protocol.messages.quorum import (
    DescribeQuorumPartitionData,
    DescribeQuorumRequest,
    DescribeQuorumTopicData,
)
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.server.broker import Broker
from barnabas.sim.world import World, run_sim
from support.brokers import running
from support.wire.frames import RawClient


async def at_the_controller(broker: Broker) -> RawClient:
    [listener] = [one for one in broker.listeners if one.endpoint.name == "CONTROLLER"]
    return await RawClient.connect("127.0.0.1", listener.port)


def test_the_listener_reports_api_versions_and_controllers() -> None:
    async def story(world: World) -> None:
        async with running(world) as broker:
            client = await at_the_controller(broker)

            versions = await client.call(ApiVersionsRequest(), 0, key=ApiKey.API_VERSIONS)
            asked = DescribeClusterRequest(endpoint_type=2)
            found = await client.call(asked, 1, key=ApiKey.DESCRIBE_CLUSTER)
            wrong = await client.call(DescribeClusterRequest(), 1, key=ApiKey.DESCRIBE_CLUSTER)
            client.close()

            keys = {row.api_key for row in versions.api_keys}
            assert {ApiKey.BROKER_HEARTBEAT, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_QUORUM} <= keys
            assert ApiKey.PRODUCE not in keys
            assert [(one.broker_id, one.port) for one in found.brokers] == [(1, broker.listeners[1].port)]
            assert (found.controller_id, found.endpoint_type) == (1, 2)
            assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE

    run_sim(story)


def test_the_controller_handles_requests_of_its_listener() -> None:
    async def story(world: World) -> None:
        async with running(world) as broker:
            client = await at_the_controller(broker)
            topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)

            request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
            made = await client.call(request, 7, key=ApiKey.CREATE_TOPICS)
            beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=99)
            stale = await client.call(beat, 1, key=ApiKey.BROKER_HEARTBEAT)
            of_metadata = DescribeQuorumTopicData(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumPartitionData()]
            )
            quorum = await client.call(
                DescribeQuorumRequest(topics=[of_metadata]), 1, key=ApiKey.DESCRIBE_QUORUM
            )
            client.close()

            assert made.topics[0].error_code == 0
            assert "orders" in broker.services.image.topics
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
            assert quorum.topics[0].partitions[0].leader_id == 1

    run_sim(story)


def test_a_clients_request_closes_the_connection() -> None:
    async def story(world: World) -> None:
        async with running(world) as broker:
            client = await at_the_controller(broker)

            client.send(MetadataRequest(topics=None), 12, key=ApiKey.METADATA)

            assert await client.is_closed()
            client.close()

    run_sim(story)
