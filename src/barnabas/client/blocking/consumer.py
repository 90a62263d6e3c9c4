"""The blocking consumer: assignment and positions. See also reading.py and grouped.py."""

from collections.abc import Callable, Iterable, Mapping

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking.grouped import Grouped
from barnabas.client.blocking.mirror import mirrored
from barnabas.client.consumer.consumer import Consumer as AsyncConsumer
from barnabas.client.errors import ClientError


class Consumer(Grouped):
    """Started by the constructor, used by one thread; any thread may call close(), which ends a wait."""

    def assign(self, tps: Iterable[tuple[str, int]], *, topic_ids: Mapping[str, Uuid] | None = None) -> None:
        """Assign exactly these partitions. Partitions that were assigned before keep their positions.

        TopicRecreated if the id of a topic differs from `topic_ids`.
        """
        wanted = [TopicPartition(*each) for each in tps]

        async def assign() -> None:
            await self._take_back()
            await self._client.assign(wanted, topic_ids=topic_ids)

        self._thread.run(assign())

    def assign_topic(self, *names: str) -> frozenset[TopicPartition]:
        """Assign exactly the current partitions of these topics, and return them."""

        async def assign() -> frozenset[TopicPartition]:
            await self._take_back()
            return await self._client.assign_topic(*names)

        return self._thread.run(assign())

    def unassign(self) -> None:
        """Remove all partitions from the assignment."""
        self._after_taking_back(self._client.unassign)

    def seek(self, tp: tuple[str, int], offset: int, *, until: int | None = None) -> None:
        """Continue at this offset; with `until`, stop fetching at that one."""
        self._after_taking_back(lambda: self._client.seek(tp, offset, until=until))

    def seek_to_beginning(self, *tps: tuple[str, int]) -> None:
        """Continue at the first record (default: all partitions)."""
        self._after_taking_back(lambda: self._client.seek_to_beginning(*tps))

    def seek_to_end(self, *tps: tuple[str, int]) -> None:
        """Continue at the end, with new records only (default: all partitions)."""
        self._after_taking_back(lambda: self._client.seek_to_end(*tps))

    def seek_to_time(self, time_ms: int, *tps: tuple[str, int]) -> None:
        """Continue at the first record with this timestamp or later, or at the end if there is none."""
        self._after_taking_back(lambda: self._client.seek_to_time(time_ms, *tps))

    def pause(self, *tps: tuple[str, int]) -> None:
        """Do not read partitions until resume() (default: all partitions)."""
        self._after_taking_back(lambda: self._client.pause(*tps))

    def _after_taking_back(self, change: Callable[[], None]) -> None:
        async def there() -> None:
            await self._take_back()
            change()

        self._thread.run(there())

    def position(self, tp: tuple[str, int]) -> int:
        """Return the offset of the next message; wait until it is known, at most default.api.timeout.ms."""
        first = self._first_ahead(tp)
        return self._thread.run(self._client.position(tp)) if first is None else first

    def lag(self, tp: tuple[str, int]) -> int | None:
        """Return the number of offsets left to read, as of the last response; None before the first."""

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
        """Read partitions again, also those that an error stopped (default: all partitions)."""
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
        """The partitions stopped by an error."""
        return self._look(lambda: self._client.stopped)

    @property
    def held_bytes(self) -> int:
        """Bytes fetched but not read yet."""
        return self._look(lambda: self._client.held_bytes)
