"""The shipped broker in the simulated world: it comes up, stops, and comes up again where it was."""

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.sim.world import World
from support.brokers import connected, running


def test_a_topic_is_there_at_once_and_after_a_restart() -> None:
    with World(1) as world:

        async def create() -> object:
            async with running(world) as broker, connected(broker) as client:
                topic = CreatableTopic(name="orders", num_partitions=3, replication_factor=1)
                made = await client.call(
                    CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, key=ApiKey.CREATE_TOPICS
                )
                assert made.topics[0].error_code == 0
                return [len(broker.replicas.partitions), made.topics[0].topic_id]

        async def look() -> object:
            async with running(world) as broker, connected(broker) as client:
                found = await client.call(MetadataRequest(topics=None), 12, key=ApiKey.METADATA)
                topic = found.topics[0]
                return [len(broker.replicas.partitions), topic.topic_id]

        before = world.run(create())
        after = world.run(look())

        assert before == after
