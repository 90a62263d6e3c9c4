"""This broker's coordinator of groups: what it leads of __consumer_offsets, by the metadata.

The rooms below know neither images nor replicas' insides nor settings' names. Here they are put together.
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
    """follow() is called with every image that has been carried out."""

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
        """The shard of a group; Refused if it is not here, or not yet."""
        return self.coordinator.host_of(group_id)

    # Following the metadata

    def start(self, image: MetadataImage) -> None:
        """The first image: everything in it is news."""
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
        """The broker stops: whoever waits in a group is told to look for another coordinator."""
        self._led.close()
