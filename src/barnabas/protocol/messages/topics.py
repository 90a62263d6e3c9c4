"""Creating and deleting topics and partitions: CreateTopics, DeleteTopics, CreatePartitions."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int8, int16, int32, string, uuid
from barnabas.protocol.schema.struct import request, response, struct


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(null="0+")


@struct
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@request(19, versions="2-7", flexible="5+", listeners="broker controller")
class CreateTopicsRequest:
    """v5 flexible"""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()


@struct
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(null="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()


@struct
class CreatableTopicResult:
    name: str = string()
    topic_id: Uuid = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", null="5+", ignorable=True
    )


@response(19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """v5 flexible, topic_config_error_code, num_partitions, replication_factor, configs; v7 topic_id"""

    throttle_time_ms: int = int32()
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)


@struct
class DeleteTopicState:
    name: str | None = string(null="0+", default=None)
    topic_id: Uuid = uuid()


@request(20, versions="1-6", flexible="4+", listeners="broker controller")
class DeleteTopicsRequest:
    """v4 flexible; v6 topics, no topic_names"""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()


@struct
class DeletableTopicResult:
    name: str | None = string(null="6+")
    topic_id: Uuid = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", null="5+", default=None, ignorable=True)


@response(20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """v4 flexible; v5 error_message; v6 topic_id"""

    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


@struct
class CreatePartitionsAssignment:
    broker_ids: list[int] = array(int32)


@struct
class CreatePartitionsTopic:
    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, null="0+")


@request(37, versions="0-3", flexible="2+", listeners="broker controller")
class CreatePartitionsRequest:
    """v2 flexible"""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@struct
class CreatePartitionsTopicResult:
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+", default=None)


@response(37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """v2 flexible"""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
