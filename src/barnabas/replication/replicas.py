"""All partitions of this broker, as in the metadata image.

apply() creates and deletes logs and updates leaders and settings of partitions. It is idempotent, so a start
is handled as a change of everything.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from barnabas.base.errors import kept
from barnabas.base.faults import report_fault
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import together
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import TOPIC_RESOURCE, ConfigResource, MetadataImage, PartitionImage, TopicImage
from barnabas.replication.errors import UnknownPartition
from barnabas.replication.partition import Partition
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import DiskFull, LogFailed, StorageError
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Maximum number of logs that are created or deleted concurrently.
AT_ONCE: Final = 16

# From a topic's own settings to the effective config of its logs.
Configure = Callable[[Mapping[str, str]], LogConfig]


class Replicas:
    """The partitions by name. `offline` has those that should be here but are not, and why."""

    def __init__(self, node_id: int, logs: LogManager, configure: Configure) -> None:
        self.node_id: Final = node_id
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: dict[TopicPartition, StorageError] = {}
        self._logs = logs
        self._configure = configure
        logs.on_failed.append(self._log_failed)

    def get(self, tp: TopicPartition) -> Partition:
        """A partition of this broker. Raises UnknownPartition, or the reason why it is offline."""
        found = self.partitions.get(tp)
        if found is not None:
            return found
        why = self.offline.get(tp)
        if why is not None:
            # Without the traceback of earlier raises.
            raise why.with_traceback(None)
        raise UnknownPartition(f"this broker does not have partition {tp}")

    def _log_failed(self, log: Log) -> None:
        """Poke the waiters of the partition, which find the log offline."""
        here = self.partitions.get(log.tp)
        if here is not None:
            here.changed()

    def directory_failed(self, directory: LogDirectory) -> None:
        """Poke the waiters of all partitions in the directory, which find their logs offline."""
        for log in self._logs.logs_in(directory):
            here = self.partitions.get(log.tp)
            if here is not None:
                here.changed()

    # Following the image

    async def start(self, image: MetadataImage) -> None:
        """Take over the loaded logs. Logs that the cluster did not assign to this broker are set aside."""
        for tp, log in list(self._logs.logs.items()):
            topic = image.topics.get(tp.topic)
            if not _is_of(topic, tp, log, self.node_id):
                await self._set_aside(tp)
        await self._follow_topics(image, image.topics.values(), is_new=False)

    async def apply(self, image: MetadataImage, changes: Changes) -> None:
        """Apply a change of the image. Calls must not overlap."""
        await several_at_once(
            self._isolated(TopicPartition(topic.name, index), self._drop, topic.id)
            for topic in changes.topics_deleted.values()
            for index in range(len(topic.partitions))
        )
        changed = (image.topics_by_id.get(topic_id) for topic_id in sorted(changes.topics_changed))
        await self._follow_topics(image, [topic for topic in changed if topic is not None], is_new=True)
        await self._begin_without_room(image)
        for resource in changes.configs_changed:
            if resource.type == TOPIC_RESOURCE:
                self._reconfigure_topic(image, resource.name)

    async def _begin_without_room(self, image: MetadataImage) -> None:
        """Retry the creation of logs that failed because of a full disk."""
        for tp in [tp for tp, why in self.offline.items() if isinstance(why, DiskFull)]:
            topic = image.topics.get(tp.topic)
            if topic is not None and tp.partition < len(topic.partitions):
                await self._isolated(tp, partial(self._follow, image, is_new=True), topic)

    def reconfigure(self, image: MetadataImage) -> None:
        """Apply changed broker settings, which are the defaults of all topics."""
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
        """Await work on a partition. A bug takes only this partition offline."""
        try:
            await work(tp, what)
        except Exception as error:
            report_fault(logger, error, "metadata not applied tp=%s", tp)
            log = self._logs.logs.get(tp)
            why = LogFailed(tp, repr(error)) if log is None else self._logs.fail_log(log, error)
            here = self.partitions.pop(tp, None)
            self.offline[tp] = kept(why)
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
                # The topic was deleted and recreated while this broker was down.
                await self._drop(tp, log.topic_id)
                log = None
            if log is None:
                config = self._config(image, topic.name)
                # A partition that was offline is not new: its log may be on a disk that is missing, and must
                # not be replaced by an empty log on another.
                why = self.offline.get(tp)
                never_here = is_new and (why is None or isinstance(why, DiskFull))
                log = await self._logs.create(
                    tp, topic.id, config, path=self._path(partition), is_new=never_here
                )
            elif log.topic_id is None:
                await self._logs.adopt(log, topic.id)
        except StorageError as error:
            if not isinstance(self.offline.get(tp), DiskFull):
                logger.error("partition offline tp=%s error=%s", tp, error)
            self.offline[tp] = kept(error)
            return
        self.offline.pop(tp, None)
        self.partitions[tp] = Partition(self.node_id, tp, topic.id, log, partition)

    def _path(self, partition: PartitionImage) -> str | None:
        """The directory that the controller assigned; None without an assignment."""
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
            # Delete before poking the waiters: they must find it gone.
            await self._delete(tp)
            here.changed()
        elif here is None and tp in self._logs.logs:
            await self._delete(tp)

    async def _delete(self, tp: TopicPartition) -> None:
        try:
            await self._logs.delete(tp)
        except StorageError as error:
            # The disk has failed; continue with the others. The next start sets the remaining log aside.
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
    """Run all coroutines, AT_ONCE at a time: they mostly wait for the disk."""
    left = iter(work)

    async def do_some() -> None:
        for one in left:
            await one

    await together(*(do_some() for _ in range(AT_ONCE)))


def topic_config(image: MetadataImage, topic: str, configure: Configure) -> LogConfig:
    """The effective config of one topic's logs."""
    return configure(image.config(ConfigResource(TOPIC_RESOURCE, topic)))


def _is_of(topic: TopicImage | None, tp: TopicPartition, log: Log, node_id: int) -> bool:
    """Whether a log found on the disk belongs to a partition that is assigned to this broker."""
    return (
        topic is not None
        and tp.partition < len(topic.partitions)
        and node_id in topic.partitions[tp.partition].replicas
        and log.topic_id in (None, topic.id)
    )
