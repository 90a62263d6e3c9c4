"""The shards of one internal topic on this broker: which are here, loading them, and which key is where."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.faults import report_fault
from barnabas.base.tasks import Tasks
from barnabas.coordinators.decision.errors import Refused
from barnabas.coordinators.runtime.host import ShardHost, State
from barnabas.coordinators.runtime.loading import load
from barnabas.coordinators.runtime.partition_of import partition_of
from barnabas.coordinators.runtime.ports import AnyShard, LedPartition
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

# A shard that was lost while its partition is still ours is loaded again, but no faster than this.
_RELOAD_AFTER_S: Final = 1.0
# If loading fails more often than this in a row, the time doubles with each try, up to the maximum.
RELOADS_AT_ONCE: Final = 3
RELOAD_AFTER_MAX_S: Final = 60.0


class Shards(Generic[AnyShard]):
    """lead() and resign() follow the metadata; host_of() is for handlers.

    `new` makes an empty shard for a partition, `activate` lets one that has been loaded begin its work.
    """

    def __init__(
        self,
        topic: str,
        *,
        clock: Clock,
        executor: Executor,
        tasks: Tasks,
        new: Callable[[LedPartition], AnyShard],
        activate: Callable[[ShardHost[AnyShard]], None],
        commit_timeout_ms: Callable[[], int],
        load_bytes_at_once: int,
    ) -> None:
        self.topic: Final = topic
        self.hosts: Final[dict[int, ShardHost[AnyShard]]] = {}
        self._clock = clock
        self._executor = executor
        self._tasks = tasks
        self._new = new
        self._activate = activate
        self._commit_timeout_ms = commit_timeout_ms
        self._load_bytes_at_once = load_bytes_at_once
        self._is_closed = False
        # How often loading a shard has failed since it last worked.
        self._failures: dict[int, int] = {}

    # Which shards are here

    def lead(self, index: int, partition: LedPartition) -> None:
        """This broker leads the partition from now on, perhaps again, in a later epoch."""
        self.resign(index)
        if self._is_closed:
            return
        host = ShardHost(
            partition,
            self._new(partition),
            self._clock,
            commit_timeout_ms=self._commit_timeout_ms,
            on_lost=lambda lost: self._reload(index, lost),
        )
        self.hosts[index] = host
        if partition.start_offset == partition.end_offset:
            # Nobody need be sent away for a moment.
            self._activate(host)
        else:
            self._tasks.start(self._load(index, host))

    def resign(self, index: int) -> None:
        host = self.hosts.pop(index, None)
        if host is not None:
            host.close()
            if len(host.shard):
                logger.info("shard unloaded partition=%s count=%d", host.partition.name, len(host.shard))

    async def _load(self, index: int, host: ShardHost[AnyShard]) -> None:
        try:
            await load(
                host.partition,
                host.shard,
                self._executor,
                self._clock,
                bytes_at_once=self._load_bytes_at_once,
            )
        except Exception as error:
            if isinstance(error, BarnabasError):
                logger.error("shard not loaded partition=%s error=%s", host.partition.name, error)
            else:
                # A mistake of ours in one shard. Others are loaded, and this one is tried again.
                report_fault(logger, error, "shard not loaded partition=%s", host.partition.name)
            host.close()
            if self.hosts.get(index) is host:
                self._failures[index] = self._failures.get(index, 0) + 1
                self._reload(index, host)
            return
        self._failures.pop(index, None)
        # It may have been given up meanwhile.
        if self.hosts.get(index) is host:
            self._activate(host)

    def _reload(self, index: int, lost: ShardHost[AnyShard]) -> None:
        if not self._is_closed and self.hosts.get(index) is lost:
            self._tasks.start(self._reload_later(index, lost))

    async def _reload_later(self, index: int, lost: ShardHost[AnyShard]) -> None:
        doublings = max(0, self._failures.get(index, 0) - RELOADS_AT_ONCE)
        await asyncio.sleep(min(_RELOAD_AFTER_S * 2.0**doublings, RELOAD_AFTER_MAX_S))
        if self.hosts.get(index) is lost:
            self.lead(index, lost.partition)

    def close(self) -> None:
        """Everybody who waits is told that this coordinator is gone."""
        self._is_closed = True
        for index in list(self.hosts):
            self.resign(index)

    # Who is where

    def host_of(self, key: str, partitions: int) -> ShardHost[AnyShard]:
        """The shard of a group or a transactional id, at work. Refused if it is not here, or not yet.

        `partitions` is how many the topic has; 0 if it does not exist.
        """
        if self._is_closed:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this coordinator is stopping")
        if partitions == 0:
            raise Refused(ErrorCode.NOT_COORDINATOR, f"there is no {self.topic} yet")
        host = self.hosts.get(partition_of(key, partitions))
        if host is None:
            raise Refused(ErrorCode.NOT_COORDINATOR, f"the coordinator of {key} is not here")
        host.check()
        return host

    def active_hosts(self) -> list[ShardHost[AnyShard]]:
        """All shards at work. Refused if one is still being loaded."""
        found = []
        for host in self.hosts.values():
            if host.state is State.LOADING:
                host.check()
            if host.state is State.ACTIVE:
                found.append(host)
        return found
