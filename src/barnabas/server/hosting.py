"""The partition that a request names, as this broker has it: the look-up that most handlers begin with."""

from barnabas.base.ids import TopicPartition
from barnabas.replication.errors import NotLeader, UnknownPartition
from barnabas.replication.partition import Partition
from barnabas.server.services import Services


def hosted(broker: Services, topic: str, index: int) -> Partition:
    """A partition that is here and in service.

    UnknownPartition if the cluster has none, NotLeader if others have it, StorageError if its log is out of
    service.
    """
    tp = TopicPartition(topic, index)
    try:
        partition = broker.replicas.get(tp)
    except UnknownPartition:
        known = broker.image.topics.get(topic)
        if known is None or not 0 <= index < len(known.partitions):
            raise
        image = known.partitions[index]
        raise NotLeader(str(tp), leader=image.leader, leader_epoch=image.leader_epoch) from None
    partition.log.check_open()
    return partition
