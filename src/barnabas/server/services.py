"""The components of one broker that handlers use, by name. broker.py creates them."""

from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from barnabas.base.checksum import Checksums
from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import Tasks
from barnabas.metadata.image import MetadataImage
from barnabas.raft.driver import Quorum
from barnabas.replication.errors import NotLeader, UnknownPartition
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.cluster.auto_topics import AutoTopics
from barnabas.server.coordination.groups import GroupCoordinator
from barnabas.server.coordination.internal_topic import InternalTopic
from barnabas.server.coordination.producer_ids import ProducerIds
from barnabas.server.coordination.transactions import TransactionCoordinator
from barnabas.server.fetch.sessions import FetchSessions
from barnabas.server.requests.long_requests import LongRequests
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.server.topic_rows import TopicRows
from barnabas.storage.manager import LogManager


class ControllerChannel(Protocol):
    """Calls the active controller, in this process or over the network."""

    async def call(self, request: object) -> object:
        """The controller's answer to one of its requests; errors are in the answer."""


@dataclass(slots=True, kw_only=True)
class Services:
    """One broker's components. Only `image` is replaced at run time, by a newer one."""

    node_id: int
    cluster_id: str
    clock: Clock
    rng: Random
    executor: Executor
    checksums: Checksums
    tasks: Tasks
    settings: DynamicSettings
    logs: LogManager
    replicas: Replicas
    quorum: Quorum
    controller: ControllerChannel
    sessions: FetchSessions
    producer_ids: ProducerIds
    groups: GroupCoordinator
    offsets_topic: InternalTopic
    transactions: TransactionCoordinator
    transaction_topic: InternalTopic
    image: MetadataImage
    # The cache of Metadata responses.
    topic_rows: TopicRows = field(default_factory=TopicRows)
    auto_topics: AutoTopics = field(default_factory=AutoTopics)
    long_requests: LongRequests = field(default_factory=LongRequests)


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
