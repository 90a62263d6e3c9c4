"""The consumer for scripts.

Messages come from the loop in batches and wait here until the script asks for the next one. What waits here
counts as not read: position() and lag() tell of the next message that the script gets, commit() commits what
the script got, and whatever moves a position takes back what was fetched ahead. Rebalance callbacks run in
the script's thread, in the calls that read, unsubscribe or close (turns.py).
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
    """What the blocking Consumer adds groups and positions to."""

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
        # What the script got last: not dealt with if it leaves with an error.
        self._in_hand: list[Message] = []
        # The same for arrow(): more than none only if a wait was interrupted in its last moment.
        self._tables: deque[pa.Table | EndOfPartition] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """The next message, however long it takes. Ends when the consumer is closed."""
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
        """Up to max_records messages (max.poll.records if None), once there is one; [] if time is over."""
        most = self._client.settings.max_poll_records if max_records is None else max(1, max_records)
        if not self._ahead or self._reader.slow or self._thread.closed:
            self._turns.check("reading")
            # A way to the loop and back costs more than a message: small batches share it.
            self._turns.run(self._fetch(max(most, self._client.settings.max_poll_records), timeout_ms))
        self._reader.visits += 1
        self._in_hand = [self._ahead.popleft() for _ in range(min(most, len(self._ahead)))]
        return self._in_hand

    def batches(self, max_records: int | None = None) -> Iterator[list[Message]]:
        """One batch() after the other, until the consumer is closed."""
        while True:
            try:
                found = self.batch(max_records)
            except Closed:
                return
            yield found

    async def _fetch(self, most: int | None, timeout_ms: float | None) -> None:
        if self._tables or self._ahead:
            # The group waits for the script, which must not hold what it has not read.
            await self._take_back()
        # Put down by the loop itself: a wait that is interrupted after that has lost nothing.
        self._ahead.extend(await self._client.batch(most, timeout_ms))

    def arrow(
        self,
        *,
        max_rows: int = TABLE_ROWS,
        max_bytes: int = TABLE_BYTES,
        views: bool = False,
        timeout_ms: float | None = None,
    ) -> "Generator[pa.Table | EndOfPartition]":
        """What arrives as Arrow tables, until the consumer is closed: see Reader.arrow()."""
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
        """Forget what is ahead: the positions go back to the first message of each partition there."""
        firsts = self._firsts()
        self._tables.clear()
        self._ahead.clear()
        for tp, offset in firsts.items():
            self._client.go_back(tp, offset)

    def _firsts(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that lies here."""
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
    """The first offset of each partition in a table."""
    if isinstance(table, EndOfPartition):
        return [(table.tp, table.offset)]
    columns = (table.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    firsts: dict[TopicPartition, int] = {}
    for topic, partition, offset in zip(*columns, strict=True):
        firsts.setdefault(TopicPartition(topic, partition), offset)
    return list(firsts.items())
