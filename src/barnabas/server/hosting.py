"""Look up the partition that a request names on this broker. Most handlers begin with this."""

from barnabas.base.ids import TopicPartition
from barnabas.replication.errors import NotLeader, UnknownPartition
from barnabas.replication.partition import Partition
from barnabas.server.services import Services


def hosted(broker: Services, topic: str, index: int) -> Partition:
    """Return a partition that this broker hosts and whose log is open.

    UnknownPartition if the cluster has none, NotLeader if only other brokers host it, StorageError if its log
    is out of service.
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
