"""This broker's coordinator of groups: what it leads of __consumer_offsets, by the metadata.

The rooms below know neither images nor replicas' insides nor settings' names. Here they are put together.
"""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from barnabas.base.checksum import Checksums
from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import Tasks
from barnabas.coordinators.runtime.coordinator import OFFSETS_TOPIC, GroupCoordinator
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import GROUP_RESOURCE, MetadataImage
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.group_partitions import HostedPartition
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.server.settings.group_limits import group_settings
from barnabas.storage.manager import LogManager

AskController = Callable[[object], Awaitable[object]]


class Groups:
    """follow() is called with every image that has been carried out."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: Random,
        executor: Executor,
        checksums: Checksums,
        tasks: Tasks,
        settings: DynamicSettings,
        logs: LogManager,
        replicas: Replicas,
        image: MetadataImage,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._replicas = replicas
        self._executor = executor
        self._checksums = checksums
        self._image = image
        self.coordinator: Final = GroupCoordinator(
            clock=clock,
            rng=rng,
            executor=executor,
            tasks=tasks,
            settings=group_settings(settings.now, image),
            image=image,
            commit_timeout_ms=lambda: settings.now.offsets_commit_timeout_ms,
            load_bytes_at_once=settings.now.offsets_load_buffer_size,
        )
        self._led: dict[int, _Led] = {}
        settings.subscribe(self._take_settings)

    def host_of(self, group_id: str) -> ShardHost:
        """The shard of a group; GroupError if it is not here, or not yet."""
        return self.coordinator.host_of(group_id)

    # Following the metadata

    def start(self, image: MetadataImage) -> None:
        """The first image: everything in it is news."""
        self._image = image
        self.coordinator.take_settings(group_settings(self._settings.now, image))
        self.coordinator.take_image(image, changed=frozenset(), deleted=frozenset())
        self._lead(image)

    def follow(self, image: MetadataImage, changes: Changes) -> None:
        self._image = image
        if any(resource.type == GROUP_RESOURCE for resource in changes.configs_changed):
            self.coordinator.take_settings(group_settings(self._settings.now, image))
        if not changes.topics_changed and not changes.topics_deleted:
            return
        changed = (image.topics_by_id.get(topic_id) for topic_id in changes.topics_changed)
        self.coordinator.take_image(
            image,
            changed=frozenset(topic.name for topic in changed if topic is not None),
            deleted=frozenset(topic.name for topic in changes.topics_deleted.values()),
        )
        self._lead(image)

    def _take_settings(self, settings: BrokerSettings, _changed: frozenset[str]) -> None:
        self.coordinator.take_settings(group_settings(settings, self._image))

    def _lead(self, image: MetadataImage) -> None:
        """Begin with what became ours, and give up what is ours no longer."""
        topic = image.topics.get(OFFSETS_TOPIC)
        leads = {}
        for index in range(0 if topic is None else len(topic.partitions)):
            partition = self._replicas.partitions.get(TopicPartition(OFFSETS_TOPIC, index))
            if partition is not None and partition.is_leader:
                leads[index] = partition
        for index, led in list(self._led.items()):
            if not led.is_still(leads.get(index)):
                self._led.pop(index).end()
                self.coordinator.resign(index)
        for index, partition in leads.items():
            if index not in self._led:
                hosted = HostedPartition(
                    partition,
                    logs=self._logs,
                    executor=self._executor,
                    checksums=self._checksums,
                    settings=self._settings,
                )
                self._led[index] = _Led(hosted, self.coordinator, index)
                self.coordinator.lead(index, hosted)

    def close(self) -> None:
        """The broker stops: whoever waits in a group is told to look for another coordinator."""
        for led in self._led.values():
            led.end()
        self._led.clear()
        self.coordinator.close()


class _Led:
    """Passes on that more of a partition is committed."""

    def __init__(self, hosted: HostedPartition, coordinator: GroupCoordinator, index: int) -> None:
        self._hosted = hosted
        self._coordinator = coordinator
        self._index = index
        hosted.partition.waiters[self] = None

    def is_still(self, partition: Partition | None) -> bool:
        return (
            partition is self._hosted.partition
            and partition is not None
            and partition.leader_epoch == self._hosted.leader_epoch
        )

    def poke(self, partition: Partition) -> None:
        host = self._coordinator.hosts.get(self._index)
        if host is not None:
            host.committed()

    def end(self) -> None:
        self._hosted.partition.waiters.pop(self, None)
