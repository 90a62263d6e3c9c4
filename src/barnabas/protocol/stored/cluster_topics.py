"""Records of the metadata log: topics, partitions, settings, producer ids."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, int8, int32, int64, string, uuid
from barnabas.protocol.schema.struct import message


@message("metadata", key=2, versions="0", flexible="0+")
class TopicRecord:
    name: str = string()
    topic_id: Uuid = uuid()


@message("metadata", key=3, versions="0-2", flexible="0+")
class PartitionRecord:
    """v1 directories; v2 eligible_leader_replicas, last_known_elr"""

    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[Uuid] = array(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array(int32, "2+", null="2+", default=None, tag=1)
    last_known_elr: list[int] | None = array(int32, "2+", null="2+", default=None, tag=2)


@message("metadata", key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """v1 directories; v2 eligible_leader_replicas, last_known_elr"""

    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    isr: list[int] | None = array(int32, null="0+", default=None, tag=0)
    leader: int = int32(default=-2, tag=1)
    replicas: list[int] | None = array(int32, null="0+", default=None, tag=2)
    removing_replicas: list[int] | None = array(int32, null="0+", default=None, tag=3)
    adding_replicas: list[int] | None = array(int32, null="0+", default=None, tag=4)
    leader_recovery_state: int = int8(default=-1, tag=5)
    directories: list[Uuid] | None = array(uuid, "1+", null="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(int32, "2+", null="2+", default=None, tag=6)
    last_known_elr: list[int] | None = array(int32, "2+", null="2+", default=None, tag=7)


@message("metadata", key=9, versions="0", flexible="0+")
class RemoveTopicRecord:
    topic_id: Uuid = uuid()


@message("metadata", key=4, versions="0", flexible="0+")
class ConfigRecord:
    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(null="0+")


@message("metadata", key=15, versions="0", flexible="0+")
class ProducerIdsRecord:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()
