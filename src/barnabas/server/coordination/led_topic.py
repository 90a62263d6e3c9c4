"""The partitions of an internal topic that this broker leads: starts and stops their shards."""

from collections.abc import Callable
from typing import Final, Generic

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.runtime.ports import AnyShard
from barnabas.coordinators.runtime.shards import Shards
from barnabas.metadata.image import MetadataImage
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.hosted_partition import HostedPartition


class LedTopic(Generic[AnyShard]):
    """follow() must be called with every applied image in which topics have changed."""

    def __init__(
        self,
        shards: Shards[AnyShard],
        replicas: Replicas,
        host: Callable[[Partition], HostedPartition],
    ) -> None:
        self._shards = shards
        self._replicas = replicas
        self._host = host
        self._led: dict[int, _Led[AnyShard]] = {}

    def follow(self, image: MetadataImage) -> None:
        """Start shards for partitions that this broker now leads, and stop those that it no longer leads."""
        name = self._shards.topic
        topic = image.topics.get(name)
        leads = {}
        for index in range(0 if topic is None else len(topic.partitions)):
            partition = self._replicas.partitions.get(TopicPartition(name, index))
            if partition is not None and partition.is_leader:
                leads[index] = partition
        for index, led in list(self._led.items()):
            if not led.is_still(leads.get(index)):
                self._led.pop(index).end()
                self._shards.resign(index)
        for index, partition in leads.items():
            if index not in self._led:
                hosted = self._host(partition)
                self._led[index] = _Led(hosted, self._shards, index)
                self._shards.lead(index, hosted)

    def close(self) -> None:
        """The broker is stopping: tell waiting clients to look for another coordinator."""
        for led in self._led.values():
            led.end()
        self._led.clear()
        self._shards.close()


class _Led(Generic[AnyShard]):
    """Notifies the shard when more of its partition is committed."""

    def __init__(self, hosted: HostedPartition, shards: Shards[AnyShard], index: int) -> None:
        self._hosted: Final = hosted
        self._shards = shards
        self._index = index
        hosted.partition.waiters[self] = None

    def is_still(self, partition: Partition | None) -> bool:
        return (
            partition is self._hosted.partition
            and partition is not None
            and partition.leader_epoch == self._hosted.leader_epoch
        )

    def poke(self, partition: Partition) -> None:
        host = self._shards.hosts.get(self._index)
        if host is not None:
            host.committed()

    def end(self) -> None:
        self._hosted.partition.waiters.pop(self, None)
