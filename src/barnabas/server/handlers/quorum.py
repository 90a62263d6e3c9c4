"""DescribeQuorum (key 55), versions 0-2.

Supported: voters and observers of the metadata quorum, with their end offsets, if this node is the leader.
Only the metadata partition can be requested; any other request gets UNKNOWN_TOPIC_OR_PARTITION for all its
partitions.
v1 fetch times; v2 directory ids, listeners of the voters, error messages.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from barnabas.raft.description import QuorumDescription, ReplicaDescription
from barnabas.raft.errors import NotLeader
from barnabas.raft.facts import METADATA
from barnabas.server.requests.api import Answer, Api, Context

_NODES_FROM: Final = 2
_NOT_HERE: Final = "This server does not host this topic-partition."
_NOT_LEADER: Final = "This node does not lead the metadata quorum."


def handle(ctx: Context, request: Request) -> Answer:
    body: DescribeQuorumRequest = request.body
    if not _is_of_metadata(body):
        return _unknown(body)
    try:
        found = ctx.broker.quorum.describe()
    except NotLeader:
        return DescribeQuorumResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=_NOT_LEADER)
    described = _partition(found, request.version)
    response = DescribeQuorumResponse(
        topics=[DescribeQuorumResponseTopicData(topic_name=METADATA.topic, partitions=[described])]
    )
    if request.version >= _NODES_FROM:
        response.nodes = _nodes(ctx)
    return response


def _is_of_metadata(body: DescribeQuorumRequest) -> bool:
    asked = [
        (topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in body.topics[:2]
    ]
    return asked == [(METADATA.topic, [METADATA.partition])]


def _partition(found: QuorumDescription, version: int) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=METADATA.partition,
        leader_id=found.leader,
        leader_epoch=found.epoch,
        high_watermark=found.high_watermark,
        current_voters=_states(found.voters, version),
        observers=_states(found.observers, version),
    )


def _states(replicas: Iterable[ReplicaDescription], version: int) -> list[ReplicaState]:
    states = []
    for one in replicas:
        state = ReplicaState(
            replica_id=one.id,
            log_end_offset=one.end_offset,
            last_fetch_timestamp=one.last_fetch_ms,
            last_caught_up_timestamp=one.last_caught_up_ms,
        )
        if version >= _NODES_FROM:
            state.replica_directory_id = one.directory_id
        states.append(state)
    return states


def _nodes(ctx: Context) -> list[Node]:
    """The voters' listeners. The listener name is that in this node's settings."""
    name = ctx.broker.settings.now.controller_listeners[0].name
    return [
        Node(node_id=voter.id, listeners=[Listener(name=name, host=voter.host, port=voter.port)])
        for voter in ctx.broker.quorum.voters.values()
    ]


def _unknown(body: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=one.partition_index, error_code=code, error_message=_NOT_HERE
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def refuse(body: DescribeQuorumRequest, version: int, code: ErrorCode) -> object:
    return DescribeQuorumResponse(error_code=code, error_message=None)


API = Api(ApiKey.DESCRIBE_QUORUM, versions=range(3), handle=handle, refuse=refuse)
