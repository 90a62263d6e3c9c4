"""The controller quorum: DescribeQuorum."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.base.values import value
from barnabas.client.admin.call import Call, check
from barnabas.client.errors import Refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.quorum import (
    DescribeQuorumPartitionData,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumTopicData,
    ReplicaState,
)

_TOPIC: Final = "__cluster_metadata"
_PARTITION: Final = 0
_UNKNOWN: Final = -1


@value(kw_only=True)
class QuorumReplica:
    """A replica of the metadata log. Times are None if not returned."""

    id: int
    directory_id: Uuid | None
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class QuorumEndpoint(NamedTuple):
    listener: str
    host: str
    port: int


@value(kw_only=True)
class QuorumDescription:
    """`nodes` has the listeners of the voters; empty from older brokers."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: Mapping[int, tuple[QuorumEndpoint, ...]]


async def describe(call: Call) -> QuorumDescription:
    asked = DescribeQuorumTopicData(
        topic_name=_TOPIC, partitions=[DescribeQuorumPartitionData(partition_index=_PARTITION)]
    )
    request = DescribeQuorumRequest(topics=[asked])

    async def attempt() -> QuorumDescription:
        answer: DescribeQuorumResponse = await call.ask(ApiKey.DESCRIBE_QUORUM, lambda _: request)
        check(answer.error_code, about="the quorum", message=answer.error_message)
        entry = _the_partition(answer)
        check(entry.error_code, about="the quorum", message=entry.error_message)
        return QuorumDescription(
            leader_id=entry.leader_id,
            leader_epoch=entry.leader_epoch,
            high_watermark=entry.high_watermark,
            voters=tuple(map(_replica, entry.current_voters)),
            observers=tuple(map(_replica, entry.observers)),
            nodes={
                node.node_id: tuple(QuorumEndpoint(at.name, at.host, at.port) for at in node.listeners)
                for node in answer.nodes
            },
        )

    return await call.single("DESCRIBE_QUORUM", attempt)


def _the_partition(answer: DescribeQuorumResponse) -> DescribeQuorumResponsePartitionData:
    for topic in answer.topics:
        for entry in topic.partitions:
            if topic.topic_name == _TOPIC and entry.partition_index == _PARTITION:
                return entry
    why = f"the response has no entry for {_TOPIC}-{_PARTITION}"
    raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, about="the quorum", message=why)


def _replica(entry: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        id=entry.replica_id,
        directory_id=None if entry.replica_directory_id == ZERO_UUID else entry.replica_directory_id,
        log_end_offset=entry.log_end_offset,
        last_fetch_ms=_or_none(entry.last_fetch_timestamp),
        last_caught_up_ms=_or_none(entry.last_caught_up_timestamp),
    )


def _or_none(number: int) -> int | None:
    return None if number == _UNKNOWN else number
