"""The group coordinator of this broker: the shards of __consumer_offsets, and their settings and metadata."""

from collections.abc import Callable, Set
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
from barnabas.coordinators.runtime.partition_of import partition_of
from barnabas.coordinators.runtime.pattern_resolver import PatternResolver
from barnabas.coordinators.runtime.shards import Shards
from barnabas.metadata.image import MetadataImage

OFFSETS_TOPIC: Final = "__consumer_offsets"

GroupHost: TypeAlias = ShardHost[GroupShard]


class GroupCoordinator:
    """`shards` tracks the leadership of partitions; handlers use host_of()."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: Random,
        executor: Executor,
        tasks: Tasks,
        settings: GroupSettings,
        image: MetadataImage,
        commit_timeout_ms: Callable[[], int],
        load_bytes_at_once: int,
    ) -> None:
        self._settings = settings
        self._see(image)
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
            # Read each time: max.message.bytes of the topic may change.
            new=lambda partition: GroupShard(
                ShardContext(
                    self._settings, rng, self._image, lambda: partition.batch_bytes_max, self._patterns
                )
            ),
            activate=self._activate,
            commit_timeout_ms=commit_timeout_ms,
            load_bytes_at_once=load_bytes_at_once,
        )

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

    def host_of(self, group_id: str) -> GroupHost:
        """The active shard of a group. Refused if it is not on this broker or still loading."""
        return self.shards.host_of(group_id, self._partitions)

    # Regular expressions

    def is_resolved(self, regex: str) -> bool:
        """Whether the topics that match this regular expression are known."""
        return self._patterns.now(regex, self._image) is not None

    async def resolve(self, regex: str) -> None:
        """Resolve the regular expression. TooManyPatterns if too many are queued."""
        await self._resolver.resolve(regex)

    # Large groups

    def takes_long(self, group_id: str, told: int, *, is_news: bool) -> bool:
        """Whether a request to this group may take milliseconds, so that others should be served first."""
        host = self.shards.hosts.get(partition_of(group_id, self._partitions)) if self._partitions else None
        if host is None or host.state is not State.ACTIVE:
            return False
        return host.shard.takes_long(group_id, told, is_change=is_news)

    # Settings and metadata

    def take_settings(self, settings: GroupSettings) -> None:
        self._settings = settings
        for host in self.shards.hosts.values():
            host.shard.context.settings = settings

    def take_image(self, image: MetadataImage, *, changed: Set[str], deleted: Set[str]) -> None:
        self._see(image)
        for host in list(self.shards.hosts.values()):
            if host.state is State.ACTIVE:
                _show_image(host, image, changed, deleted)

    def _see(self, image: MetadataImage) -> None:
        """Take the image and cache the number of partitions, which every commit needs."""
        self._image = image
        topic = image.topics.get(OFFSETS_TOPIC)
        self._partitions = 0 if topic is None else len(topic.partitions)


def _show_image(host: GroupHost, image: MetadataImage, changed: Set[str], deleted: Set[str]) -> None:
    host.do_for_nobody(lambda _: host.shard.take_image(image, changed=changed, deleted=deleted))
