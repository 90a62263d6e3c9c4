"""This broker's group coordinator: it leads partitions of __consumer_offsets as the metadata says.

The coordinators package does not know replicas or setting names. This module connects them.
"""

from random import Random
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.tasks import Tasks
from barnabas.coordinators.runtime.group_coordinator import GroupCoordinator, GroupHost
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import GROUP_RESOURCE, MetadataImage
from barnabas.records.header import Codec
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.hosted_partition import HostedPartition
from barnabas.server.coordination.led_topic import LedTopic
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.server.settings.group_limits import group_settings
from barnabas.storage.manager import LogManager


class Groups:
    """follow() must be called with every metadata image after it has been applied."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: Random,
        executor: Executor,
        tasks: Tasks,
        settings: DynamicSettings,
        logs: LogManager,
        replicas: Replicas,
        image: MetadataImage,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._executor = executor
        self._image = image
        self._codec = Codec(settings.now.offsets_topic_compression_codec)
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
        self._led: Final = LedTopic(self.coordinator.shards, replicas, self._hosted)
        settings.subscribe(self._take_settings)

    def _hosted(self, partition: Partition) -> HostedPartition:
        return HostedPartition(
            partition,
            logs=self._logs,
            executor=self._executor,
            codec=self._codec,
        )

    def host_of(self, group_id: str) -> GroupHost:
        """The shard of a group; Refused if this broker does not lead it, or it is still loading."""
        return self.coordinator.host_of(group_id)

    # Following the metadata

    def start(self, image: MetadataImage) -> None:
        """Apply the first image."""
        self._image = image
        self.coordinator.take_settings(group_settings(self._settings.now, image))
        self.coordinator.take_image(image, changed=frozenset(), deleted=frozenset())
        self._led.follow(image)

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
        self._led.follow(image)

    def _take_settings(self, settings: BrokerSettings, _changed: frozenset[str]) -> None:
        self.coordinator.take_settings(group_settings(settings, self._image))

    def close(self) -> None:
        """The broker is stopping: tell waiting members to look for another coordinator."""
        self._led.close()
