"""All partitions of this broker, kept as the metadata image says.

apply() makes and deletes logs and tells partitions about leaders and settings. Everything it does is owed to
the image: doing it twice is doing it once, so a start is the same as a change of everything.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from barnabas.base.faults import report_fault
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import together
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import TOPIC_RESOURCE, ConfigResource, MetadataImage, PartitionImage, TopicImage
from barnabas.replication.errors import UnknownPartition
from barnabas.replication.partition import Partition
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import LogFailed, StorageError
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager

logger = logging.getLogger(__name__)

T = TypeVar("T")

# So many logs are made or deleted at the same time.
AT_ONCE: Final = 16

# What holds for the logs of a topic, by what the topic itself sets.
Configure = Callable[[Mapping[str, str]], LogConfig]


class Replicas:
    """The partitions by name. `offline` holds those that should be here and are not, and why."""

    def __init__(self, node_id: int, logs: LogManager, configure: Configure) -> None:
        self.node_id: Final = node_id
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: dict[TopicPartition, StorageError] = {}
        self._logs = logs
        self._configure = configure

    def get(self, tp: TopicPartition) -> Partition:
        """A partition that is here; UnknownPartition, or why it is out of service."""
        found = self.partitions.get(tp)
        if found is not None:
            return found
        why = self.offline.get(tp)
        if why is not None:
            raise why
        raise UnknownPartition(f"there is no partition {tp} here")

    def directory_failed(self, directory: LogDirectory) -> None:
        """Whoever waits for a log in it waits in vain, and has to be told."""
        for log in self._logs.logs_in(directory):
            here = self.partitions.get(log.tp)
            if here is not None:
                here.changed()

    # Following the image

    async def start(self, image: MetadataImage) -> None:
        """Take over the logs that were loaded. What is no part of the cluster any more is set aside."""
        for tp, log in list(self._logs.logs.items()):
            topic = image.topics.get(tp.topic)
            if not _is_of(topic, tp, log, self.node_id):
                await self._set_aside(tp)
        await self._follow_topics(image, image.topics.values(), is_new=False)

    async def apply(self, image: MetadataImage, changes: Changes) -> None:
        """Do what a change asks for. One call at a time."""
        await several_at_once(
            self._isolated(TopicPartition(topic.name, index), self._drop, topic.id)
            for topic in changes.topics_deleted.values()
            for index in range(len(topic.partitions))
        )
        changed = (image.topics_by_id.get(topic_id) for topic_id in sorted(changes.topics_changed))
        await self._follow_topics(image, [topic for topic in changed if topic is not None], is_new=True)
        for resource in changes.configs_changed:
            if resource.type == TOPIC_RESOURCE:
                self._reconfigure_topic(image, resource.name)

    def reconfigure(self, image: MetadataImage) -> None:
        """The broker's own settings have changed, and with them those of all topics."""
        for name in image.topics:
            self._reconfigure_topic(image, name)

    async def _follow_topics(
        self, image: MetadataImage, topics: Iterable[TopicImage], *, is_new: bool
    ) -> None:
        follow = partial(self._follow, image, is_new=is_new)
        await several_at_once(
            self._isolated(TopicPartition(topic.name, index), follow, topic)
            for topic in topics
            for index in range(len(topic.partitions))
        )

    async def _isolated(
        self, tp: TopicPartition, work: Callable[[TopicPartition, T], Awaitable[None]], what: T
    ) -> None:
        """A mistake of ours about one partition takes that one out of service, and no other."""
        try:
            await work(tp, what)
        except Exception as error:
            report_fault(logger, error, "metadata not applied tp=%s", tp)
            log = self._logs.logs.get(tp)
            why = LogFailed(tp, repr(error)) if log is None else self._logs.fail_log(log, error)
            here = self.partitions.pop(tp, None)
            self.offline[tp] = why
            if here is not None:
                here.changed()

    async def _follow(
        self, image: MetadataImage, tp: TopicPartition, topic: TopicImage, *, is_new: bool
    ) -> None:
        partition = topic.partitions[tp.partition]
        here = self.partitions.get(tp)
        if self.node_id not in partition.replicas:
            await self._drop(tp, topic.id)
        elif here is not None and here.topic_id == topic.id:
            if here.image != partition:
                here.take(partition)
        else:
            await self._begin(image, topic, tp, partition, is_new=is_new)

    async def _begin(
        self,
        image: MetadataImage,
        topic: TopicImage,
        tp: TopicPartition,
        partition: PartitionImage,
        *,
        is_new: bool,
    ) -> None:
        try:
            log = self._logs.get(tp)
            if log is not None and log.topic_id not in (None, topic.id):
                # The topic was deleted and made again while we were not looking.
                await self._drop(tp, log.topic_id)
                log = None
            if log is None:
                config = self._config(image, topic.name)
                # What was out of service is not new when something else about it changes: its records may be
                # on a disk that is missing, and must not be replaced by an empty log on another.
                never_here = is_new and tp not in self.offline
                log = await self._logs.create(
                    tp, topic.id, config, path=self._path(partition), is_new=never_here
                )
            elif log.topic_id is None:
                await self._logs.adopt(log, topic.id)
        except StorageError as error:
            logger.error("partition out of service tp=%s error=%s", tp, error)
            self.offline[tp] = error
            return
        self.offline.pop(tp, None)
        self.partitions[tp] = Partition(self.node_id, tp, topic.id, log, partition)

    def _path(self, partition: PartitionImage) -> str | None:
        """The directory that the controller chose; None if it left that to us."""
        wanted = (
            partition.directories[partition.replicas.index(self.node_id)] if partition.directories else None
        )
        for directory in self._logs.directories:
            if directory.meta.directory_id == wanted:
                return directory.path
        return None

    async def _drop(self, tp: TopicPartition, topic_id: Uuid | None) -> None:
        self.offline.pop(tp, None)
        here = self.partitions.get(tp)
        if here is not None and here.topic_id == topic_id:
            del self.partitions[tp]
            # Deleted before it is told to those who wait: they must find it gone.
            await self._delete(tp)
            here.changed()
        elif here is None and tp in self._logs.logs:
            await self._delete(tp)

    async def _delete(self, tp: TopicPartition) -> None:
        try:
            await self._logs.delete(tp)
        except StorageError as error:
            # Its disk has failed, and the others go on. What is left there is a stray to the next start.
            logger.error("log not deleted tp=%s error=%s", tp, error)

    async def _set_aside(self, tp: TopicPartition) -> None:
        try:
            path = await self._logs.set_aside(tp)
            logger.warning("stray log set aside tp=%s path=%s", tp, path)
        except StorageError as error:
            logger.error("stray log not set aside tp=%s error=%s", tp, error)

    # Settings

    def _reconfigure_topic(self, image: MetadataImage, name: str) -> None:
        topic = image.topics.get(name)
        if topic is None:
            return
        config = self._config(image, name)
        for index in range(len(topic.partitions)):
            here = self.partitions.get(TopicPartition(name, index))
            if here is not None:
                here.log.configure(config)

    def _config(self, image: MetadataImage, topic: str) -> LogConfig:
        return topic_config(image, topic, self._configure)


async def several_at_once(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of it, a few at a time: each waits for the disk more than it works."""
    left = iter(work)

    async def do_some() -> None:
        for one in left:
            await one

    await together(*(do_some() for _ in range(AT_ONCE)))


def topic_config(image: MetadataImage, topic: str, configure: Configure) -> LogConfig:
    """What holds for the logs of one topic."""
    return configure(image.config(ConfigResource(TOPIC_RESOURCE, topic)))


def _is_of(topic: TopicImage | None, tp: TopicPartition, log: Log, node_id: int) -> bool:
    """Whether a log that was found on the disk is a partition that the cluster gave to this broker."""
    return (
        topic is not None
        and tp.partition < len(topic.partitions)
        and node_id in topic.partitions[tp.partition].replicas
        and log.topic_id in (None, topic.id)
    )
