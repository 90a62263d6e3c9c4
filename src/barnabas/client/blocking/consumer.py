"""The consumer for scripts.

Messages come from the loop in batches and wait here until the script asks for the next one. What waits here
counts as not read: position() and lag() tell of the next message that the script gets, and whatever moves a
position takes back what was fetched ahead.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.mirror import Blocking, mirrored
from barnabas.client.consumer.consumer import TABLE_BYTES, TABLE_ROWS
from barnabas.client.consumer.consumer import Consumer as AsyncConsumer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.errors import ClientError, Closed
from barnabas.client.ports import ClientPorts

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Consumer(Blocking[AsyncConsumer]):
    """Ready when it is made, and used by one thread; close() may be called by any, and ends a wait."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        super().__init__(lambda: AsyncConsumer(settings, ports=ports, **named))
        self._ahead: deque[Message] = deque()
        # The same for arrow(): more than none only if a wait was interrupted in its last moment.
        self._tables: deque[pa.Table | EndOfPartition] = deque()

    # Reading

    def __iter__(self) -> "Consumer":
        return self

    def __next__(self) -> Message:
        """The next message, however long it takes. Ends when the consumer is closed."""
        if not self._ahead or self._thread.closed:
            try:
                self._thread.run(self._fetch(None, None))
            except Closed:
                raise StopIteration from None
        return self._ahead.popleft()

    def batch(self, max_records: int | None = None, timeout_ms: float | None = None) -> list[Message]:
        """Up to max_records messages (max.poll.records if None), once there is one; [] if time is over."""
        most = self._client.settings.max_poll_records if max_records is None else max(1, max_records)
        if not self._ahead or self._thread.closed:
            # A way to the loop and back costs more than a message: small batches share it.
            self._thread.run(self._fetch(max(most, self._client.settings.max_poll_records), timeout_ms))
        return [self._ahead.popleft() for _ in range(min(most, len(self._ahead)))]

    def batches(self, max_records: int | None = None) -> Iterator[list[Message]]:
        """One batch() after the other, until the consumer is closed."""
        while True:
            try:
                found = self.batch(max_records)
            except Closed:
                return
            yield found

    async def _fetch(self, most: int | None, timeout_ms: float | None) -> None:
        if self._tables:
            await self._take_back()
        # Put down by the loop itself: a wait that is interrupted after that has lost nothing.
        self._ahead.extend(await self._client.batch(most, timeout_ms))

    def arrow(
        self, *, max_rows: int = TABLE_ROWS, max_bytes: int = TABLE_BYTES, views: bool = False
    ) -> "Iterator[pa.Table | EndOfPartition]":
        """What arrives as Arrow tables, until the consumer is closed."""
        tables = self._client.arrow(max_rows=max_rows, max_bytes=max_bytes, views=views)

        async def fetch() -> None:
            self._tables.append(await anext(tables))

        self._thread.run(self._take_back())
        try:
            while True:
                if not self._tables:
                    try:
                        self._thread.run(fetch())
                    except (StopAsyncIteration, Closed):
                        return
                yield self._tables.popleft()
        finally:
            if not self._thread.closed:
                self._thread.run(tables.aclose())  # type: ignore[attr-defined]

    # Assignment and positions

    def assign(self, tps: Iterable[tuple[str, int]]) -> None:
        """Read these partitions and no others. Those that were assigned before keep their positions."""
        wanted = [TopicPartition(*each) for each in tps]

        async def assign() -> None:
            await self._take_back()
            await self._client.assign(wanted)

        self._thread.run(assign())

    def assign_topic(self, *names: str) -> frozenset[TopicPartition]:
        """Read all partitions that these topics have now, and no others; which they are."""

        async def assign() -> frozenset[TopicPartition]:
            await self._take_back()
            return await self._client.assign_topic(*names)

        return self._thread.run(assign())

    def unassign(self) -> None:
        """Read nothing."""
        self._after_taking_back(self._client.unassign)

    def seek(self, tp: tuple[str, int], offset: int) -> None:
        """Go on at this offset."""
        self._after_taking_back(lambda: self._client.seek(tp, offset))

    def seek_to_beginning(self, *tps: tuple[str, int]) -> None:
        """Go on with the first record there is; all partitions if none is named."""
        self._after_taking_back(lambda: self._client.seek_to_beginning(*tps))

    def seek_to_end(self, *tps: tuple[str, int]) -> None:
        """Go on with what comes next; all partitions if none is named."""
        self._after_taking_back(lambda: self._client.seek_to_end(*tps))

    def seek_to_time(self, time_ms: int, *tps: tuple[str, int]) -> None:
        """Go on with the first record that is not older, or with what comes next if there is none."""
        self._after_taking_back(lambda: self._client.seek_to_time(time_ms, *tps))

    def pause(self, *tps: tuple[str, int]) -> None:
        """Leave partitions out until resume(). All if none is named."""
        self._after_taking_back(lambda: self._client.pause(*tps))

    def _after_taking_back(self, change: Callable[[], None]) -> None:
        async def there() -> None:
            await self._take_back()
            change()

        self._thread.run(there())

    async def _take_back(self) -> None:
        """Forget what is ahead: the positions go back to the first message of each partition there."""
        firsts: dict[TopicPartition, int] = {}
        for table in self._tables:
            for tp, offset in _firsts_of(table):
                firsts.setdefault(tp, offset)
        for message in self._ahead:
            firsts.setdefault(message.tp, message.offset)
        self._tables.clear()
        self._ahead.clear()
        for tp, offset in firsts.items():
            self._client.seek(tp, offset)

    def position(self, tp: tuple[str, int]) -> int:
        """The offset of the next message; waits until it is known, at most default.api.timeout.ms."""
        first = self._first_ahead(tp)
        return self._thread.run(self._client.position(tp)) if first is None else first

    def lag(self, tp: tuple[str, int]) -> int | None:
        """How many offsets are left to read, as of the last answer; None before the first."""

        async def lag() -> int | None:
            left = self._client.lag(tp)
            first = self._first_ahead(tp)
            if left is None or first is None:
                return left
            return left + await self._client.position(tp) - first

        return self._thread.run(lag())

    def _first_ahead(self, tp: tuple[str, int]) -> int | None:
        return next((each.offset for each in self._ahead if each.tp == tp), None)

    def resume(self, *tps: tuple[str, int]) -> None:
        """Read them again; one that an error stopped is tried again. All partitions if none is named."""
        self._look(lambda: self._client.resume(*tps))

    beginning_offsets = mirrored(AsyncConsumer.beginning_offsets)
    end_offsets = mirrored(AsyncConsumer.end_offsets)
    offsets_for_times = mirrored(AsyncConsumer.offsets_for_times)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._look(lambda: self._client.assignment)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return self._look(lambda: self._client.paused)

    @property
    def stopped(self) -> Mapping[TopicPartition, ClientError]:
        """The partitions that stand still because of an error."""
        return self._look(lambda: self._client.stopped)

    @property
    def held_bytes(self) -> int:
        """What was fetched by the loop and is not read yet."""
        return self._look(lambda: self._client.held_bytes)

    def _look(self, there: Callable[[], T]) -> T:
        async def look() -> T:
            return there()

        return self._thread.run(look())


def _firsts_of(table: "pa.Table | EndOfPartition") -> list[tuple[TopicPartition, int]]:
    """The first offset of each partition in a table."""
    if isinstance(table, EndOfPartition):
        return [(table.tp, table.offset)]
    columns = (table.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    firsts: dict[TopicPartition, int] = {}
    for topic, partition, offset in zip(*columns, strict=True):
        firsts.setdefault(TopicPartition(topic, partition), offset)
    return list(firsts.items())
