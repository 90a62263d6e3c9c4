"""The metadata quorum: Vote, Begin- and EndQuorumEpoch, DescribeQuorum, FetchSnapshot."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import (
    Records,
    array,
    boolean,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.schema.struct import request, response, struct


@struct
class VotePartitionData:
    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: Uuid = uuid("1+", ignorable=True)
    voter_directory_id: Uuid = uuid("1+", ignorable=True)
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean("2+")


@struct
class VoteTopicData:
    topic_name: str = string()
    partitions: list[VotePartitionData] = array(VotePartitionData)


@request(52, versions="0-2", flexible="0+", listeners="controller")
class VoteRequest:
    """v1 voter_id, replica_directory_id, voter_directory_id; v2 pre_vote"""

    cluster_id: str | None = string(null="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[VoteTopicData] = array(VoteTopicData)


@struct
class VoteResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


@struct
class VoteResponseTopicData:
    topic_name: str = string()
    partitions: list[VoteResponsePartitionData] = array(VoteResponsePartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@response(52, versions="0-2", flexible="0+")
class VoteResponse:
    """v1 node_endpoints"""

    error_code: int = int16()
    topics: list[VoteResponseTopicData] = array(VoteResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


@struct
class BeginQuorumEpochPartitionData:
    partition_index: int = int32()
    voter_directory_id: Uuid = uuid("1+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class BeginQuorumEpochTopicData:
    topic_name: str = string()
    partitions: list[BeginQuorumEpochPartitionData] = array(BeginQuorumEpochPartitionData)


@struct
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@request(53, versions="0-1", flexible="1+", listeners="controller")
class BeginQuorumEpochRequest:
    """v1 flexible, voter_id, leader_endpoints, voter_directory_id"""

    cluster_id: str | None = string(null="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochTopicData] = array(BeginQuorumEpochTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


@struct
class BeginQuorumEpochResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class BeginQuorumEpochResponseTopicData:
    topic_name: str = string()
    partitions: list[BeginQuorumEpochResponsePartitionData] = array(BeginQuorumEpochResponsePartitionData)


@response(53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    """v1 flexible, node_endpoints"""

    error_code: int = int16()
    topics: list[BeginQuorumEpochResponseTopicData] = array(BeginQuorumEpochResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


@struct
class ReplicaInfo:
    candidate_id: int = int32()
    candidate_directory_id: Uuid = uuid()


@struct
class EndQuorumEpochPartitionData:
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(int32, "0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, "1+", ignorable=True)


@struct
class EndQuorumEpochTopicData:
    topic_name: str = string()
    partitions: list[EndQuorumEpochPartitionData] = array(EndQuorumEpochPartitionData)


@request(54, versions="0-1", flexible="1+", listeners="controller")
class EndQuorumEpochRequest:
    """v1 flexible, leader_endpoints, no preferred_successors, preferred_candidates"""

    cluster_id: str | None = string(null="0+", default=None)
    topics: list[EndQuorumEpochTopicData] = array(EndQuorumEpochTopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", ignorable=True)


@struct
class EndQuorumEpochResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class EndQuorumEpochResponseTopicData:
    topic_name: str = string()
    partitions: list[EndQuorumEpochResponsePartitionData] = array(EndQuorumEpochResponsePartitionData)


@response(54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    """v1 flexible, node_endpoints"""

    error_code: int = int16()
    topics: list[EndQuorumEpochResponseTopicData] = array(EndQuorumEpochResponseTopicData)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)


@struct
class DescribeQuorumPartitionData:
    partition_index: int = int32()


@struct
class DescribeQuorumTopicData:
    topic_name: str = string()
    partitions: list[DescribeQuorumPartitionData] = array(DescribeQuorumPartitionData)


@request(55, versions="0-2", flexible="0+", listeners="broker controller")
class DescribeQuorumRequest:
    topics: list[DescribeQuorumTopicData] = array(DescribeQuorumTopicData)


@struct
class ReplicaState:
    replica_id: int = int32()
    replica_directory_id: Uuid = uuid("2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


@struct
class DescribeQuorumResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", null="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@struct
class DescribeQuorumResponseTopicData:
    topic_name: str = string()
    partitions: list[DescribeQuorumResponsePartitionData] = array(DescribeQuorumResponsePartitionData)


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class Node:
    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


@response(55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """v1 last_fetch_timestamp, last_caught_up_timestamp; v2 error_message, nodes, replica_directory_id"""

    error_code: int = int16()
    error_message: str | None = string("2+", null="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = array(DescribeQuorumResponseTopicData)
    nodes: list[Node] = array(Node, "2+")


@struct
class SnapshotId:
    end_offset: int = int64()
    epoch: int = int32()


@struct
class FetchSnapshotPartitionSnapshot:
    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotId = nested(SnapshotId)
    position: int = int64()
    replica_directory_id: Uuid = uuid("1+", tag=0, ignorable=True)


@struct
class FetchSnapshotTopicSnapshot:
    name: str = string()
    partitions: list[FetchSnapshotPartitionSnapshot] = array(FetchSnapshotPartitionSnapshot)


@request(59, versions="0-1", flexible="0+", listeners="controller")
class FetchSnapshotRequest:
    """v1 replica_directory_id"""

    cluster_id: str | None = string(null="0+", default=None, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2147483647)
    topics: list[FetchSnapshotTopicSnapshot] = array(FetchSnapshotTopicSnapshot)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class FetchSnapshotResponsePartitionSnapshot:
    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotId = nested(SnapshotId)
    current_leader: LeaderIdAndEpoch | None = nested(LeaderIdAndEpoch, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: Records = records()


@struct
class FetchSnapshotResponseTopicSnapshot:
    name: str = string()
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = array(FetchSnapshotResponsePartitionSnapshot)


@response(59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    """v1 node_endpoints"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[FetchSnapshotResponseTopicSnapshot] = array(FetchSnapshotResponseTopicSnapshot)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)
