"""Leaders and replicas: ElectLeaders, Alter- and ListPartitionReassignments, AlterPartition."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema.struct import request, response, struct


@struct
class TopicPartitions:
    topic: str = string()
    partitions: list[int] = array(int32)


@request(43, versions="0-2", flexible="2+", listeners="broker controller")
class ElectLeadersRequest:
    """v1 election_type; v2 flexible"""

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, null="0+")
    timeout_ms: int = int32(default=60000)


@struct
class PartitionResult:
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@struct
class ReplicaElectionResult:
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@response(43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """v1 error_code; v2 flexible"""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)


@struct
class ReassignablePartition:
    partition_index: int = int32()
    replicas: list[int] | None = array(int32, null="0+", default=None)


@struct
class ReassignableTopic:
    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@request(45, versions="0-1", flexible="0+", listeners="broker controller")
class AlterPartitionReassignmentsRequest:
    """v1 allow_replication_factor_change"""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@struct
class ReassignableTopicResponse:
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@response(45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """v1 allow_replication_factor_change"""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)


@struct
class ListPartitionReassignmentsTopics:
    name: str = string()
    partition_indexes: list[int] = array(int32)


@request(46, versions="0", flexible="0+", listeners="broker controller")
class ListPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, null="0+", default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


@struct
class OngoingTopicReassignment:
    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


@response(46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)


@struct
class BrokerState:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@struct
class AlterPartitionPartitionData:
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionTopicData:
    topic_id: Uuid = uuid()
    partitions: list[AlterPartitionPartitionData] = array(AlterPartitionPartitionData)


@request(56, versions="2-3", flexible="0+", listeners="controller")
class AlterPartitionRequest:
    """v3 no new_isr, new_isr_with_epochs"""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[AlterPartitionTopicData] = array(AlterPartitionTopicData)


@struct
class AlterPartitionResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class AlterPartitionResponseTopicData:
    topic_id: Uuid = uuid()
    partitions: list[AlterPartitionResponsePartitionData] = array(AlterPartitionResponsePartitionData)


@response(56, versions="2-3", flexible="0+")
class AlterPartitionResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData)
