"""All shards of this broker: which partitions of __consumer_offsets it leads, and which group is where."""

import asyncio
import logging
from collections.abc import Callable, Set
from random import Random
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.tasks import Tasks
from barnabas.coordinators.group.errors import GroupError
from barnabas.coordinators.group.ground import Ground
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import ShardHost, State
from barnabas.coordinators.runtime.loading import load
from barnabas.coordinators.runtime.partition_of import partition_of
from barnabas.coordinators.runtime.ports import LedPartition
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

OFFSETS_TOPIC: Final = "__consumer_offsets"
# A shard that was lost while its partition is still ours is loaded again, but no faster than this.
_RELOAD_AFTER_S: Final = 1.0


class GroupCoordinator:
    """lead() and resign() follow the metadata; host_of() is for handlers."""

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
        self.hosts: Final[dict[int, ShardHost]] = {}
        self._clock = clock
        self._rng = rng
        self._executor = executor
        self._tasks = tasks
        self._settings = settings
        self._image = image
        self._commit_timeout_ms = commit_timeout_ms
        self._load_bytes_at_once = load_bytes_at_once
        self._is_closed = False

    # Which shards are here

    def lead(self, index: int, partition: LedPartition) -> None:
        """This broker leads the partition from now on, perhaps again, in a later epoch."""
        self.resign(index)
        if self._is_closed:
            return
        ground = Ground(self._settings, self._rng, self._image)
        host = ShardHost(
            partition,
            GroupShard(ground),
            self._clock,
            commit_timeout_ms=self._commit_timeout_ms,
            on_lost=lambda lost: self._reload(index, lost),
        )
        self.hosts[index] = host
        if partition.start_offset == partition.end_offset:
            # Nobody need be sent away for a moment.
            host.activate()
        else:
            self._tasks.start(self._load(index, host))

    def resign(self, index: int) -> None:
        host = self.hosts.pop(index, None)
        if host is not None:
            host.close()
            if host.shard.ground.groups:
                logger.info(
                    "groups unloaded partition=%s groups=%d",
                    host.partition.name,
                    len(host.shard.ground.groups),
                )

    async def _load(self, index: int, host: ShardHost) -> None:
        ground = host.shard.ground
        try:
            await load(
                host.partition,
                host.shard,
                self._executor,
                self._clock,
                bytes_at_once=self._load_bytes_at_once,
            )
        except BarnabasError as error:
            logger.error("groups not loaded partition=%s error=%s", host.partition.name, error)
            host.close()
            if self.hosts.get(index) is host:
                self._reload(index, host)
            return
        if self.hosts.get(index) is not host:
            # Resigned meanwhile.
            return
        # They may have changed while the log was read.
        ground.settings = self._settings
        before, now = ground.image, self._image
        host.activate()
        if now is not before and host.state is State.ACTIVE:
            changed = (name for name, topic in now.topics.items() if before.topics.get(name) is not topic)
            gone = before.topics.keys() - now.topics.keys()
            host.take_image(now, changed=frozenset(changed), deleted=frozenset(gone))

    def _reload(self, index: int, lost: ShardHost) -> None:
        if not self._is_closed and self.hosts.get(index) is lost:
            self._tasks.start(self._reload_later(index, lost))

    async def _reload_later(self, index: int, lost: ShardHost) -> None:
        await asyncio.sleep(_RELOAD_AFTER_S)
        if self.hosts.get(index) is lost:
            self.lead(index, lost.partition)

    def close(self) -> None:
        """Everybody who waits is told that this coordinator is gone."""
        self._is_closed = True
        for index in list(self.hosts):
            self.resign(index)

    # What changes around them

    def take_settings(self, settings: GroupSettings) -> None:
        self._settings = settings
        for host in self.hosts.values():
            host.shard.ground.settings = settings

    def take_image(self, image: MetadataImage, *, changed: Set[str], deleted: Set[str]) -> None:
        self._image = image
        for host in list(self.hosts.values()):
            if host.state is State.ACTIVE:
                host.take_image(image, changed=changed, deleted=deleted)

    # Who is where

    def host_of(self, group_id: str) -> ShardHost:
        """The shard of a group, at work. GroupError if it is not here, or not yet."""
        if self._is_closed:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this coordinator is stopping")
        topic = self._image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise GroupError(ErrorCode.NOT_COORDINATOR, f"there is no {OFFSETS_TOPIC} yet")
        host = self.hosts.get(partition_of(group_id, len(topic.partitions)))
        if host is None:
            raise GroupError(ErrorCode.NOT_COORDINATOR, f"the coordinator of {group_id} is not here")
        host.check()
        return host

    def active_hosts(self) -> list[ShardHost]:
        """All shards at work. GroupError if one is still being loaded."""
        found = []
        for host in self.hosts.values():
            if host.state is State.LOADING:
                host.check()
            if host.state is State.ACTIVE:
                found.append(host)
        return found
