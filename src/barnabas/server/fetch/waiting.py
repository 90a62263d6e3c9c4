"""Execute one Fetch request: read, and if there are too few bytes, wait for more.

There is no polling. A waiting fetch is registered in the waiters of its partitions and has one timer. Changes
of a partition call poke(), and the fetch reads again in the next loop iteration. So several appends of one
iteration cause one read, and their producers are answered first. Disk reads run in the executor.

A fetch of very many partitions reads them in slices, in a task of its own, so that other clients are served.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.base.errors import BarnabasError, kept
from barnabas.base.faults import report_fault
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, PartitionData
from barnabas.replication.errors import InconsistentTopicId, UnknownPartition, UnknownTopicId
from barnabas.replication.partition import Partition, failed, find_partition
from barnabas.server.errors import code_of
from barnabas.server.fetch.sessions import Wanted
from barnabas.server.requests.api import Later
from barnabas.server.services import Services
from barnabas.storage.errors import CorruptLog, StorageError
from barnabas.storage.files import NotCached
from barnabas.storage.segment.index import IndexDamaged
from barnabas.storage.warming import mend_indexes

logger = logging.getLogger(__name__)

READ_COMMITTED: Final = 1
# Maximum number of disk reads that a fetch waits for; then it answers with what it has.
_COLD_READS_MAX: Final = 64
# Partitions read in one slice, which takes two or three milliseconds.
PARTITIONS_AT_ONCE: Final = 1_000

Finish = Callable[[list[tuple[Wanted, PartitionData]]], object]


class FetchWait:
    """One fetch. `finish` builds the response from what was read."""

    def __init__(self, broker: Services, request: FetchRequest, wanted: list[Wanted], finish: Finish) -> None:
        self._broker = broker
        self._wanted = wanted
        self._finish = finish
        self._committed = request.isolation_level == READ_COMMITTED
        # int(): the fields have 32 bits, and mypyc would require values compared with them to fit, too.
        self._bytes_max = min(int(request.max_bytes), broker.settings.now.fetch_max_bytes)
        self._bytes_min = min(int(request.min_bytes), self._bytes_max)
        self._wait_ms = request.max_wait_ms
        self._read: list[tuple[Wanted, PartitionData]] = []
        self._size = 0
        self._must_answer = False
        self._cold: tuple[Partition, NotCached | IndexDamaged] | None = None
        # Partitions whose disk read failed.
        self._broken: dict[Partition, StorageError] = {}
        self._partitions: list[Partition] = []
        self._timer: asyncio.TimerHandle | None = None
        self._look_again: asyncio.Handle | None = None
        self._later: Later | None = None
        self._loop = asyncio.get_running_loop()
        # Only in a fetch in slices: set when a partition changes, and when the fetch must answer.
        self._changed: asyncio.Event | None = None
        self._is_over = False

    def start(self) -> object:
        """The response, or a Later for it."""
        if len(self._wanted) > PARTITIONS_AT_ONCE:
            return self._begin_in_slices()
        self._read_all()
        if self._cold is not None:
            return self._begin_waiting(cold=True)
        if self._is_enough() or self._wait_ms <= 0 or not self._wanted:
            return self._finish(self._read)
        return self._begin_waiting(cold=False)

    # Reading

    def _read_all(self) -> None:
        """Read every partition as far as its data is in the page cache."""
        self._begin_reading()
        self._read_some(self._wanted)

    def _begin_reading(self) -> None:
        self._read = []
        self._size = 0
        self._must_answer = False
        self._cold = None

    def _read_some(self, some: list[Wanted]) -> None:
        for wanted in some:
            data = self._read_one(wanted, self._bytes_max - self._size)
            self._size += len(data.records or b"")
            if data.error_code != 0 or data.diverging_epoch is not None:
                self._must_answer = True
            self._read.append((wanted, data))

    def _read_one(self, wanted: Wanted, left: int) -> PartitionData:
        asked = wanted.asked
        partition: Partition | None = None
        try:
            partition = self._find(wanted)
            if asked.partition_max_bytes < 0 or self._bytes_max < 0:
                return failed(asked.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if partition in self._broken:
                raise self._broken[partition]
            return partition.read(
                asked,
                committed=self._committed,
                bytes_max=max(0, min(int(asked.partition_max_bytes), left)),
                whole_batch=self._size == 0,
            )
        except (NotCached, IndexDamaged) as cold:
            assert partition is not None
            self._cold = self._cold or (partition, cold)
            # The result if the timeout passes before the disk answers. Clients reject a response without a
            # partition that they requested.
            return partition.read_nothing(asked, committed=self._committed)
        except BarnabasError as error:
            code = code_of(error)
            if code is None:
                report_fault(logger, error, "read failed topic=%s partition=%d", wanted.name, asked.partition)
                code = ErrorCode.UNKNOWN_SERVER_ERROR
            return failed(asked.partition, code)
        except OSError as error:
            assert partition is not None
            code = code_of(self._broker.logs.failed(partition.log, error, reading=True))
            return failed(asked.partition, code or ErrorCode.KAFKA_STORAGE_ERROR)
        except Exception as error:
            # A bug that affects one partition. The others are still read, as in Kafka.
            report_fault(logger, error, "read failed topic=%s partition=%d", wanted.name, asked.partition)
            return failed(asked.partition, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _find(self, wanted: Wanted) -> Partition:
        topic = wanted.topic
        if isinstance(topic, str):
            return find_partition(self._broker.replicas, topic, wanted.asked.partition)
        known = self._broker.image.topics_by_id.get(topic)
        if known is not None:
            wanted.name = known.name
        elif wanted.name is None:
            raise UnknownTopicId("unknown topic id")
        elif wanted.name in self._broker.image.topics:
            raise InconsistentTopicId(f"topic {wanted.name} was recreated: its id changed")
        else:
            raise UnknownPartition(f"topic {wanted.name} was deleted")
        return find_partition(self._broker.replicas, known.name, wanted.asked.partition)

    def _is_enough(self) -> bool:
        return self._must_answer or self._size >= self._bytes_min

    # Waiting

    def _begin_waiting(self, *, cold: bool) -> Later:
        self._later = later = Later()
        later.on_cancel = self._stop
        later.on_hurry = self._answer
        if self._wait_ms > 0:
            self._timer = self._loop.call_later(self._wait_ms / 1000, self._answer)
        if cold:
            self._broker.tasks.start(self._warm_up())
        else:
            self._watch(self._wanted)
        return later

    # In slices

    def _begin_in_slices(self) -> Later:
        self._later = later = Later()
        later.on_cancel = self._stop
        later.on_hurry = self._end_in_slices
        self._changed = asyncio.Event()
        if self._wait_ms > 0:
            self._timer = self._loop.call_later(self._wait_ms / 1000, self._end_in_slices)
        else:
            self._is_over = True
        self._broker.tasks.start(self._serve_in_slices(self._changed))
        return later

    def _end_in_slices(self) -> None:
        """The timeout has passed, or the broker is stopping: answer with what there is."""
        self._is_over = True
        if self._changed is not None:
            self._changed.set()

    async def _serve_in_slices(self, changed: asyncio.Event) -> None:
        cold_reads = 0
        try:
            if not self._is_over:
                # Watch before reading: a partition may change while others are being read.
                await self._watch_in_slices()
            while not self._is_answered:
                changed.clear()
                await self._read_in_slices()
                if self._is_answered:
                    break
                if self._cold is not None and cold_reads < _COLD_READS_MAX:
                    cold_reads += 1
                    await self._wait_for_disk(*self._cold)
                elif self._is_over or self._is_enough():
                    self._reply()
                else:
                    await changed.wait()
        except Exception as error:
            self._crashed(error)

    async def _read_in_slices(self) -> None:
        self._begin_reading()
        for at in range(0, len(self._wanted), PARTITIONS_AT_ONCE):
            self._read_some(self._wanted[at : at + PARTITIONS_AT_ONCE])
            await self._broker.long_requests.pause()
            if self._is_answered:
                return

    async def _watch_in_slices(self) -> None:
        for at in range(0, len(self._wanted), PARTITIONS_AT_ONCE):
            self._watch(self._wanted[at : at + PARTITIONS_AT_ONCE])
            await self._broker.long_requests.pause()
            if self._is_answered:
                return

    def _watch(self, some: list[Wanted]) -> None:
        for wanted in some:
            try:
                partition = self._find(wanted)
            except BarnabasError:
                # The partition has gone since it was read: the fetch must report that.
                self.poke(None)
                continue
            partition.waiters[self] = None
            self._partitions.append(partition)

    def poke(self, _partition: Partition | None) -> None:
        if self._changed is not None:
            self._changed.set()
        elif self._look_again is None:
            self._look_again = self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._look_again = None
        if self._later is None:
            return
        try:
            self._read_all()
            if self._cold is not None:
                self._unwatch()
                self._broker.tasks.start(self._warm_up())
            elif self._is_enough():
                self._reply()
        except Exception as error:
            self._crashed(error)

    def _answer(self) -> None:
        """The timeout has passed, or the broker is stopping: answer with what there is."""
        if self._later is None:
            return
        try:
            self._read_all()
            self._reply()
        except Exception as error:
            self._crashed(error)

    async def _warm_up(self) -> None:
        try:
            for _ in range(_COLD_READS_MAX):
                if self._cold is None or self._is_answered:
                    break
                await self._wait_for_disk(*self._cold)
                if not self._is_answered:
                    self._read_all()
            if self._is_answered:
                return
            if self._cold is None and not self._is_enough() and self._timer is not None:
                self._watch(self._wanted)
            else:
                self._reply()
        except Exception as error:
            self._crashed(error)

    async def _wait_for_disk(self, partition: Partition, cold: NotCached | IndexDamaged) -> None:
        executor = self._broker.executor
        try:
            if isinstance(cold, NotCached):
                await executor.run(cold.warm)
            else:
                await mend_indexes(partition.log, executor, cold.base_offset)
        except OSError as error:
            # The next read of the partition finds it offline and reports that.
            self._broker.logs.failed(partition.log, error, reading=True)
        except StorageError as error:
            if isinstance(error, CorruptLog):
                self._broker.logs.report_damage(partition.log, error)
            self._broken[partition] = kept(error)

    @property
    def _is_answered(self) -> bool:
        """A property, because mypyc would assume that _later keeps its narrowed type across an await."""
        return self._later is None

    def _reply(self) -> None:
        later = self._later
        assert later is not None
        self._stop()
        later.finish(self._finish(self._read))

    def _crashed(self, error: Exception) -> None:
        report_fault(logger, error, "fetch failed")
        later = self._later
        self._stop()
        if later is not None:
            later.finish(
                self._finish(
                    [
                        (one, failed(one.asked.partition, ErrorCode.UNKNOWN_SERVER_ERROR))
                        for one in self._wanted
                    ]
                )
            )

    def _unwatch(self) -> None:
        for partition in self._partitions:
            partition.waiters.pop(self, None)
        self._partitions = []

    def _stop(self) -> None:
        self._later = None
        self._unwatch()
        for handle in (self._timer, self._look_again):
            if handle is not None:
                handle.cancel()
        self._timer = self._look_again = None
        if self._changed is not None:
            self._changed.set()
