"""Log directories: AlterReplicaLogDirs, DescribeLogDirs, AssignReplicasToDirs."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int16, int32, int64, string, uuid
from barnabas.protocol.schema.struct import request, response, struct


@struct
class AlterReplicaLogDirTopic:
    name: str = string()
    partitions: list[int] = array(int32)


@struct
class AlterReplicaLogDir:
    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@request(34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """v2 flexible"""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@response(34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """v2 flexible"""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)


@struct
class DescribableLogDirTopic:
    topic: str = string()
    partitions: list[int] = array(int32)


@request(35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """v2 flexible"""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, null="0+")


@struct
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@struct
class DescribeLogDirsTopic:
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


@response(35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """v2 flexible; v3 error_code; v4 total_bytes, usable_bytes; v5 is_cordoned"""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)


@struct
class AssignReplicasToDirsPartitionData:
    partition_index: int = int32()


@struct
class AssignReplicasToDirsTopicData:
    topic_id: Uuid = uuid()
    partitions: list[AssignReplicasToDirsPartitionData] = array(AssignReplicasToDirsPartitionData)


@struct
class AssignReplicasToDirsDirectoryData:
    id: Uuid = uuid()
    topics: list[AssignReplicasToDirsTopicData] = array(AssignReplicasToDirsTopicData)


@request(73, versions="0", flexible="0+", listeners="controller")
class AssignReplicasToDirsRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[AssignReplicasToDirsDirectoryData] = array(AssignReplicasToDirsDirectoryData)


@struct
class AssignReplicasToDirsResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class AssignReplicasToDirsResponseTopicData:
    topic_id: Uuid = uuid()
    partitions: list[AssignReplicasToDirsResponsePartitionData] = array(
        AssignReplicasToDirsResponsePartitionData
    )


@struct
class AssignReplicasToDirsResponseDirectoryData:
    id: Uuid = uuid()
    topics: list[AssignReplicasToDirsResponseTopicData] = array(AssignReplicasToDirsResponseTopicData)


@response(73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[AssignReplicasToDirsResponseDirectoryData] = array(
        AssignReplicasToDirsResponseDirectoryData
    )
