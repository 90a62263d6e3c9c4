"""One request with very many items: others are served meanwhile, and its memory is freed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.cluster import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from barnabas.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.transaction_admin import DescribeTransactionsRequest
from barnabas.protocol.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.wire import ITEMS_MAX
from barnabas.server.requests.api import WHOLE_ITEMS_MAX
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.scale import scaled
from support.wire.client import ConnectionClosed, WireClient, key_of

COUNT = scaled("BARNABAS_ITEMS", 20_000, 100_000)
BROKER, TOPIC = 4, 2


class Long(NamedTuple):
    """A request about many resources that do not exist, and a function that counts the results."""

    version: int
    body: Callable[[list[str]], Any]
    answers: Callable[[Any], list[Any]]
    error: int
    share: float = 1.0


def _of_partitions(topic: Any) -> Any:
    return [one for each in topic for one in each.partitions]


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
REQUESTS = {
    "metadata": Long(
        12,
        lambda names: MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        ),
        lambda answer: answer.topics,
        UNKNOWN,
    ),
    "describe-topic-partitions": Long(
        0,
        lambda names: DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=2000
        ),
        lambda answer: answer.topics,
        UNKNOWN,
    ),
    "describe-groups": Long(
        6,
        lambda names: DescribeGroupsRequest(groups=names),
        lambda answer: answer.groups,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
    "describe-consumer-groups": Long(
        1,
        lambda names: ConsumerGroupDescribeRequest(group_ids=names),
        lambda answer: answer.groups,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
    "delete-groups": Long(
        2,
        lambda names: DeleteGroupsRequest(groups_names=names),
        lambda answer: answer.results,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
    "find-coordinator": Long(
        5, lambda names: FindCoordinatorRequest(coordinator_keys=names), lambda answer: answer.coordinators, 0
    ),
    "describe-transactions": Long(
        0,
        lambda names: DescribeTransactionsRequest(transactional_ids=names),
        lambda answer: answer.transaction_states,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ),
    "create-topics": Long(
        7,
        lambda names: CreateTopicsRequest(
            topics=[
                CreatableTopic(name=f"{name}/", num_partitions=1, replication_factor=1) for name in names
            ],
            timeout_ms=60_000,
        ),
        lambda answer: answer.topics,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    "delete-topics": Long(
        6,
        lambda names: DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names], timeout_ms=60_000
        ),
        lambda answer: answer.responses,
        UNKNOWN,
    ),
    "create-partitions": Long(
        3,
        lambda names: CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=3) for name in names], timeout_ms=60_000
        ),
        lambda answer: answer.results,
        UNKNOWN,
    ),
    "describe-configs": Long(
        4,
        lambda names: DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in names]
        ),
        lambda answer: answer.results,
        UNKNOWN,
    ),
    "alter-configs": Long(
        2,
        lambda names: AlterConfigsRequest(
            resources=[
                AlterConfigsResourceRequest(resource_type=TOPIC, resource_name=name, configs=[])
                for name in names
            ]
        ),
        lambda answer: answer.responses,
        UNKNOWN,
    ),
    "alter-configs-incrementally": Long(
        1,
        lambda names: IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsAlterConfigsResource(
                    resource_type=TOPIC, resource_name=name, configs=[]
                )
                for name in names
            ]
        ),
        lambda answer: answer.responses,
        UNKNOWN,
    ),
    "fetch": Long(
        12,
        lambda names: FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=name,
                    partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
                )
                for name in names
            ],
        ),
        lambda answer: _of_partitions(answer.responses),
        UNKNOWN,
        0.5,
    ),
    "produce": Long(
        9,
        lambda names: ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=b"")])
                for name in names
            ],
        ),
        lambda answer: [one for each in answer.responses for one in each.partition_responses],
        UNKNOWN,
        0.5,
    ),
    "list-offsets": Long(
        7,
        lambda names: ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=names[0],
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=-1)
                        for index in range(len(names))
                    ],
                )
            ],
        ),
        lambda answer: _of_partitions(answer.topics),
        UNKNOWN,
    ),
    "offset-fetch": Long(
        8,
        lambda names: OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g",
                    topics=[OffsetFetchRequestTopics(name="t", partition_indexes=list(range(len(names))))],
                )
            ]
        ),
        lambda answer: _of_partitions([topic for group in answer.groups for topic in group.topics]),
        0,
    ),
    "offset-commit": Long(
        8,
        lambda names: OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
                )
                for name in names
            ],
        ),
        lambda answer: _of_partitions(answer.topics),
        UNKNOWN,
        0.5,
    ),
    "delete-records": Long(
        2,
        lambda names: DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
                )
                for name in names
            ],
            timeout_ms=1000,
        ),
        lambda answer: _of_partitions(answer.topics),
        UNKNOWN,
        0.5,
    ),
    "leader-epochs": Long(
        4,
        lambda names: OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    topic=name, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
                )
                for name in names
            ],
        ),
        lambda answer: _of_partitions(answer.topics),
        UNKNOWN,
        0.5,
    ),
}


@pytest.mark.scaled
def test_a_request_with_many_entries_delays_no_other_client(tmp_path: Path) -> None:
    names = [f"nothing-{number}" for number in range(COUNT)]
    with Victim(tmp_path) as victim:
        with WireClient(victim.address) as client:
            # Coordinators exist, and what is allocated once is there.
            client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
            client.ask(FindCoordinatorRequest(key="t", key_type=1), 3)
            for long in REQUESTS.values():
                client.ask(long.body(names[:2_000]), long.version)
        before_mb = victim.rss_mb
        with victim.bystander() as bystander:
            for name, long in REQUESTS.items():
                asked = names[: int(COUNT * long.share)]
                with WireClient(victim.address, timeout_s=120) as client:
                    answers = long.answers(client.ask(long.body(asked), long.version))
                assert len(answers) == len(asked), name
                codes = {getattr(one, "error_code", 0) for one in answers}
                assert codes == {long.error}, (name, codes)
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        assert bystander.requests > 50
        victim.memory_returns_to(before_mb)
        victim.check()


@pytest.mark.scaled
def test_describing_a_broker_many_times_delays_no_other_client(tmp_path: Path) -> None:
    """A request of a few kilobytes, and a response of many megabytes."""
    count = scaled("BARNABAS_ITEMS", 300, 2_000)
    with Victim(tmp_path) as victim:
        with WireClient(victim.address) as client:
            node = str(client.ask(MetadataRequest(topics=[]), 12).brokers[0].node_id)
            resource = DescribeConfigsResource(resource_type=BROKER, resource_name=node)
            [alone] = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
        before_mb = victim.rss_mb
        with victim.bystander() as bystander, WireClient(victim.address, timeout_s=300) as client:
            results = client.ask(DescribeConfigsRequest(resources=[resource] * count), 4).results
            assert results == [alone] * len(results)
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.memory_returns_to(before_mb)
        victim.check()


def test_a_request_with_too_many_items_closes_the_connection(tmp_path: Path) -> None:
    names = [f"{number:x}" for number in range(ITEMS_MAX + 1)]
    with Victim(tmp_path) as victim, victim.bystander() as bystander:
        with WireClient(victim.address) as client, pytest.raises(ConnectionClosed):
            client.ask(DescribeGroupsRequest(groups=names), 6)
        assert f"more than {ITEMS_MAX} items in one message" in victim.log
        # Nothing of it is left behind, and the next client is served.
        with WireClient(victim.address) as client:
            assert client.ask(MetadataRequest(topics=[]), 12).brokers
    assert bystander.slowest_s < SERVED_WITHIN_S


WHOLE = {
    "the settings of one topic": (
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsAlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name="t",
                    configs=[
                        IncrementalAlterConfigsAlterableConfig(
                            name=f"setting-{number}", config_operation=0, value="1"
                        )
                        for number in range(WHOLE_ITEMS_MAX + 1)
                    ],
                )
            ]
        ),
        1,
    ),
    "the partitions of one transaction": (
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="id",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name="topic-of-some-length", partitions=list(range(WHOLE_ITEMS_MAX)))
            ],
        ),
        3,
    ),
}


@pytest.mark.parametrize("what", WHOLE)
def test_too_many_items_that_must_be_handled_together_close_the_connection(what: str, tmp_path: Path) -> None:
    body, version = WHOLE[what]
    with Victim(tmp_path) as victim:
        with WireClient(victim.address) as client, pytest.raises(ConnectionClosed):
            client.ask(body, version)
        assert f"items must be handled together, the limit is {WHOLE_ITEMS_MAX}" in victim.log
        victim.check()


def test_many_clients_with_long_requests_leave_time_for_others(tmp_path: Path) -> None:
    names = [f"nothing-{number}" for number in range(5_000)]
    body = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    with Victim(tmp_path) as victim:
        clients = [WireClient(victim.address, timeout_s=120) for _ in range(50)]
        with victim.bystander() as bystander:
            sent = [client.send(body, 12) for client in clients]
            for client, number in zip(clients, sent, strict=True):
                answered, answer = client.receive(key_of(body), 12)
                assert answered == number
                assert len(answer.topics) == len(names)
        for client in clients:
            client.close()
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_answers_keep_their_order_around_a_long_request(tmp_path: Path) -> None:
    names = [f"nothing-{number}" for number in range(5_000)]
    with Victim(tmp_path) as victim:
        with WireClient(victim.address) as client:
            short, long = DescribeGroupsRequest(groups=["a"]), DescribeGroupsRequest(groups=names)
            sent = [client.send(body, 6) for body in (short, long, short, long, short)]
            received = [client.receive(key_of(short), 6) for _ in sent]
        assert [number for number, _ in received] == sent
        assert [len(answer.groups) for _, answer in received] == [1, 5_000, 1, 5_000, 1]
        victim.check()
