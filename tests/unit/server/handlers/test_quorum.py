"""DescribeQuorum of a real quorum of one voter."""

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.quorum import (
    DescribeQuorumPartitionData,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    DescribeQuorumTopicData,
    Listener,
    Node,
)
from barnabas.server.handlers.quorum import API
from support.decided import one_broker
from support.log.managers import on_a_loop
from support.quorums import config, running

METADATA = "__cluster_metadata"
HOME = Uuid(b"voter's own home")
NOT_HERE = "This server does not host this topic-partition."


def asked(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            DescribeQuorumTopicData(
                topic_name=name,
                partitions=[DescribeQuorumPartitionData(partition_index=index) for index in indexes],
            )
            for name, indexes in topics
        ]
    )


@on_a_loop
async def test_the_leader_describes_voters_and_their_offsets() -> None:
    broker = one_broker()
    quorum = broker.services.quorum
    quorum.voters[1] = quorum.voters[1]._replace(directory_id=HOME)

    async with running(quorum, broker.recorder) as epoch:
        await quorum.append(epoch, [config(1), config(2)])
        for version in API.versions:
            answer = broker.ask(API, asked((METADATA, [0])), version)

            [topic] = answer.topics
            [part] = topic.partitions
            assert (topic.topic_name, part.partition_index) == (METADATA, 0)
            assert (part.leader_id, part.leader_epoch) == (1, epoch)
            assert part.high_watermark == quorum.end_offset > 2
            [voter] = part.current_voters
            now_ms = broker.clock.now_ms() if version >= 1 else -1
            assert (voter.replica_id, voter.log_end_offset) == (1, part.high_watermark)
            assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (now_ms, now_ms)
            assert voter.replica_directory_id == (HOME if version >= 2 else ZERO_UUID)
            assert part.observers == []
            listening = Listener(name="CONTROLLER", host="localhost", port=9093)
            assert answer.nodes == ([Node(node_id=1, listeners=[listening])] if version >= 2 else [])


@on_a_loop
async def test_another_node_answers_not_leader() -> None:
    broker = one_broker()
    await broker.services.quorum.open()

    for version in API.versions:
        answer = broker.ask(API, asked((METADATA, [0])), version)

        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.topics == []

    await broker.services.quorum.close()


@pytest.mark.parametrize(
    "topics",
    [
        [],
        [("orders", [0])],
        [(METADATA, [1])],
        [(METADATA, [-1])],
        [(METADATA, [0, 1])],
        [(METADATA, [0, 0])],
        [(METADATA, [])],
        [(METADATA, [0]), ("orders", [1])],
        [(METADATA, [0]), (METADATA, [0])],
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_any_other_partition_is_unknown(topics: list[tuple[str, list[int]]], version: int) -> None:
    answer = one_broker().ask(API, asked(*topics), version)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer == DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=index,
                        error_code=unknown,
                        error_message=NOT_HERE if version >= 2 else "",
                    )
                    for index in indexes
                ],
            )
            for name, indexes in topics
        ]
    )
