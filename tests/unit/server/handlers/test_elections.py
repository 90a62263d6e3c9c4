"""ElectLeaders through a broker."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.replicas import (
    AlterPartitionPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopicData,
    BrokerState,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from barnabas.server.handlers.elections import API
from support.decided import Decided, one_broker
from support.log.managers import on_a_loop


def electing(*partitions: int, timeout_ms: int = 1000, election_type: int = 0) -> ElectLeadersRequest:
    topic = TopicPartitions(topic="orders", partitions=list(partitions))
    return ElectLeadersRequest(topic_partitions=[topic], timeout_ms=timeout_ms, election_type=election_type)


def results(answer: ElectLeadersResponse) -> dict[int, int]:
    [topic] = answer.replica_election_results
    return {one.partition_id: one.error_code for one in topic.partition_result}


def led_by_another() -> Decided:
    """orders-0 prefers broker 1, which was away for a moment, so that 2 leads it."""
    broker = one_broker()
    broker.register(2)
    broker.create("orders", assigned=[[1, 2], [2, 1]])
    broker.heartbeat(1, want_fence=True)
    broker.heartbeat(1)
    assert broker.image.topics["orders"].partitions[0].leader == 2
    return broker


def in_sync_again(broker: Decided) -> None:
    """The leader of orders-0 says that broker 1 has caught up."""
    topic = broker.image.topics["orders"]
    partition = topic.partitions[0]
    epochs = {one.id: one.epoch for one in broker.image.brokers.values()}
    change = AlterPartitionPartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=one, broker_epoch=epochs[one]) for one in (1, 2)],
    )
    broker.channel.decide(
        AlterPartitionRequest(
            broker_id=2,
            broker_epoch=epochs[2],
            topics=[AlterPartitionTopicData(topic_id=topic.id, partitions=[change])],
        )
    )


@on_a_loop
async def test_the_preferred_leader_is_elected_once_it_is_in_sync() -> None:
    for version in API.versions:
        broker = led_by_another()
        in_sync_again(broker)

        answer = await broker.ask_and_wait(API, electing(0), version)

        assert results(answer) == {0: ErrorCode.NONE}
        assert broker.image.topics["orders"].partitions[0].leader == 1


@on_a_loop
async def test_an_ineligible_leader_is_not_elected() -> None:
    for version in API.versions:
        broker = led_by_another()

        answer = await broker.ask_and_wait(API, electing(0, 1, 7), version)

        assert answer.error_code == ErrorCode.NONE
        assert results(answer) == {
            # It has come back, and is not in sync yet.
            0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            1: ErrorCode.ELECTION_NOT_NEEDED,
            7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


@on_a_loop
async def test_an_unknown_kind_of_election_is_refused_as_a_whole() -> None:
    broker = one_broker()
    broker.create("orders")

    answer = await broker.ask_and_wait(API, electing(0, election_type=2), 2)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert results(answer) == {0: ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", API.versions)
def test_an_election_with_an_expired_timeout_is_not_started(version: int) -> None:
    broker = one_broker()
    broker.create("orders")
    late = ErrorCode.REQUEST_TIMED_OUT

    answer = broker.ask(API, electing(0, timeout_ms=0), version)

    failed = PartitionResult(partition_id=0, error_code=late, error_message=None)
    assert answer == ElectLeadersResponse(
        error_code=late if version else ErrorCode.NONE,
        replica_election_results=[ReplicaElectionResult(topic="orders", partition_result=[failed])],
    )
    assert broker.channel.asked == []


@pytest.mark.parametrize("version", API.versions)
def test_an_empty_election_ignores_the_timeout(version: int) -> None:
    answer = one_broker().ask(API, ElectLeadersRequest(topic_partitions=[], timeout_ms=0), version)

    assert answer == ElectLeadersResponse()


def test_an_expired_election_of_all_partitions_has_a_top_level_error() -> None:
    answer = one_broker().ask(API, ElectLeadersRequest(topic_partitions=None, timeout_ms=0), 2)

    assert answer == ElectLeadersResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
