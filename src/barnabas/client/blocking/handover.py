"""Records on their way from the threads that send them to the loop, in bunches.

put() is called by threads, and wakes the loop only if it has nothing to do: a call into the loop for every
record would cost more than sending it. What lies here is bounded in bytes; when it is full, put() waits. The
loop takes all there is at once and passes it on in order. Records of a topic that is not known yet wait
aside, so that those of other topics do not wait with them.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from barnabas.base.tasks import Tasks
from barnabas.client.blocking.delivery import Delivery, Handed
from barnabas.client.blocking.loop_thread import Forked, LoopThread
from barnabas.client.deadline import Deadline
from barnabas.client.errors import ClientError, Closed, UnknownTopic
from barnabas.client.producer.delivery import Delivery as AsyncDelivery
from barnabas.client.producer.errors import BufferFull, ProducerCrashed, TopicNotReady
from barnabas.client.producer.producer import Producer

# Beside buffer.memory, which counts records from when the loop has passed them on.
HANDED_BYTES_MAX: Final = 1 << 20
# About what the objects of a record take while they lie here.
_RECORD_BYTES: Final = 300
# After so many records the sender gets its turn, and frees what was passed on.
_TURN_RECORDS: Final = 500


class Handover:
    """Made in the loop of `thread`, for the producer that runs there."""

    def __init__(self, thread: LoopThread, producer: Producer) -> None:
        self._thread = thread
        self._producer = producer
        self._room = threading.Condition()
        # Under the condition's lock.
        self._handed: list[Delivery] = []
        self._bytes = 0
        self._is_awake = False
        self._closed = False
        self._crash: BaseException | None = None
        # Only in the loop.
        self._bunch: deque[Delivery] = deque()
        self._aside: dict[str, deque[Delivery]] = {}
        self._news = asyncio.Event()
        self._progress = asyncio.Event()
        self._tasks = Tasks(self._crashed)
        carrying = self._tasks.start(self._carry())
        # A producer that is dropped without close() takes this task along, and LoopThread warns of that.
        # asyncio would log an error besides: "Task was destroyed but it is pending!"
        carrying._log_destroy_pending = False  # type: ignore[attr-defined]

    # In threads

    def put(self, delivery: Delivery, record: Handed) -> None:
        """Hand a record over; BufferFull if there is no room within max.block.ms."""
        size = _size(record)
        if self._thread.forked:
            # Not under the lock: it may have been held by a thread that is not here.
            raise Forked()
        with self._room:
            self._check()
            if self._bytes and self._bytes + size > HANDED_BYTES_MAX:
                self._wait_for_room(size)
            # In this order, because Ctrl-C may come between any two lines: the loop is woken too often then,
            # or believes that there is more room than there is, but nothing lies here that nobody fetches.
            self._handed.append(delivery)
            self._bytes += size
            if not self._is_awake:
                self._thread.loop.call_soon_threadsafe(self._news.set)
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
                or self._bytes + size <= HANDED_BYTES_MAX
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
        """Until the delivery is done."""

        async def ended() -> None:
            async with asyncio.timeout(timeout):
                while delivery.record is not None:
                    await self._progress.wait()
                if delivery.inner is not None:
                    # Its error is for exception() to tell.
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

    # In the loop

    async def moved(self) -> None:
        """Until what lies here now is with the producer, or has failed."""
        with self._room:
            left = [*self._handed, *self._bunch, *(each for aside in self._aside.values() for each in aside)]
        for delivery in left:
            while delivery.record is not None:
                await self._progress.wait()

    async def close(self, deadline: Deadline | None) -> None:
        """Take no more; pass on what is here while there is time, and fail the rest with Closed."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        try:
            async with asyncio.timeout_at(None if deadline is None else deadline.at):
                await self.moved()
        except TimeoutError:
            pass
        finally:
            self._fail_all(lambda: Closed("the producer"))
            await self._tasks.close()

    async def _carry(self) -> None:
        while True:
            await self._news.wait()
            while self._take():
                freed = 0
                for turn in range(1, len(self._bunch) + 1):
                    delivery = self._bunch[0]
                    record = delivery.record
                    # None if it failed when everything was given up.
                    if record is not None:
                        size = self._pass_on(delivery, record)
                        if size is None:
                            # That may take a while, and those before it have moved.
                            self._free(freed)
                            freed, size = 0, await self._send(delivery, record)
                        freed += size
                    # Not before: whoever looks for what has not moved yet has to find it.
                    self._bunch.popleft()
                    if turn % _TURN_RECORDS == 0:
                        self._free(freed)
                        freed = 0
                        await asyncio.sleep(0)
                self._free(freed)
                await asyncio.sleep(0)

    def _take(self) -> bool:
        """Fetch what was handed over; False if nothing was, and the next put() has to wake us."""
        with self._room:
            if not self._handed:
                self._is_awake = False
                self._news.clear()
                return False
            self._bunch.extend(self._handed)
            self._handed.clear()
            return True

    def _pass_on(self, delivery: Delivery, record: Handed) -> int | None:
        """Give it to the producer or put it aside; how many bytes are free now. None: there is no room."""
        aside = self._aside.get(record.topic)
        if aside is not None:
            aside.append(delivery)
            return 0
        try:
            sent = self._try_send(record)
        except TopicNotReady:
            self._aside[record.topic] = deque([delivery])
            self._tasks.start(self._carry_aside(record.topic))
            return 0
        except BufferFull:
            return None
        except Exception as error:
            self._settle(delivery, error)
        else:
            self._settle(delivery, sent)
        return _size(record)

    def _try_send(self, record: Handed) -> AsyncDelivery:
        topic, value, key, partition, timestamp_ms, headers = record
        return self._producer.try_send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def _send(self, delivery: Delivery, record: Handed) -> int:
        """The same with a wait for room, or for the topic."""
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

    async def _carry_aside(self, topic: str) -> None:
        """Records of a topic that was not known. They wait for it together, and not one after the other."""
        waiting = self._aside[topic]
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
        del self._aside[topic]

    async def _send_or_fail(self, delivery: Delivery, record: Handed, error: ClientError) -> None:
        """After another one has waited in vain: it goes if it can, and shares its fate if it cannot."""
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
        """The delivery has its async half, or its error."""
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
            left = [*self._handed, *self._bunch, *(each for aside in self._aside.values() for each in aside)]
            self._handed.clear()
        for delivery in left:
            self._settle(delivery, error())
        self._free(0)

    def _crashed(self, error: BaseException) -> None:
        """A bug: nobody waits for what will not come, and nothing more is taken."""
        with self._room:
            self._crash = error
            self._room.notify_all()
        self._fail_all(lambda: ProducerCrashed(error))


def _size(record: Handed) -> int:
    size = _RECORD_BYTES
    if record.value is not None:
        size += len(record.value)
    if record.key is not None:
        size += len(record.key)
    for name, content in record.headers:
        size += len(name) + (0 if content is None else len(content))
    return size
