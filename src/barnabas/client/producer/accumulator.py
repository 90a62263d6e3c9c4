"""Collects records into batches by partition, size and linger, within buffer.memory. Pure.

append() is the fast path for every record that needs no waiting: it creates no task and no future. `schedule`
and `schedule_at` notify the sender when a batch is ready, or will be when its linger ends. node_sender.py
decides which batches go together in a request.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from barnabas.base.clock import Clock
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.errors import RecordTooLarge
from barnabas.client.producer.memory import BufferMemory
from barnabas.client.producer.partitioner import STICK, Choose, Hash
from barnabas.client.producer.queues import PartitionQueue, TopicQueues
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.producer.stamp import record_count
from barnabas.records.builder import BatchBuilder
from barnabas.records.header import HEADER_SIZE
from barnabas.records.record import Header

# Upper bounds in bytes: a record without key, value and headers (five varints and a byte), and its batch.
RECORD_OVERHEAD: Final = 21
BATCH_OVERHEAD: Final = HEADER_SIZE
HEADER_OVERHEAD: Final = 10
# Records taken before send() yields to the event loop although no batch is full.
RECORDS_PER_YIELD: Final = 500


class Accumulator:
    def __init__(
        self,
        settings: ProducerSettings,
        *,
        clock: Clock,
        rng: Random,
        choose: Choose,
        key_hash: Hash | None,
        schedule: Callable[[PartitionQueue], None],
        schedule_at: Callable[[PartitionQueue, int], None],
        on_failure: Callable[[Batch, Exception], None] | None = None,
    ) -> None:
        self.settings = settings
        self.topics: dict[str, TopicQueues] = {}
        self.memory = BufferMemory(settings.buffer_memory, on_full=self.close_open)
        # Every batch that is neither delivered nor failed, oldest first.
        self.incomplete: OrderedDict[Batch, None] = OrderedDict()
        # Records until send() yields to the event loop.
        self.until_yield = RECORDS_PER_YIELD
        self._clock = clock
        self._rng = rng
        self.choose = choose
        self.key_hash = key_hash
        self._schedule = schedule
        self._schedule_at = schedule_at
        # Called for each failed batch before its deliveries complete.
        self._on_failure = on_failure
        self._transactional = settings.is_transactional
        self._batch_size = settings.batch_size
        self._codec, self._level = settings.codec, settings.level
        self._idempotent = settings.enable_idempotence
        self._adaptive = settings.partitioner_adaptive_partitioning_enable
        self._size_max = min(settings.max_request_size, settings.buffer_memory)
        self._record_max = self._size_max - BATCH_OVERHEAD

    # Topics

    def topic(self, name: str) -> TopicQueues:
        found = self.topics.get(name)
        if found is None:
            found = TopicQueues(name, batch_size=self._batch_size, idempotent=self._idempotent)
            self.topics[name] = found
        return found

    def stick(self, into: TopicQueues) -> int:
        """Return the current sticky partition, for a table's batch of keyless rows."""
        return into.stick(self._rng, adaptive=self._adaptive)

    # Records

    def size_of(self, value: bytes | None, key: bytes | None, headers: Sequence[Header]) -> int:
        """Return an upper bound of the record's size, to be charged to buffer.memory; or RecordTooLarge."""
        size = RECORD_OVERHEAD
        if value is not None:
            if not isinstance(value, bytes):
                raise _not_bytes("value", value)
            size += len(value)
        if key is not None:
            if not isinstance(key, bytes):
                raise _not_bytes("key", key)
            size += len(key)
        if headers:
            size += _size_of_headers(headers)
        if size > self._record_max:
            raise self._too_large(BATCH_OVERHEAD + size)
        return size

    def _too_large(self, size: int) -> RecordTooLarge:
        settings = self.settings
        if size > settings.max_request_size:
            return RecordTooLarge(size=size, limit=settings.max_request_size, setting="max.request.size")
        return RecordTooLarge(size=size, limit=settings.buffer_memory, setting="buffer.memory")

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[Header],
        *,
        reserved: bool = False,
    ) -> Delivery | None:
        """Take a record. Return None if the topic or partition is unknown or memory is full.

        `reserved`: its memory is already reserved. If this raises, nothing was taken.
        """
        into = self.topics.get(topic)
        if into is None or not into.known:
            return None
        size = self.size_of(value, key, headers)
        memory = self.memory
        if not reserved and (memory.used + size > memory.limit or memory.waiters):
            return None
        if timestamp_ms is None:
            timestamp_ms = self._clock.now_ms()
        sticks = False
        if partition is None:
            if key is not None and self.key_hash is not None:
                partition = self.key_hash(key, into.count)
            else:
                partition = self.choose(topic, key, into.count)
                if partition == STICK:
                    sticks, partition = True, into.sticky
        elif not 0 <= partition < into.count:
            return None
        batch = into.queues[partition].open if partition >= 0 else None
        if batch is None or not batch.builder.append(timestamp_ms, key, value, headers):  # type: ignore[union-attr]
            batch = self._append_to_new(into, partition, sticks, timestamp_ms, key, value, headers)
        index = batch.count
        batch.count = index + 1
        batch.charged += size
        if not reserved:
            memory.used += size
        self.until_yield -= 1
        return Delivery(batch, index, timestamp_ms)

    def _append_to_new(
        self,
        into: TopicQueues,
        partition: int,
        sticks: bool,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> Batch:
        """Open a new batch; a sticky record may move to another partition at this point."""
        if sticks:
            moved = into.stick(self._rng, adaptive=self._adaptive)
            if moved != partition:
                if partition >= 0:
                    self._close_batch(into.queues[partition])
                open_there = into.queues[moved].open
                if open_there is not None:
                    assert open_there.builder is not None, "an open batch has a builder"
                    if open_there.builder.append(timestamp_ms, key, value, headers):
                        into.stuck_to(open_there)
                        return open_there
            partition = moved
        builder = BatchBuilder(
            max_bytes=self._batch_size,
            codec=self._codec,
            level=self._level,
            transactional=self._transactional,
        )
        builder.append(timestamp_ms, key, value, headers)
        # Nothing below raises: the record is taken.
        queue = into.queues[partition]
        self._close_batch(queue)
        batch = Batch(queue, builder=builder)
        self._add_batch(batch)
        queue.open = batch
        batch.ready_ms = batch.created_ms + (0 if self.memory.waiters else self.settings.linger_ms)
        into.used = True
        if sticks:
            into.stuck_to(batch)
        if len(queue.batches) == 1:
            if batch.ready_ms > batch.created_ms:
                self._schedule_at(queue, batch.ready_ms)
            else:
                self._schedule(queue)
        self.until_yield = 0
        return batch

    def _close_batch(self, queue: PartitionQueue) -> None:
        """Close the open batch and schedule it."""
        if queue.open is not None:
            queue.open = None
            self._schedule(queue)

    def _add_batch(self, batch: Batch) -> None:
        batch.created_ms = self._clock.monotonic_ms()
        batch.queue.batches.append(batch)
        self.incomplete[batch] = None

    def append_encoded(self, queue: PartitionQueue, data: bytes) -> Batch:
        """Take an encoded batch whose memory is already reserved."""
        batch = Batch(queue, data=data)
        batch.count, batch.charged = record_count(data), len(data)
        self._close_batch(queue)
        self._add_batch(batch)
        self.topics[queue.tp.topic].used = True
        self._schedule(queue)
        self.until_yield = 0
        return batch

    def refuse_larger(self, size: int) -> None:
        """Raise RecordTooLarge if an encoded batch of this size could never be sent."""
        if size > self._size_max:
            raise self._too_large(size)

    # Time

    def close_open(self) -> None:
        """Schedule all open batches: a flush was called, or a sender waits for memory."""
        for batch in self.incomplete:
            if batch is batch.queue.open:
                self._close_batch(batch.queue)

    def expired(self, now_ms: int) -> list[Batch]:
        """Return the batches older than delivery.timeout.ms."""
        found = []
        for batch in self.incomplete:
            if batch.created_ms + self.settings.delivery_timeout_ms > now_ms:
                break
            found.append(batch)
        return found

    def next_expiry_ms(self) -> int | None:
        oldest = next(iter(self.incomplete), None)
        return None if oldest is None else oldest.created_ms + self.settings.delivery_timeout_ms

    # Outcome of a batch

    def finish(self, batch: Batch, error: Exception | None = None) -> None:
        """Complete the deliveries of a batch, and free its memory unless it is in flight."""
        del self.incomplete[batch]
        if not batch.in_flight:
            self.release(batch)
        if error is not None and self._on_failure is not None:
            self._on_failure(batch, error)
        batch.finish(error)

    def release(self, batch: Batch) -> None:
        assert not batch.released, "batch memory released twice"
        batch.released = True
        batch.data = batch.builder = None
        self.memory.release(batch.charged)

    def replace(self, batch: Batch, parts: list[Batch]) -> None:
        """Replace a split batch by its parts, which inherit its age and its memory."""
        left = batch.charged
        for part in reversed(parts):
            part.charged = min(left, part.wire_size())
            left -= part.charged
            part.created_ms = batch.created_ms
        parts[0].charged += left
        # Keep the order by age: expired() stops at the first batch that has not expired.
        whole = list(self.incomplete)
        at = whole.index(batch)
        self.incomplete = OrderedDict.fromkeys([*whole[:at], *parts, *whole[at + 1 :]])
        batch.released = True
        batch.become(parts)


def _size_of_headers(headers: Sequence[Header]) -> int:
    if not isinstance(headers, Sequence):
        # Headers are iterated twice (size, then encoding), so an iterator would lose them.
        raise TypeError(f"headers must be a list or a tuple, not {type(headers).__name__}")
    size = 0
    for name, data in headers:
        if not isinstance(name, str) or not (data is None or isinstance(data, bytes)):
            raise TypeError(f"a header must be (str, bytes or None), not {(name, data)!r}")
        size += HEADER_OVERHEAD + len(name.encode()) + (0 if data is None else len(data))
    return size


def _not_bytes(what: str, given: object) -> TypeError:
    return TypeError(f"{what} must be bytes or None, not {type(given).__name__}: encode it first")
