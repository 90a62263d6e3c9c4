"""The public consumer.

It reads partitions assigned by the user or by its group (client/group). Fetcher tasks (fetcher.py) buffer
data; readers (reader.py) take it from the buffer.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.tasks import Tasks
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.errors import TopicRecreated
from barnabas.client.consumer.grouped import Grouped
from barnabas.client.consumer.message import Message
from barnabas.client.consumer.offsets import OffsetAt, list_offsets
from barnabas.client.consumer.reader import TABLE_BYTES, TABLE_ROWS, Reader
from barnabas.client.consumer.settings import EARLIEST, LATEST, parse_consumer_settings
from barnabas.client.consumer.streams import split
from barnabas.client.consumer.upkeep import Upkeep
from barnabas.client.deadline import Deadline
from barnabas.client.ending import to_its_end
from barnabas.client.errors import ClientError, Closed, RequestTimedOut, UnknownTopic
from barnabas.client.group.errors import AssignedOtherwise, InCallback
from barnabas.client.group.member import Member
from barnabas.client.metadata import TopicMetadata
from barnabas.client.ports import ClientPorts

if TYPE_CHECKING:
    import pyarrow as pa


class Consumer(Grouped):
    """Use it in an `async with`, or call start() and close()."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self.settings = parse_consumer_settings(settings, named)
        self._ports = ports
        self._cluster: Cluster | None = None
        self._core_or_none: Core | None = None
        self._member_or_none: Member | None = None
        self.reader = Reader(self._check)
        self._tasks = Tasks(self._crashed)
        self._crash: BaseException | None = None
        self._closed = False
        self._leaving = False

    # Start and close

    async def start(self) -> None:
        """Connect to the cluster; BrokerUnavailable or NotKafka if default.api.timeout.ms passes first."""
        if self._closed:
            raise Closed("the consumer")
        assert self._core_or_none is None, "the consumer is already started"
        # Set before start(): close() may be called meanwhile.
        self._cluster = cluster = Cluster(self.settings, self._ports)
        await cluster.start()
        self._core_or_none = core = Core(self.settings, cluster)
        self.reader.delivery = core.delivery
        core.gate.visitors.append(self.reader)
        self._tasks.start(Upkeep(core, self._tasks).run())
        if self.settings.group_id is not None:
            self._member_or_none = Member(core, self._crashed)
            self._member_or_none.start()

    async def close(self) -> None:
        """Commit if enable.auto.commit is set, leave the group, and end all tasks and connections.

        All delivered messages count as processed. Pending reads raise Closed; `async for` ends.
        """
        await self._close(finished=True)

    async def _close(self, *, finished: bool) -> None:
        core, member = self._core_or_none, self._member_or_none
        if core is not None and core.gate.is_in_callback:
            raise InCallback("close()")
        self._closed = True
        try:
            if core is not None:
                self._wake_readers(core)
                if member is not None:
                    await self._leave(member, finished=finished)
                await self._end_fetching(core)
        finally:
            # Even if this is cancelled: disconnecting takes no time.
            await to_its_end(self._disconnect())

    async def _disconnect(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()

    async def _leave(self, member: Member, *, finished: bool) -> None:
        self._leaving = True
        try:
            await member.close(finished=finished)
        finally:
            self._leaving = False
            self._member_or_none = None

    def _wake_readers(self, core: Core) -> None:
        for visitor in core.gate.visitors:
            visitor.slow = True
        core.news.set()
        core.found.set()

    async def _end_fetching(self, core: Core) -> None:
        fetchers = list(core.fetchers.values())
        await self._tasks.close()
        await asyncio.gather(*(fetcher.end_session() for fetcher in fetchers))

    async def __aenter__(self) -> "Consumer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error the last message was perhaps not processed: do not commit it.
        await self._close(finished=kind is None)

    def _crashed(self, error: BaseException) -> None:
        """An internal task failed, which is a bug: nothing is fetched any more, so wake all readers."""
        self._crash = error
        if self._core_or_none is not None:
            self._wake_readers(self._core_or_none)

    def _check(self, *, leaving: bool = False) -> Core:
        """Return the core, or raise. With `leaving`, also while the last callback runs: it may commit."""
        if self._closed and not (leaving and self._leaving):
            raise Closed("the consumer")
        if self._crash is not None:
            raise self._crash
        assert self._core_or_none is not None, "the consumer is not started"
        return self._core_or_none

    # Assignment

    async def assign(
        self, tps: Iterable[tuple[str, int]], *, topic_ids: Mapping[str, Uuid] | None = None
    ) -> None:
        """Assign exactly these partitions. Partitions that were assigned before keep their positions.

        UnknownTopic if a partition does not exist within default.api.timeout.ms. TopicRecreated if the id of
        a topic differs from `topic_ids`; the assignment is then unchanged.
        """
        core = self._check_unsubscribed()
        wanted = [TopicPartition(*each) for each in tps]
        deadline = Deadline(self.settings.default_api_timeout_ms)
        counts: dict[str, int] = {}
        for tp in wanted:
            counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
        found = {name: await self._topic(name, deadline, partitions) for name, partitions in counts.items()}
        ids: dict[TopicPartition, Uuid] = {}
        for tp in wanted:
            if tp.partition not in range(len(found[tp.topic].partitions)):
                raise UnknownTopic(about=f"partition {tp}")
            ids[tp] = found[tp.topic].topic_id
            meant = (topic_ids or {}).get(tp.topic, ids[tp])
            # Brokers before Kafka 2.8 have no topic ids.
            if meant != ids[tp] and ids[tp] != ZERO_UUID:
                raise TopicRecreated(tp, meant, ids[tp])
        self._replace(self._check_unsubscribed(), ids)
        core.changed()

    async def assign_topic(self, *names: str) -> frozenset[TopicPartition]:
        """Assign exactly the current partitions of these topics, and return them."""
        core = self._check_unsubscribed()
        deadline = Deadline(self.settings.default_api_timeout_ms)
        found = [await self._topic(name, deadline) for name in dict.fromkeys(names)]
        ids = {
            TopicPartition(topic.name, each.partition): topic.topic_id
            for topic in found
            for each in topic.partitions
        }
        self._replace(self._check_unsubscribed(), ids)
        core.changed()
        return frozenset(ids)

    async def _topic(self, name: str, deadline: Deadline, partitions: int = 0) -> TopicMetadata:
        create = self.settings.allow_auto_create_topics
        return await self._check().cluster.topic(name, deadline, create=create, partitions=partitions)

    def _replace(self, core: Core, ids: dict[TopicPartition, Uuid]) -> None:
        fresh = core.replace(ids)
        if self._member_or_none is not None:
            self._member_or_none.begin(fresh)
            return
        reset_to = self.settings.reset_to(core.cluster.ports.clock.now_ms())
        for one in fresh:
            one.move_by(reset_to)

    # Reading

    def __aiter__(self) -> Reader:
        return self.reader

    def __anext__(self) -> Coroutine[Any, Any, Message]:
        return self.reader.__anext__()

    async def batch(self, max_records: int | None = None, timeout_ms: float | None = None) -> list[Message]:
        """Wait for messages, return up to max_records (default: max.poll.records); [] after the timeout.

        Closed if the consumer is closed. The error of a partition is raised after the data before it is read.
        """
        return await self.reader.batch(max_records, timeout_ms)

    def batches(self, max_records: int | None = None) -> AsyncIterator[list[Message]]:
        """Yield batch() results until the consumer is closed."""
        return self.reader.batches(max_records)

    def arrow(
        self,
        *,
        max_rows: int = TABLE_ROWS,
        max_bytes: int = TABLE_BYTES,
        views: bool = False,
        timeout_ms: float | None = None,
    ) -> "AsyncIterator[pa.Table]":
        """Yield Arrow tables until the consumer is closed: see Reader.arrow()."""
        return self.reader.arrow(max_rows=max_rows, max_bytes=max_bytes, views=views, timeout_ms=timeout_ms)

    def streams(self, count: int) -> list[Reader]:
        """Split the consumer into `count` readers, each for a task of its own.

        Every partition belongs to one reader at a time, so its records stay in order. Call it once, before
        the first message; from then on read from the streams only.
        """
        core = self._check()
        readers = split(core, self.reader, count, self._check)
        self.reader = Reader(self._not_read)
        return readers

    def _not_read(self) -> Core:
        self._check()
        raise AssignedOtherwise("this consumer was split by streams(): read from the streams")

    # Offsets of partitions

    async def beginning_offsets(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition, assigned or not."""
        return await self._ends(tps, EARLIEST)

    async def end_offsets(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the end offset of each partition; with read_committed, the last stable offset."""
        return await self._ends(tps, LATEST)

    async def _ends(self, tps: Iterable[tuple[str, int]], which: int) -> dict[TopicPartition, int]:
        found = await self._list({TopicPartition(*each): which for each in tps})
        return {tp: 0 if at is None else at.offset for tp, at in found.items()}

    async def offsets_for_times(
        self, times_ms: Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAt | None]:
        """Return the first offset at or after a timestamp in each partition; None if there is none."""
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
        """Return the offset of the next message; wait until it is known, at most default.api.timeout.ms."""
        one = self._check(leaving=True).positions[TopicPartition(*tp)]
        deadline = Deadline(self.settings.default_api_timeout_ms)
        while True:
            core = self._check(leaving=True)
            # The partition may have been revoked in the meantime.
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
