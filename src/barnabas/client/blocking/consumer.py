"""The consumer for scripts: what is assigned and where it stands. See also reading.py and grouped.py."""

from collections.abc import Callable, Iterable, Mapping

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking.grouped import Grouped
from barnabas.client.blocking.mirror import mirrored
from barnabas.client.consumer.consumer import Consumer as AsyncConsumer
from barnabas.client.errors import ClientError


class Consumer(Grouped):
    """Ready when it is made, and used by one thread; close() may be called by any, and ends a wait."""

    def assign(self, tps: Iterable[tuple[str, int]], *, topic_ids: Mapping[str, Uuid] | None = None) -> None:
        """Read these partitions and no others. Those that were assigned before keep their positions.

        TopicRecreated if a topic is another one than `topic_ids` says, where that names it.
        """
        wanted = [TopicPartition(*each) for each in tps]

        async def assign() -> None:
            await self._take_back()
            await self._client.assign(wanted, topic_ids=topic_ids)

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

    def seek(self, tp: tuple[str, int], offset: int, *, until: int | None = None) -> None:
        """Go on at this offset; with `until`, only to that one."""
        self._after_taking_back(lambda: self._client.seek(tp, offset, until=until))

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
