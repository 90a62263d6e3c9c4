"""Reads buffered data as messages, lists of messages, or Arrow tables.

A reader takes buffered data and waits if there is none. It never holds messages across an await, so
cancelling a read loses nothing. A consumer has one reader, or those of streams().
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from barnabas.client.consumer.core import Core
from barnabas.client.consumer.errors import NoArrow
from barnabas.client.consumer.fetch_buffer import FetchBuffer, SplitFetchBuffer
from barnabas.client.consumer.message import Message
from barnabas.client.consumer.rebalance_barrier import ReaderState
from barnabas.client.errors import Closed, RequestTimedOut
from barnabas.client.group.errors import InCallback

if TYPE_CHECKING:
    import pyarrow as pa

# Default size of a table in rows or fetched bytes; tables may be slightly larger.
TABLE_ROWS: int = 1_000_000
TABLE_BYTES: int = 16 * 1024 * 1024
STREAMS_MAX: Final = 1024


class Reader(ReaderState):
    """`check` returns the consumer's core, or raises if the consumer can no longer be read."""

    def __init__(self, check: Callable[[], Core]) -> None:
        super().__init__()
        self._check = check

    def __aiter__(self) -> "Reader":
        return self

    async def __anext__(self) -> Message:
        buffer = self.buffer
        if buffer is not None and not self.must_poll:
            at = buffer.at
            ready = buffer.ready
            if at < len(ready):
                buffer.at = at + 1
                return ready[at]
        try:
            found = await self.batch(1, None)
        except Closed:
            raise StopAsyncIteration from None
        return found[0]

    async def batch(self, max_records: int | None = None, timeout_ms: float | None = None) -> list[Message]:
        """Wait for messages, return up to max_records (default: max.poll.records); [] after the timeout.

        Closed if the consumer is closed. The error of a partition is raised after the data before it is read.
        """
        core = self._begin_poll()
        most = core.settings.max_poll_records if max_records is None else max(1, max_records)
        found: list[Message] = []
        try:
            await self._yield_to_loop()
            found = self._take_messages(most)
            if found:
                return found
            with suppress(TimeoutError):
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    while not found:
                        await self._wait_for_data()
                        found = self._take_messages(most)
            return found
        finally:
            core.barrier.end_poll(self, found)

    async def batches(self, max_records: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield batch() results until the consumer is closed."""
        with suppress(Closed):
            while True:
                yield await self.batch(max_records)

    async def arrow(
        self,
        *,
        max_rows: int = TABLE_ROWS,
        max_bytes: int = TABLE_BYTES,
        views: bool = False,
        timeout_ms: float | None = None,
    ) -> "AsyncIterator[pa.Table]":
        """Yield Arrow tables (topic, partition, offset, ...) until the consumer is closed.

        A table consists of whole fetch responses, and ends at max_rows rows or max_bytes fetched bytes or
        more. With enable.partition.eof, EndOfPartition objects come between tables. With `views`, keys and
        values are binary views over the fetched bytes. RequestTimedOut if nothing arrives for timeout_ms.
        """
        try:
            from barnabas.client.consumer.arrow import Limits, TableMaker
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.partition(".")[0] == "pyarrow":
                raise NoArrow from None
            raise
        check_crcs = self._check().settings.check_crcs
        maker = TableMaker(self._buffer(), Limits(max_rows, max_bytes), check_crcs=check_crcs, views=views)
        with suppress(Closed):
            while True:
                yield await self._next_table(maker.next_table, timeout_ms)

    async def _next_table(
        self, next_table: "Callable[[], pa.Table | None]", timeout_ms: float | None
    ) -> "pa.Table":
        core = self._begin_poll()
        before = core.first_unread(self)
        table = None
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while table is None:
                    await self._yield_to_loop()
                    self._raise_pending_error()
                    if not core.barrier.is_held:
                        table = next_table()
                    if table is None:
                        await self._wait_for_data()
            return table
        except TimeoutError:
            late = RequestTimedOut("reading", "the cluster", timeout_ms or 0)
            raise late from core.cluster.last_failure
        finally:
            core.barrier.end_poll(self, [] if table is None else before)

    # Steps

    def _buffer(self) -> FetchBuffer:
        assert self.buffer is not None, "the consumer is not started"
        return self.buffer

    def _begin_poll(self) -> Core:
        core = self._check()
        if core.barrier.is_in_callback:
            raise InCallback("reading")
        core.barrier.begin_poll(self)
        return core

    async def _yield_to_loop(self) -> None:
        """Yield between two batches, so that fetchers and other tasks run however much is buffered."""
        self._buffer().allow_next_fetch()
        await asyncio.sleep(0)

    async def _wait_for_data(self) -> None:
        core = self._check()
        core.reader_wakeup.clear()
        if not core.pending_errors:
            await core.reader_wakeup.wait()

    def _raise_pending_error(self) -> Core:
        core = self._check()
        if core.pending_errors:
            raise core.pending_errors.popleft()
        if core.failure is not None:
            raise core.failure
        return core

    def _take_messages(self, most: int) -> list[Message]:
        """Take buffered messages without waiting; [] if there are none or the barrier is closed."""
        core = self._raise_pending_error()
        found: list[Message] = []
        if core.barrier.is_held:
            return found
        buffer = self._buffer()
        while len(found) < most:
            if buffer.at == len(buffer.ready) and not buffer.advance(
                max(most - len(found), core.settings.max_poll_records), quiet=bool(found)
            ):
                break
            stop = buffer.at + most - len(found)
            found += buffer.ready[buffer.at : stop]
            buffer.at = min(stop, len(buffer.ready))
        return found


def split(core: Core, reader: Reader, count: int, check: Callable[[], Core]) -> list[Reader]:
    """Split a consumer's reader into `count` readers."""
    if not 1 <= count <= STREAMS_MAX:
        raise ValueError(f"stream count {count} is out of range (1 to {STREAMS_MAX})")
    before = reader.buffer
    assert before is not None, "the consumer is not started"
    readers = [Reader(check) for _ in range(count)]
    for each in readers:
        each.buffer = before.new_empty()
        each.last_activity_s = core.now_s()
    for one in core.positions:
        before.pause(one)
    core.buffer = SplitFetchBuffer([each.buffer for each in readers if each.buffer is not None])
    core.buffer.distribute(core.positions)
    core.barrier.readers[:] = readers
    core.reader_wakeup.set()
    return readers
