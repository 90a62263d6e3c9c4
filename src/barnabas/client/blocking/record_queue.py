"""The queue through which sending threads forward records to the event loop.

Threads call put(), which wakes the loop only if it is idle: a call into the loop per record would cost more
than sending it. The queue is bounded in bytes; when it is full, put() waits. The loop takes all queued
records at once and forwards them in order. Records of a topic without metadata wait in a queue of their own,
so that they do not block other topics.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from barnabas.base.tasks import Tasks
from barnabas.client.blocking.delivery import Delivery, QueuedRecord
from barnabas.client.blocking.loop_thread import Forked, LoopThread
from barnabas.client.deadline import Deadline
from barnabas.client.errors import ClientError, Closed, UnknownTopic
from barnabas.client.producer.delivery import Delivery as AsyncDelivery
from barnabas.client.producer.errors import BufferFull, ProducerCrashed, TopicNotReady
from barnabas.client.producer.producer import Producer

# In addition to buffer.memory, which counts records only after they are forwarded.
QUEUE_BYTES_MAX: Final = 1 << 20
# Approximate memory of the objects of a queued record.
_RECORD_BYTES: Final = 300
# Records forwarded before yielding to the sender and freeing queue space.
_RECORDS_PER_YIELD: Final = 500


class RecordQueue:
    """Create it in the loop of `thread`, for the producer that runs there."""

    def __init__(self, thread: LoopThread, producer: Producer) -> None:
        self._thread = thread
        self._producer = producer
        self._room = threading.Condition()
        # Under the condition's lock.
        self._queued: list[Delivery] = []
        self._bytes = 0
        self._is_awake = False
        self._closed = False
        self._crash: BaseException | None = None
        # Used only in the loop.
        self._batch: deque[Delivery] = deque()
        self._unresolved: dict[str, deque[Delivery]] = {}
        self._wakeup = asyncio.Event()
        self._progress = asyncio.Event()
        self._tasks = Tasks(self._crashed)
        forwarding = self._tasks.start(self._forward_all())
        # If the producer is garbage-collected without close(), so is this task. LoopThread warns about that;
        # without this line asyncio would also log "Task was destroyed but it is pending!"
        forwarding._log_destroy_pending = False  # type: ignore[attr-defined]

    # Called in sending threads

    def put(self, delivery: Delivery, record: QueuedRecord) -> None:
        """Queue a record; BufferFull if no space is free within max.block.ms."""
        size = _size(record)
        if self._thread.forked:
            # Do not take the lock: a thread of the parent process may have held it during fork().
            raise Forked()
        with self._room:
            self._check()
            if self._bytes and self._bytes + size > QUEUE_BYTES_MAX:
                self._wait_for_room(size)
            # The order matters, because Ctrl-C may interrupt between any two lines: then the loop is woken
            # once too often or the byte count is too low, but no queued record is left behind.
            self._queued.append(delivery)
            self._bytes += size
            if not self._is_awake:
                self._thread.loop.call_soon_threadsafe(self._wakeup.set)
                self._is_awake = True

    def _check(self) -> None:
        if self._crash is not None:
            raise ProducerCrashed(self._crash)
        if self._closed:
            raise Closed("the producer")

    def _wait_for_room(self, size: int) -> None:
        began = time.monotonic()
        most_s = self._producer.settings.max_block_ms / 1000

        def has_room() -> bool:
            return (
                self._closed
                or self._crash is not None
                or not self._bytes
                or self._bytes + size <= QUEUE_BYTES_MAX
            )

        if not self._room.wait_for(has_room, most_s):
            raise BufferFull(
                needed=size,
                used=self._producer.buffered_bytes,
                limit=self._producer.settings.buffer_memory,
                waited_ms=(time.monotonic() - began) * 1000,
            )
        self._check()

    def wait_for(self, delivery: Delivery, timeout: float | None) -> None:
        """Wait until the delivery is done."""

        async def ended() -> None:
            async with asyncio.timeout(timeout):
                while delivery.record is not None:
                    await self._progress.wait()
                if delivery.inner is not None:
                    # exception() reports the error.
                    with suppress(Exception):
                        await delivery.inner

        self._thread.run(ended())

    def call_when_done(self, delivery: Delivery, callback: Callable[[Delivery], object]) -> None:
        if self._thread.forked and not delivery.done():
            raise Forked()
        if self._thread.closed:
            callback(delivery)
        else:
            self._thread.loop.call_soon_threadsafe(self._watch, delivery, callback)

    # Called in the event loop

    async def wait_until_forwarded(self) -> None:
        """Wait until all records queued now are forwarded to the producer or have failed."""
        with self._room:
            left = [
                *self._queued,
                *self._batch,
                *(each for queue in self._unresolved.values() for each in queue),
            ]
        for delivery in left:
            while delivery.record is not None:
                await self._progress.wait()

    async def close(self, deadline: Deadline | None) -> None:
        """Accept no more records, forward queued ones until the deadline, and fail the rest with Closed."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        try:
            async with asyncio.timeout_at(None if deadline is None else deadline.at):
                await self.wait_until_forwarded()
        except TimeoutError:
            pass
        finally:
            self._fail_all(lambda: Closed("the producer"))
            await self._tasks.close()

    async def _forward_all(self) -> None:
        while True:
            await self._wakeup.wait()
            while self._take():
                freed = 0
                for turn in range(1, len(self._batch) + 1):
                    delivery = self._batch[0]
                    record = delivery.record
                    # None if _fail_all() has failed it.
                    if record is not None:
                        size = self._forward(delivery, record)
                        if size is None:
                            # Free the space of earlier records first: this send may take a while.
                            self._free(freed)
                            freed, size = 0, await self._send(delivery, record)
                        freed += size
                    # Remove it only now: wait_until_forwarded() must find records that are not forwarded yet.
                    self._batch.popleft()
                    if turn % _RECORDS_PER_YIELD == 0:
                        self._free(freed)
                        freed = 0
                        await asyncio.sleep(0)
                self._free(freed)
                await asyncio.sleep(0)

    def _take(self) -> bool:
        """Take all queued records; False if there are none, and then the next put() wakes the loop."""
        with self._room:
            if not self._queued:
                self._is_awake = False
                self._wakeup.clear()
                return False
            self._batch.extend(self._queued)
            self._queued.clear()
            return True

    def _forward(self, delivery: Delivery, record: QueuedRecord) -> int | None:
        """Forward a record or set it aside. Return the bytes freed; None if buffer.memory is full."""
        aside = self._unresolved.get(record.topic)
        if aside is not None:
            aside.append(delivery)
            return 0
        try:
            sent = self._try_send(record)
        except TopicNotReady:
            self._unresolved[record.topic] = deque([delivery])
            self._tasks.start(self._forward_unresolved(record.topic))
            return 0
        except BufferFull:
            return None
        except Exception as error:
            self._settle(delivery, error)
        else:
            self._settle(delivery, sent)
        return _size(record)

    def _try_send(self, record: QueuedRecord) -> AsyncDelivery:
        topic, value, key, partition, timestamp_ms, headers = record
        return self._producer.try_send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def _send(self, delivery: Delivery, record: QueuedRecord) -> int:
        """Forward a record, and wait for memory or metadata. Return the bytes freed."""
        topic, value, key, partition, timestamp_ms, headers = record
        try:
            sent = await self._producer.send(
                topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
            )
        except Exception as error:
            self._settle(delivery, error)
        else:
            self._settle(delivery, sent)
        return _size(record)

    async def _forward_unresolved(self, topic: str) -> None:
        """Forward the records of a topic without metadata. All of them wait for one metadata lookup."""
        waiting = self._unresolved[topic]
        failed: ClientError | None = None
        while waiting:
            delivery = waiting[0]
            record = delivery.record
            if record is not None:
                if failed is None:
                    await self._send(delivery, record)
                    failed = delivery.error if isinstance(delivery.error, ClientError) else None
                else:
                    await self._send_or_fail(delivery, record, failed)
                self._free(_size(record))
            waiting.popleft()
        del self._unresolved[topic]

    async def _send_or_fail(self, delivery: Delivery, record: QueuedRecord, error: ClientError) -> None:
        """After the lookup failed: send the record if possible without waiting, otherwise fail it, too."""
        try:
            sent = self._try_send(record)
        except TopicNotReady:
            if isinstance(error, UnknownTopic) and record.partition is not None:
                error = UnknownTopic(about=f"partition {record.topic}-{record.partition}")
            self._settle(delivery, error)
        except BufferFull:
            await self._send(delivery, record)
        except Exception as other:
            self._settle(delivery, other)
        else:
            self._settle(delivery, sent)

    def _settle(self, delivery: Delivery, outcome: AsyncDelivery | Exception) -> None:
        """Set the async delivery or the error of a delivery."""
        if delivery.record is None:
            return
        if isinstance(outcome, Exception):
            delivery.error = outcome
        else:
            delivery.inner = outcome
        delivery.record = None
        callbacks, delivery.callbacks = delivery.callbacks, None
        for callback in callbacks or ():
            self._watch(delivery, callback)

    def _watch(self, delivery: Delivery, callback: Callable[[Delivery], object]) -> None:
        if delivery.record is not None:
            delivery.callbacks = [*(delivery.callbacks or ()), callback]
        elif delivery.inner is not None:
            delivery.inner.add_done_callback(lambda _: callback(delivery))
        else:
            self._thread.loop.call_soon(callback, delivery)

    def _free(self, size: int) -> None:
        with self._room:
            self._bytes -= size
            self._room.notify_all()
        self._progress.set()
        self._progress = asyncio.Event()

    def _fail_all(self, error: Callable[[], ClientError]) -> None:
        with self._room:
            left = [
                *self._queued,
                *self._batch,
                *(each for queue in self._unresolved.values() for each in queue),
            ]
            self._queued.clear()
        for delivery in left:
            self._settle(delivery, error())
        self._free(0)

    def _crashed(self, error: BaseException) -> None:
        """A bug: fail all queued records and accept no more."""
        with self._room:
            self._crash = error
            self._room.notify_all()
        self._fail_all(lambda: ProducerCrashed(error))


def _size(record: QueuedRecord) -> int:
    size = _RECORD_BYTES
    if record.value is not None:
        size += len(record.value)
    if record.key is not None:
        size += len(record.key)
    for name, content in record.headers:
        size += len(name) + (0 if content is None else len(content))
    return size
