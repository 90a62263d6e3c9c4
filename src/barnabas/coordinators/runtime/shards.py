"""The shards of one internal topic on this broker: ownership, loading, and lookup by key."""

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

# Delay before a lost shard is reloaded while this broker still leads its partition.
_RELOAD_AFTER_S: Final = 1.0
# After this many consecutive failed loads, the delay doubles with each attempt, up to the maximum.
RELOADS_AT_ONCE: Final = 3
RELOAD_AFTER_MAX_S: Final = 60.0


class Shards(Generic[AnyShard]):
    """The broker calls lead() and resign() on metadata changes; handlers use host_of().

    `new` creates an empty shard for a partition, `activate` starts a loaded one.
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
        # Consecutive failed loads by partition.
        self._failures: dict[int, int] = {}

    # Ownership

    def lead(self, index: int, partition: LedPartition) -> None:
        """This broker has become the leader of the partition, or has a new leader epoch."""
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
            # Nothing to load: activate now, so that no request is refused.
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
                logger.error("shard load failed partition=%s error=%s", host.partition.name, error)
            else:
                # A bug in one shard must not stop the others. The load is retried.
                report_fault(logger, error, "shard load failed partition=%s", host.partition.name)
            host.close()
            if self.hosts.get(index) is host:
                self._failures[index] = self._failures.get(index, 0) + 1
                self._reload(index, host)
            return
        self._failures.pop(index, None)
        # The shard may have been closed while it was loading.
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
        """Close all shards and refuse all pending requests."""
        self._is_closed = True
        for index in list(self.hosts):
            self.resign(index)

    # Lookup

    def host_of(self, key: str, partitions: int) -> ShardHost[AnyShard]:
        """The active shard of a group or transactional id. Refused if it is not on this broker or still
        loading.

        `partitions` is the number of partitions of the topic; 0 if it does not exist.
        """
        if self._is_closed:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this coordinator is stopping")
        if partitions == 0:
            raise Refused(ErrorCode.NOT_COORDINATOR, f"{self.topic} does not exist yet")
        host = self.hosts.get(partition_of(key, partitions))
        if host is None:
            raise Refused(ErrorCode.NOT_COORDINATOR, f"this broker is not the coordinator of {key}")
        host.check()
        return host

    def active_hosts(self) -> list[ShardHost[AnyShard]]:
        """All active shards. Refused if one is still loading."""
        found = []
        for host in self.hosts.values():
            if host.state is State.LOADING:
                host.check()
            if host.state is State.ACTIVE:
                found.append(host)
        return found
