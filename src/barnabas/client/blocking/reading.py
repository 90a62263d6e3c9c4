"""The read methods of the blocking consumer.

Messages are taken from the loop in batches and buffered here until the user reads them. Buffered messages
count as unread: position() and lag() refer to the next message the user gets, commit() commits what the user
got, and every change of a position discards the buffer. Rebalance callbacks run in the user's thread, in the
calls that read, unsubscribe or close (turns.py).
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Self, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.loop_thread import LoopThread
from barnabas.client.blocking.mirror import Blocking
from barnabas.client.blocking.turns import CallerTurns
from barnabas.client.consumer.consumer import Consumer as AsyncConsumer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.reader import TABLE_BYTES, TABLE_ROWS
from barnabas.client.errors import Closed
from barnabas.client.ports import ClientPorts

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Reading(Blocking[AsyncConsumer]):
    """Base of the blocking Consumer, which adds groups and positions."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        super().__init__(lambda: AsyncConsumer(settings, ports=ports, **named))
        self._reader = self._client.reader
        self._turns = self._thread.run(_turns(self._thread))
        self._ahead: deque[Message] = deque()
        # The last messages returned: not processed if the `with` block raises.
        self._in_hand: list[Message] = []
        # Buffered tables of arrow(): non-empty only after a wait was interrupted at its very end.
        self._tables: deque[pa.Table | EndOfPartition] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """Wait for the next message. Iteration ends when the consumer is closed."""
        if not self._ahead or self._reader.slow or self._thread.closed:
            try:
                self._turns.check("reading")
                self._turns.run(self._fetch(None, None))
            except Closed:
                raise StopIteration from None
        message = self._ahead.popleft()
        self._reader.visits += 1
        self._in_hand = [message]
        return message

    def batch(self, max_records: int | None = None, timeout_ms: float | None = None) -> list[Message]:
        """Wait for messages, return up to max_records (default: max.poll.records); [] after the timeout."""
        most = self._client.settings.max_poll_records if max_records is None else max(1, max_records)
        if not self._ahead or self._reader.slow or self._thread.closed:
            self._turns.check("reading")
            # A round trip to the loop costs more than a message: fetch more for small batches.
            self._turns.run(self._fetch(max(most, self._client.settings.max_poll_records), timeout_ms))
        self._reader.visits += 1
        self._in_hand = [self._ahead.popleft() for _ in range(min(most, len(self._ahead)))]
        return self._in_hand

    def batches(self, max_records: int | None = None) -> Iterator[list[Message]]:
        """Yield batch() results until the consumer is closed."""
        while True:
            try:
                found = self.batch(max_records)
            except Closed:
                return
            yield found

    async def _fetch(self, most: int | None, timeout_ms: float | None) -> None:
        if self._tables or self._ahead:
            # The group waits for this reader, which must not keep unread messages.
            await self._take_back()
        # Stored by the loop itself, so that an interrupted wait loses nothing.
        self._ahead.extend(await self._client.batch(most, timeout_ms))

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

        self._thread.run(self._take_back())
        try:
            while True:
                if not self._tables:
                    try:
                        self._turns.check("reading")
                        self._turns.run(fetch())
                    except (StopAsyncIteration, Closed):
                        return
                yield self._tables.popleft()
        finally:
            if not self._thread.closed:
                self._thread.run(tables.aclose())  # type: ignore[attr-defined]

    async def _take_back(self) -> None:
        """Discard the buffer, and move positions back to its first message of each partition."""
        firsts = self._firsts()
        self._tables.clear()
        self._ahead.clear()
        for tp, offset in firsts.items():
            self._client.go_back(tp, offset)

    def _firsts(self) -> dict[TopicPartition, int]:
        """Return the first buffered offset of each partition."""
        firsts: dict[TopicPartition, int] = {}
        for table in self._tables:
            for tp, offset in _firsts_of(table):
                firsts.setdefault(tp, offset)
        for message in self._ahead:
            firsts.setdefault(message.tp, message.offset)
        return firsts

    def _look(self, there: Callable[[], T]) -> T:
        async def look() -> T:
            return there()

        return self._thread.run(look())


async def _turns(thread: LoopThread) -> CallerTurns:
    return CallerTurns(thread)


def _firsts_of(table: "pa.Table | EndOfPartition") -> list[tuple[TopicPartition, int]]:
    """Return the first offset of each partition in a table."""
    if isinstance(table, EndOfPartition):
        return [(table.tp, table.offset)]
    columns = (table.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    firsts: dict[TopicPartition, int] = {}
    for topic, partition, offset in zip(*columns, strict=True):
        firsts.setdefault(TopicPartition(topic, partition), offset)
    return list(firsts.items())
