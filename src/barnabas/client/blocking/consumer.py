"""The blocking consumer.

Messages are taken from the loop in batches and buffered here until the user reads them. Buffered messages
count as unread: position() and lag() refer to the next message the user gets, commit() commits what the user
got, and every change of a position discards the buffer. Rebalance callbacks run in the user's thread, in the
calls that read, unsubscribe or close (callbacks.py).
"""

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking.callbacks import CallbackRunner
from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.client.blocking.mirror import mirrored, start_client
from barnabas.client.consumer.consumer import Consumer as AsyncConsumer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.reader import TABLE_BYTES, TABLE_ROWS
from barnabas.client.errors import ClientError, Closed
from barnabas.client.group.offsets import Committer, OffsetAndMetadata
from barnabas.client.group.session import Callback
from barnabas.client.ports import ClientPorts

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Consumer:
    """Started by the constructor, used by one thread; any thread may call close(), which ends a wait."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self._thread, self._client = start_client(
            "consumer", lambda: AsyncConsumer(settings, ports=ports, **named)
        )
        self._reader = self._client.reader
        self._callbacks = self._thread.run(_new_runner(self._thread))
        self._buffered: deque[Message] = deque()
        # The last messages returned: not processed if the `with` block raises.
        self._last_delivered: list[Message] = []
        # Buffered tables of arrow(): non-empty only after a wait was interrupted at its very end.
        self._tables: deque[pa.Table | EndOfPartition] = deque()

    # Close

    def close(self) -> None:
        """Commit if enable.auto.commit is set, leave the group, and end connections and thread."""
        self._close(finished=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(finished=kind is None)

    def _close(self, *, finished: bool) -> None:
        if self._thread.closed:
            return
        self._callbacks.check("close()")

        async def run() -> None:
            if not finished:
                self._buffered.extendleft(reversed(self._last_delivered))
            with suppress(ClientError):
                await self._discard_buffer()
                self._reader.mark_processed()
            await self._client.close()

        try:
            self._callbacks.run(run(), ends=True)
        except Closed:
            # Another thread has closed it.
            return
        finally:
            self._thread.close()

    # Manual assignment

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._run_in_loop(lambda: self._client.assignment)

    def assign(self, tps: Iterable[tuple[str, int]], *, topic_ids: Mapping[str, Uuid] | None = None) -> None:
        """Assign exactly these partitions. Partitions that were assigned before keep their positions.

        TopicRecreated if the id of a topic differs from `topic_ids`.
        """
        wanted = [TopicPartition(*each) for each in tps]

        async def assign() -> None:
            await self._discard_buffer()
            await self._client.assign(wanted, topic_ids=topic_ids)

        self._thread.run(assign())

    def assign_topic(self, *names: str) -> frozenset[TopicPartition]:
        """Assign exactly the current partitions of these topics, and return them."""

        async def assign() -> frozenset[TopicPartition]:
            await self._discard_buffer()
            return await self._client.assign_topic(*names)

        return self._thread.run(assign())

    def unassign(self) -> None:
        """Remove all partitions from the assignment."""
        self._discard_buffer_and_run(self._client.unassign)

    # Subscription

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: "re.Pattern[str] | str | None" = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics by name or pattern.

        The callbacks run in the calling thread, during calls that read, unsubscribe or close.
        """
        self._callbacks.check("subscribe()")
        wrapped = self._callbacks.wrapped
        self._callbacks.run(
            self._client.subscribe(
                topics,
                pattern=pattern,
                on_assigned=wrapped(on_assigned),
                on_revoked=wrapped(on_revoked),
                on_lost=wrapped(on_lost),
            )
        )

    def unsubscribe(self) -> None:
        """Revoke all partitions, with on_revoked, and leave the group."""
        self._callbacks.check("unsubscribe()")

        async def run() -> None:
            await self._discard_buffer()
            self._reader.mark_processed()
            await self._client.unsubscribe()

        self._callbacks.run(run(), ends=True)

    @property
    def subscription(self) -> frozenset[str]:
        return self._run_in_loop(lambda: self._client.subscription)

    # Reading

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """Wait for the next message. Iteration ends when the consumer is closed."""
        if not self._buffered or self._reader.must_poll or self._thread.closed:
            try:
                self._callbacks.check("reading")
                self._callbacks.run(self._fetch(None, None))
            except Closed:
                raise StopIteration from None
        message = self._buffered.popleft()
        self._reader.polls += 1
        self._last_delivered = [message]
        return message

    def batch(self, max_records: int | None = None, timeout_ms: float | None = None) -> list[Message]:
        """Wait for messages, return up to max_records (default: max.poll.records); [] after the timeout."""
        most = self._client.settings.max_poll_records if max_records is None else max(1, max_records)
        if not self._buffered or self._reader.must_poll or self._thread.closed:
            self._callbacks.check("reading")
            # A round trip to the loop costs more than a message: fetch more for small batches.
            self._callbacks.run(self._fetch(max(most, self._client.settings.max_poll_records), timeout_ms))
        self._reader.polls += 1
        self._last_delivered = [self._buffered.popleft() for _ in range(min(most, len(self._buffered)))]
        return self._last_delivered

    def batches(self, max_records: int | None = None) -> Iterator[list[Message]]:
        """Yield batch() results until the consumer is closed."""
        while True:
            try:
                found = self.batch(max_records)
            except Closed:
                return
            yield found

    async def _fetch(self, most: int | None, timeout_ms: float | None) -> None:
        if self._tables or self._buffered:
            # The group waits for this reader, which must not keep unread messages.
            await self._discard_buffer()
        # Stored by the loop itself, so that an interrupted wait loses nothing.
        self._buffered.extend(await self._client.batch(most, timeout_ms))

    def arrow(
        self,
        *,
        max_rows: int = TABLE_ROWS,
        max_bytes: int = TABLE_BYTES,
        views: bool = False,
        timeout_ms: float | None = None,
    ) -> "Generator[pa.Table | EndOfPartition]":
        """Yield Arrow tables until the consumer is closed: see Reader.arrow()."""
        tables = self._client.arrow(
            max_rows=max_rows, max_bytes=max_bytes, views=views, timeout_ms=timeout_ms
        )

        async def fetch() -> None:
            self._tables.append(await anext(tables))

        self._thread.run(self._discard_buffer())
        try:
            while True:
                if not self._tables:
                    try:
                        self._callbacks.check("reading")
                        self._callbacks.run(fetch())
                    except (StopAsyncIteration, Closed):
                        return
                yield self._tables.popleft()
        finally:
            if not self._thread.closed:
                self._thread.run(tables.aclose())  # type: ignore[attr-defined]

    # Positions

    def seek(self, tp: tuple[str, int], offset: int, *, until: int | None = None) -> None:
        """Continue at this offset; with `until`, stop fetching at that one."""
        self._discard_buffer_and_run(lambda: self._client.seek(tp, offset, until=until))

    def seek_to_beginning(self, *tps: tuple[str, int]) -> None:
        """Continue at the first record (default: all partitions)."""
        self._discard_buffer_and_run(lambda: self._client.seek_to_beginning(*tps))

    def seek_to_end(self, *tps: tuple[str, int]) -> None:
        """Continue at the end, with new records only (default: all partitions)."""
        self._discard_buffer_and_run(lambda: self._client.seek_to_end(*tps))

    def seek_to_time(self, time_ms: int, *tps: tuple[str, int]) -> None:
        """Continue at the first record with this timestamp or later, or at the end if there is none."""
        self._discard_buffer_and_run(lambda: self._client.seek_to_time(time_ms, *tps))

    def pause(self, *tps: tuple[str, int]) -> None:
        """Do not read partitions until resume() (default: all partitions)."""
        self._discard_buffer_and_run(lambda: self._client.pause(*tps))

    def resume(self, *tps: tuple[str, int]) -> None:
        """Read partitions again, also those that an error stopped (default: all partitions)."""
        self._run_in_loop(lambda: self._client.resume(*tps))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return self._run_in_loop(lambda: self._client.paused)

    @property
    def stopped(self) -> Mapping[TopicPartition, ClientError]:
        """The partitions stopped by an error."""
        return self._run_in_loop(lambda: self._client.stopped)

    def position(self, tp: tuple[str, int]) -> int:
        """Return the offset of the next message; wait until it is known, at most default.api.timeout.ms."""
        first = self._first_buffered(tp)
        return self._thread.run(self._client.position(tp)) if first is None else first

    def lag(self, tp: tuple[str, int]) -> int | None:
        """Return the number of offsets left to read, as of the last response; None before the first."""

        async def lag() -> int | None:
            left = self._client.lag(tp)
            first = self._first_buffered(tp)
            if left is None or first is None:
                return left
            return left + await self._client.position(tp) - first

        return self._thread.run(lag())

    def _first_buffered(self, tp: tuple[str, int]) -> int | None:
        return next((each.offset for each in self._buffered if each.tp == tp), None)

    @property
    def held_bytes(self) -> int:
        """Bytes fetched but not read yet."""
        return self._run_in_loop(lambda: self._client.held_bytes)

    # Offsets of partitions

    beginning_offsets = mirrored(AsyncConsumer.beginning_offsets)
    end_offsets = mirrored(AsyncConsumer.end_offsets)
    offsets_for_times = mirrored(AsyncConsumer.offsets_for_times)

    # Committed offsets

    def commit(self, offsets: Mapping[tuple[str, int], int | OffsetAndMetadata] | None = None) -> None:
        """Commit the positions after all messages returned so far, or the given offsets."""
        is_calling = self._callbacks.is_running

        async def run() -> None:
            wanted = offsets if offsets is not None else self._delivered()
            if is_calling:
                # The group waits for the callback, so the commit must not wait for the group.
                async with self._client.calling():
                    await self._client.commit(wanted)
            else:
                await self._client.commit(wanted)

        self._thread.run(run())

    @property
    def delivered(self) -> Mapping[tuple[str, int], int | OffsetAndMetadata]:
        """The offsets that commit() would commit: the position after the last message of each partition."""
        return self._run_in_loop(self._delivered)

    def _delivered(self) -> Mapping[tuple[str, int], int | OffsetAndMetadata]:
        at, firsts = self._client.delivered, self._first_offsets()
        return {tp: OffsetAndMetadata(firsts[tp]) if tp in firsts else one for tp, one in at.items()}

    def group_metadata(self) -> Committer:
        """Return group, generation and member id, which a transaction needs to commit offsets."""
        return self._run_in_loop(self._client.group_metadata)

    def committed(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offset of each partition, assigned or not; None if there is none."""
        return self._thread.run(self._client.committed(tps))

    # The buffer

    def _discard_buffer_and_run(self, change: Callable[[], None]) -> None:
        async def run() -> None:
            await self._discard_buffer()
            change()

        self._thread.run(run())

    async def _discard_buffer(self) -> None:
        """Discard the buffer, and move positions back to its first message of each partition."""
        firsts = self._first_offsets()
        self._tables.clear()
        self._buffered.clear()
        for tp, offset in firsts.items():
            self._client.go_back(tp, offset)

    def _first_offsets(self) -> dict[TopicPartition, int]:
        """Return the first buffered offset of each partition."""
        firsts: dict[TopicPartition, int] = {}
        for table in self._tables:
            for tp, offset in _first_offsets_of(table):
                firsts.setdefault(tp, offset)
        for message in self._buffered:
            firsts.setdefault(message.tp, message.offset)
        return firsts

    def _run_in_loop(self, call: Callable[[], T]) -> T:
        async def run() -> T:
            return call()

        return self._thread.run(run())


async def _new_runner(thread: LoopThread) -> CallbackRunner:
    return CallbackRunner(thread)


def _first_offsets_of(table: "pa.Table | EndOfPartition") -> list[tuple[TopicPartition, int]]:
    """Return the first offset of each partition in a table."""
    if isinstance(table, EndOfPartition):
        return [(table.tp, table.offset)]
    columns = (table.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    firsts: dict[TopicPartition, int] = {}
    for topic, partition, offset in zip(*columns, strict=True):
        firsts.setdefault(TopicPartition(topic, partition), offset)
    return list(firsts.items())
