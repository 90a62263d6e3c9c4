"""The group coordinator of this broker: the shards of __consumer_offsets, their settings and metadata.

It leads partitions of the topic as the metadata says. Handlers find the shard of a group in `shards`.
"""

from collections.abc import Set
from random import Random
from typing import Final, TypeAlias

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.re2_work import PatternWork
from barnabas.base.tasks import Tasks
from barnabas.coordinators.group.consumer.patterns import TopicPatterns
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.assigner import Assigner
from barnabas.coordinators.runtime.host import ShardHost, State
from barnabas.coordinators.runtime.pattern_resolver import PatternResolver
from barnabas.coordinators.runtime.ports import LedPartition
from barnabas.coordinators.runtime.shards import Shards
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import GROUP_RESOURCE, MetadataImage
from barnabas.records.header import Codec
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.hosted_partition import LedPartitions
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.server.settings.group_limits import group_settings
from barnabas.storage.manager import LogManager

OFFSETS_TOPIC: Final = "__consumer_offsets"

GroupHost: TypeAlias = ShardHost[GroupShard]


class GroupCoordinator:
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
        self._broker_settings = settings
        self._settings = group_settings(settings.now, image)
        # The newest image, which has the settings of groups, and the newest one with changed topics.
        self._newest = image
        self._image = image
        self._rng = rng
        self._patterns = TopicPatterns()
        # Shared by all APIs that take patterns from clients.
        self.pattern_work: Final = PatternWork(executor)
        self.assigner: Final = Assigner(executor, tasks)
        self._resolver = PatternResolver(self._patterns, self.pattern_work, tasks)
        self.shards: Final = Shards(
            OFFSETS_TOPIC,
            clock=clock,
            executor=executor,
            tasks=tasks,
            new=self._new_shard,
            activate=self._activate,
            commit_timeout_ms=lambda: settings.now.offsets_commit_timeout_ms,
            load_bytes_at_once=settings.now.offsets_load_buffer_size,
        )
        self.shards.take_image(image)
        self._led: Final = LedPartitions(
            self.shards,
            replicas=replicas,
            logs=logs,
            executor=executor,
            codec=Codec(settings.now.offsets_topic_compression_codec),
        )
        settings.subscribe(self._settings_changed)

    # Shards

    def _new_shard(self, partition: LedPartition) -> GroupShard:
        # A callback, because the topic's max.message.bytes may change.
        context = ShardContext(
            self._settings, self._rng, self._image, lambda: partition.batch_bytes_max, self._patterns
        )
        return GroupShard(context)

    def _activate(self, host: GroupHost) -> None:
        context = host.shard.context
        # Settings and image may have changed while the log was read.
        context.settings = self._settings
        before, now = context.image, self._image
        self.assigner.serve(host)
        host.activate()
        if now is not before and host.state is State.ACTIVE:
            changed = (name for name, topic in now.topics.items() if before.topics.get(name) is not topic)
            # Compare ids: a recreated topic counts as deleted.
            gone = (name for name, topic in before.topics.items() if topic.id not in now.topics_by_id)
            _show_image(host, now, frozenset(changed), frozenset(gone))

    # Regular expressions

    def is_resolved(self, regex: str) -> bool:
        """Whether the topics that match this regular expression are known."""
        return self._patterns.now(regex, self._image) is not None

    async def resolve(self, regex: str) -> None:
        """Resolve the regular expression. TooManyPatterns if too many are queued."""
        await self._resolver.resolve(regex)

    # Settings and metadata

    def start(self, image: MetadataImage) -> None:
        """Apply the first image."""
        self._newest = image
        self.take_settings(group_settings(self._broker_settings.now, image))
        self.take_image(image, changed=frozenset(), deleted=frozenset())
        self._led.follow(image)

    def follow(self, image: MetadataImage, changes: Changes) -> None:
        self._newest = image
        if any(resource.type == GROUP_RESOURCE for resource in changes.configs_changed):
            self.take_settings(group_settings(self._broker_settings.now, image))
        if not changes.topics_changed and not changes.topics_deleted:
            return
        changed = (image.topics_by_id.get(topic_id) for topic_id in changes.topics_changed)
        self.take_image(
            image,
            changed=frozenset(topic.name for topic in changed if topic is not None),
            deleted=frozenset(topic.name for topic in changes.topics_deleted.values()),
        )
        self._led.follow(image)

    def _settings_changed(self, settings: BrokerSettings, _changed: frozenset[str]) -> None:
        self.take_settings(group_settings(settings, self._newest))

    def take_settings(self, settings: GroupSettings) -> None:
        self._settings = settings
        for host in self.shards.hosts.values():
            host.shard.context.settings = settings

    def take_image(self, image: MetadataImage, *, changed: Set[str], deleted: Set[str]) -> None:
        self._image = image
        self.shards.take_image(image)
        for host in list(self.shards.hosts.values()):
            if host.state is State.ACTIVE:
                _show_image(host, image, changed, deleted)

    def close(self) -> None:
        """The broker is stopping: tell waiting members to look for another coordinator."""
        self._led.close()


def _show_image(host: GroupHost, image: MetadataImage, changed: Set[str], deleted: Set[str]) -> None:
    host.run(lambda _: host.shard.take_image(image, changed=changed, deleted=deleted))
