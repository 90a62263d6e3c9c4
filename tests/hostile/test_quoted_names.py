"""A name of maximum length gets an error response, although a message that quotes it is too long."""

from pathlib import Path
from typing import Any

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.replicas import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.wire import STRING_BYTES_MAX
from support.hostile.victim import Victim
from support.wire.client import WireClient

LONG = "x" * STRING_BYTES_MAX
TOPIC = 2


def created(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000)


def test_a_very_long_name_is_refused_and_the_connection_stays(tmp_path: Path) -> None:
    elected = ElectLeadersRequest(
        election_type=0, timeout_ms=10_000, topic_partitions=[TopicPartitions(topic=LONG, partitions=[0])]
    )
    described = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name=LONG)]
    )
    with Victim(tmp_path) as victim:
        with WireClient(victim.address) as client:
            topic = client.ask(created(LONG), 7).topics[0]
            [of_topic] = client.ask(elected, 2).replica_election_results
            [settings] = client.ask(described, 4).results
        # In slices, as a request with more than 500 topics is handled.
        many = [LONG, *(f"/{number}" for number in range(600)), "/last"]
        with WireClient(victim.address) as client:
            answers: list[Any] = client.ask(created(*many), 7).topics
        assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert of_topic.partition_result[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert settings.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert len(answers) == len(many)
        victim.check()
