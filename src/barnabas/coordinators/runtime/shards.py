"""The shards of one internal topic on this broker: ownership, loading and lookup by key.

A key, a group or transactional id, has the partition that Java's String.hashCode() gives, as in Kafka.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, Generic

from mypy_extensions import i64

from barnabas.base.clock import Clock
from barnabas.base.crc32c import crc32c
from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.faults import report_fault
from barnabas.base.tasks import Tasks
from barnabas.coordinators.runtime.host import ShardHost, State
from barnabas.coordinators.runtime.ports import AnyShard, LedPartition, Shard
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import ATTRIBUTES_AT, BASE_OFFSET_AT, BATCH_LENGTH_AT, CRC_AT, LENGTH_EXCLUDES

logger = logging.getLogger(__name__)

# Delay before a lost shard is reloaded while this broker still leads its partition.
_RELOAD_AFTER_S: Final = 1.0
# After this many consecutive failed loads, the delay doubles with each attempt, up to the maximum.
RELOADS_AT_ONCE: Final = 3
RELOAD_AFTER_MAX_S: Final = 60.0
# Bound once, because every request compares with these.
_ACTIVE: Final = State.ACTIVE
_LOADING: Final = State.LOADING
# Constants of Java's hash, and the size of the length field of a batch.
_MASK: Final[i64] = 0xFFFFFFFF
_SIGN: Final[i64] = 0x80000000
_LENGTH_SIZE: Final = 4


def partition_of(key: str, partitions: int) -> int:
    """The partition of an internal topic that a group or transactional id belongs to.

    The absolute value of String.hashCode(), or 0 for -2^31, which has none in 32 bits.
    """
    value: i64 = 0
    if key.isascii():
        letters = key.encode("ascii")
        for at in range(len(letters)):
            value = (31 * value + i64(letters[at])) & _MASK
    else:
        units = key.encode("utf-16-be", "surrogatepass")
        for at in range(0, len(units), 2):
            value = (31 * value + i64(units[at] << 8 | units[at + 1])) & _MASK
    if value & _SIGN:
        value = (_MASK + 1 - value) & _MASK
    return 0 if value == _SIGN else int(value) % partitions


class Shards(Generic[AnyShard]):
    """The broker calls take_image(), lead() and resign() on metadata changes; handlers use host_of().

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
        # The number of partitions of the topic; 0 if it does not exist.
        self._partitions = 0
        # Consecutive failed loads by partition.
        self._failures: dict[int, int] = {}

    # Ownership

    def take_image(self, image: MetadataImage) -> None:
        topic = image.topics.get(self.topic)
        self._partitions = 0 if topic is None else len(topic.partitions)

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
            await _replay_log(
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

    def host_of(self, key: str) -> ShardHost[AnyShard] | ErrorCode:
        """The active shard of a group or transactional id, or the reason why there is none on this broker."""
        if self._is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partitions = self._partitions
        host = self.hosts.get(partition_of(key, partitions)) if partitions else None
        if host is not None:
            if host.state is _ACTIVE:
                return host
            if host.state is _LOADING:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def active_hosts(self) -> list[ShardHost[AnyShard]] | ErrorCode:
        """All active shards. COORDINATOR_LOAD_IN_PROGRESS if one is still loading."""
        if any(host.state is _LOADING for host in self.hosts.values()):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [host for host in self.hosts.values() if host.state is _ACTIVE]


async def _replay_log(
    partition: LedPartition, shard: Shard, executor: Executor, clock: Clock, *, bytes_at_once: int
) -> None:
    """Replay the whole log, off the loop. BarnabasError if it cannot be read."""
    began_ms = clock.monotonic_ms()
    offset, end = partition.start_offset, partition.end_offset
    total = 0
    while offset < end:
        data, offset_after = await partition.read(offset, bytes_at_once)
        if not data:
            # The log ends with a gap left by compaction.
            break
        total += len(data)
        await executor.run(partial(_replay, shard, data))
        offset = offset_after
    logger.info(
        "shard loaded partition=%s count=%d bytes=%d ms=%d",
        partition.name,
        len(shard),
        total,
        clock.monotonic_ms() - began_ms,
    )


def _replay(shard: Shard, data: bytes) -> None:
    at = 0
    while at < len(data):
        length_at = at + BATCH_LENGTH_AT
        size = LENGTH_EXCLUDES + int.from_bytes(data[length_at : length_at + _LENGTH_SIZE], "big")
        batch = data[at : at + size]
        _check_crc(batch)
        shard.replay(batch)
        at += size


def _check_crc(batch: bytes) -> None:
    """Corrupt data on the disk must not be loaded as committed offsets."""
    stored = int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big")
    if crc32c(memoryview(batch)[ATTRIBUTES_AT:]) != stored:
        offset = int.from_bytes(batch[BASE_OFFSET_AT:BATCH_LENGTH_AT], "big")
        raise CorruptBatch("CRC mismatch", where=f"batch at offset {offset}")
