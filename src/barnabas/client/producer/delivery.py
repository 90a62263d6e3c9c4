"""The awaitable outcome of a sent record, which costs almost nothing until it is awaited.

A delivery is a batch and an index in it. Each waiter has its own future, so cancelling one does not affect
the others.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from barnabas.client.producer.batch import NO_OFFSET, NO_TIME, Batch, unfinished_part


class Delivered(NamedTuple):
    """Position of a written record. The offset is -1 with acks=0, or if the broker no longer knows it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Delivery:
    """The outcome of one record: `await` it, or check done() and call result() or exception()."""

    __slots__ = ("_batch", "_index", "_timestamp_ms")

    def __init__(self, batch: Batch, index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms

    @property
    def topic(self) -> str:
        return self._batch.queue.tp.topic

    @property
    def partition(self) -> int:
        return self._batch.queue.tp.partition

    def done(self) -> bool:
        return self._unfinished() is None

    def result(self) -> Delivered:
        """Return its position or raise its error; asyncio.InvalidStateError while it is pending."""
        error = self.exception()
        if error is not None:
            # Many records share one error object: do not accumulate their tracebacks.
            raise error.with_traceback(None)
        batch, index = self._batch.find(self._index)
        offset = NO_OFFSET if batch.base_offset == NO_OFFSET else batch.base_offset + index
        appended = batch.append_time_ms
        tp = batch.queue.tp
        return Delivered(
            tp.topic, tp.partition, offset, self._timestamp_ms if appended == NO_TIME else appended
        )

    def exception(self) -> Exception | None:
        if not self.done():
            raise asyncio.InvalidStateError("the delivery of the record is still pending")
        batch, index = self._batch.find(self._index)
        return batch.error_of(index)

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call `callback` with this delivery in the event loop when it is done."""
        self._call_when_done(lambda: asyncio.get_running_loop().call_soon(callback, self))

    def _call_when_done(self, call: Callable[[], object]) -> None:
        batch = self._unfinished()
        if batch is None:
            call()
        else:
            batch.call_when_changed(call, lambda: self._call_when_done(call))

    def _unfinished(self) -> Batch | None:
        batch, _ = self._batch.find(self._index)
        return None if batch.done else batch

    def __await__(self) -> Generator[Any, None, Delivered]:
        while (batch := self._unfinished()) is not None:
            yield from changed(batch).__await__()
        return self.result()


class BatchDelivery(Delivery):
    """The outcome of all table rows in one batch; the result is the position of the first row.

    The other rows follow without a gap, unless the batch had to be split.
    """

    __slots__ = ("records",)

    def __init__(self, batch: Batch, timestamp_ms: int) -> None:
        super().__init__(batch, 0, timestamp_ms)
        self.records = batch.count

    def exception(self) -> Exception | None:
        if not self.done():
            raise asyncio.InvalidStateError("the delivery of the rows is still pending")
        return _first_error(self._batch)

    def _unfinished(self) -> Batch | None:
        return unfinished_part(self._batch)


def _first_error(batch: Batch) -> Exception | None:
    if batch.parts is None:
        return batch.error
    return next((error for error in map(_first_error, batch.parts) if error is not None), None)


async def changed(batch: Batch) -> None:
    """Wait until the batch is done or split."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    batch.call_when_changed(waiter, lambda: None if waiter.done() else waiter.set_result(None))
    try:
        await waiter
    finally:
        batch.forget_call(waiter)


async def finished(batch: Batch) -> None:
    """Wait until the batch and all parts of it are done."""
    while (part := unfinished_part(batch)) is not None:
        await changed(part)
