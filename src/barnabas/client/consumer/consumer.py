"""The consumer that users see.

It reads partitions that it is assigned. Whoever reads takes what has arrived (delivery.py) and waits if
nothing is here; bringing it in is the fetchers' business. Messages are taken after every wait and never
across one, so a reader that is cancelled loses nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import Tasks
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.errors import NoArrow
from barnabas.client.consumer.message import Message
from barnabas.client.consumer.offsets import OffsetAt, list_offsets
from barnabas.client.consumer.seeking import Seeking
from barnabas.client.consumer.settings import EARLIEST, LATEST, ConsumerSettings
from barnabas.client.consumer.upkeep import Upkeep
from barnabas.client.deadline import Deadline
from barnabas.client.ending import to_its_end
from barnabas.client.errors import ClientError, Closed, RequestTimedOut, UnknownTopic
from barnabas.client.metadata import TopicMetadata
from barnabas.client.ports import ClientPorts
from barnabas.client.settings import parse_settings_of

if TYPE_CHECKING:
    import pyarrow as pa

# One table of arrow() is made of so many rows or fetched bytes, and little more.
TABLE_ROWS: int = 1_000_000
TABLE_BYTES: int = 16 * 1024 * 1024


class Consumer(Seeking):
    """Use it in an `async with`, or call start() and close()."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self.settings = parse_settings_of(ConsumerSettings, settings, named)
        self._ports = ports
        self._cluster: Cluster | None = None
        self._core_or_none: Core | None = None
        self._tasks = Tasks(self._crashed)
        self._crash: BaseException | None = None
        self._closed = False

    # Beginning and end

    async def start(self) -> None:
        """Reach the cluster; BrokerUnavailable or NotKafka if it is not there in default.api.timeout.ms."""
        if self._closed:
            raise Closed("the consumer")
        assert self._core_or_none is None, "it has been started"
        # Known from now on: it may be closed while it starts.
        self._cluster = cluster = Cluster(self.settings, self._ports)
        await cluster.start()
        self._core_or_none = Core(self.settings, cluster)
        self._tasks.start(Upkeep(self._core_or_none, self._tasks).run())

    async def close(self) -> None:
        """End every task and connection. Whoever waits for messages gets Closed; `async for` ends."""
        self._closed = True
        try:
            if self._core_or_none is not None:
                await self._end_fetching(self._core_or_none)
        finally:
            # Also if this is cancelled: what is left takes no time.
            if self._cluster is not None:
                await to_its_end(self._cluster.close())

    async def _end_fetching(self, core: Core) -> None:
        core.news.set()
        core.found.set()
        fetchers = list(core.fetchers.values())
        await self._tasks.close()
        await asyncio.gather(*(fetcher.end_session() for fetcher in fetchers))

    async def __aenter__(self) -> "Consumer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _crashed(self, error: BaseException) -> None:
        """A task ended by a mistake of ours: nothing is fetched any more, so every reader is told."""
        self._crash = error
        if self._core_or_none is not None:
            self._core_or_none.news.set()
            self._core_or_none.found.set()

    def _check(self) -> Core:
        if self._closed:
            raise Closed("the consumer")
        if self._crash is not None:
            raise self._crash
        assert self._core_or_none is not None, "it has not been started"
        return self._core_or_none

    # Assignment

    async def assign(self, tps: Iterable[tuple[str, int]]) -> None:
        """Read these partitions and no others. Those that were assigned before keep their positions.

        UnknownTopic if one of them is not there within default.api.timeout.ms.
        """
        core = self._check()
        wanted = [TopicPartition(*each) for each in tps]
        deadline = Deadline(self.settings.default_api_timeout_ms)
        found = {name: await self._topic(name, deadline) for name in dict.fromkeys(tp.topic for tp in wanted)}
        ids: dict[TopicPartition, Uuid] = {}
        for tp in wanted:
            if tp.partition not in range(len(found[tp.topic].partitions)):
                raise UnknownTopic(about=f"partition {tp}")
            ids[tp] = found[tp.topic].topic_id
        self._replace(self._check(), ids)
        core.changed()

    async def assign_topic(self, *names: str) -> frozenset[TopicPartition]:
        """Read all partitions that these topics have now, and no others; which they are."""
        core = self._check()
        deadline = Deadline(self.settings.default_api_timeout_ms)
        found = [await self._topic(name, deadline) for name in dict.fromkeys(names)]
        ids = {
            TopicPartition(topic.name, each.partition): topic.topic_id
            for topic in found
            for each in topic.partitions
        }
        self._replace(self._check(), ids)
        core.changed()
        return frozenset(ids)

    async def _topic(self, name: str, deadline: Deadline) -> TopicMetadata:
        create = self.settings.allow_auto_create_topics
        return await self._check().cluster.topic(name, deadline, create=create)

    def _replace(self, core: Core, ids: dict[TopicPartition, Uuid]) -> None:
        reset_to = self.settings.reset_to(core.cluster.ports.clock.now_ms())
        for gone in core.positions.replace(ids, reset_to):
            core.delivery.drop(gone)

    # Reading

    def __aiter__(self) -> "Consumer":
        return self

    async def __anext__(self) -> Message:
        core = self._core_or_none
        if core is not None:
            delivery = core.delivery
            at = delivery.at
            ready = delivery.ready
            if at < len(ready) and not self._closed:
                delivery.at = at + 1
                return ready[at]
        try:
            found = await self.batch(1, None)
        except Closed:
            raise StopAsyncIteration from None
        return found[0]

    async def batch(self, max_records: int | None = None, timeout_ms: float | None = None) -> list[Message]:
        """Up to max_records messages (max.poll.records if None), as soon as there is one; [] if time is over.

        Closed if the consumer is closed. The error of a partition comes when what was before it is read.
        """
        most = self.settings.max_poll_records if max_records is None else max(1, max_records)
        await self._give_way(self._check())
        found = self._take(most)
        if found:
            return found
        with suppress(TimeoutError):
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while not found:
                    await self._news()
                    found = self._take(most)
        return found

    async def batches(self, max_records: int | None = None) -> AsyncIterator[list[Message]]:
        """One batch() after the other, until the consumer is closed."""
        with suppress(Closed):
            while True:
                yield await self.batch(max_records)

    async def arrow(
        self, *, max_rows: int = TABLE_ROWS, max_bytes: int = TABLE_BYTES, views: bool = False
    ) -> "AsyncIterator[pa.Table]":
        """What arrives as Arrow tables, until the consumer is closed: topic, partition, offset and so on.

        A table is made of what whole answers brought for partitions, and ends when it has max_rows rows or
        max_bytes fetched bytes or more. An EndOfPartition comes between them if that was asked for. With
        `views` keys and values are binary views over the fetched bytes.
        """
        try:
            from barnabas.client.consumer.arrow import Limits, TableMaker
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.partition(".")[0] == "pyarrow":
                raise NoArrow from None
            raise
        core = self._check()
        check_crcs = self.settings.check_crcs
        maker = TableMaker(core.delivery, Limits(max_rows, max_bytes), check_crcs=check_crcs, views=views)
        with suppress(Closed):
            while True:
                await self._give_way(core)
                self._raise_complaints()
                table = maker.next_table()
                if table is None:
                    await self._news()
                else:
                    yield table

    async def _give_way(self, core: Core) -> None:
        """Others have their turn between two batches, the fetchers first, however much lies here."""
        core.delivery.begin_next()
        await asyncio.sleep(0)

    async def _news(self) -> None:
        core = self._check()
        core.news.clear()
        if not core.complaints:
            await core.news.wait()

    def _raise_complaints(self) -> Core:
        core = self._check()
        if core.complaints:
            raise core.complaints.popleft()
        return core

    def _take(self, most: int) -> list[Message]:
        """What is here, without waiting; [] if nothing is."""
        delivery = self._raise_complaints().delivery
        found: list[Message] = []
        while len(found) < most:
            if delivery.at == len(delivery.ready) and not delivery.advance(
                max(most - len(found), self.settings.max_poll_records), quiet=bool(found)
            ):
                break
            stop = delivery.at + most - len(found)
            found += delivery.ready[delivery.at : stop]
            delivery.at = min(stop, len(delivery.ready))
        return found

    # Where partitions begin and end

    async def beginning_offsets(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not."""
        return await self._ends(tps, EARLIEST)

    async def end_offsets(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """The offset after the last record; with read_committed, after the last one that can be read."""
        return await self._ends(tps, LATEST)

    async def _ends(self, tps: Iterable[tuple[str, int]], which: int) -> dict[TopicPartition, int]:
        found = await self._list({TopicPartition(*each): which for each in tps})
        return {tp: 0 if at is None else at.offset for tp, at in found.items()}

    async def offsets_for_times(
        self, times_ms: Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAt | None]:
        """The first record of each partition that is not older than the time; None if there is none."""
        for time_ms in times_ms.values():
            if time_ms < 0:
                raise ValueError(f"time {time_ms} is before 1970")
        return await self._list({TopicPartition(*tp): time_ms for tp, time_ms in times_ms.items()})

    async def _list(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetAt | None]:
        core = self._check()
        deadline = Deadline(self.settings.default_api_timeout_ms)
        committed = self.settings.read_committed
        return await list_offsets(core.cluster, wanted, committed=committed, deadline=deadline)

    async def position(self, tp: tuple[str, int]) -> int:
        """The offset of the next message; waits until it is known, at most default.api.timeout.ms."""
        one = self._check().positions[TopicPartition(*tp)]
        deadline = Deadline(self.settings.default_api_timeout_ms)
        while True:
            core = self._check()
            # It may have been taken away meanwhile.
            one = core.positions[one.tp]
            offset = core.delivery.position_of(one)[0]
            if offset is not None:
                return offset
            if one.error is not None:
                raise one.error
            await self._wait_known(core, deadline, one.tp)

    async def _wait_known(self, core: Core, deadline: Deadline, tp: TopicPartition) -> None:
        core.found.clear()
        try:
            async with asyncio.timeout_at(deadline.at):
                await core.found.wait()
        except TimeoutError:
            last: ClientError | None = core.cluster.last_failure
            late = RequestTimedOut(f"position of {tp}", "the cluster", deadline.timeout_ms)
            raise late from last
