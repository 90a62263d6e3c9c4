"""The public consumer.

It reads partitions assigned by the user or by its group (client/group). Fetcher tasks (fetcher.py) buffer
data; readers (reader.py) take it from the buffer. core.py holds the shared state.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import Tasks
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.core import Core, topic_ids_of
from barnabas.client.consumer.message import Message
from barnabas.client.consumer.offsets import OffsetAt, list_offsets
from barnabas.client.consumer.position_updates import PositionUpdater
from barnabas.client.consumer.reader import TABLE_BYTES, TABLE_ROWS, Reader, split
from barnabas.client.consumer.settings import EARLIEST, LATEST, parse_consumer_settings
from barnabas.client.deadline import Deadline
from barnabas.client.errors import ClientError, Closed
from barnabas.client.group.errors import AssignedOtherwise, InCallback, NoGroup
from barnabas.client.group.member import Member
from barnabas.client.group.offsets import Committer, OffsetAndMetadata, offsets_given
from barnabas.client.group.session import Callback, Callbacks
from barnabas.client.group.topics import subscription_of
from barnabas.client.metadata import TopicMetadata
from barnabas.client.ports import ClientPorts
from barnabas.client.shared import to_its_end

if TYPE_CHECKING:
    import pyarrow as pa


class Consumer:
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
        self.reader.buffer = core.buffer
        core.barrier.readers.append(self.reader)
        self._tasks.start(PositionUpdater(core, self._tasks).run())
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
        if core is not None and core.barrier.is_in_callback:
            raise InCallback("close()")
        self._closed = True
        try:
            if core is not None:
                core.wake_readers()
                if member is not None:
                    await self._leave(member, finished=finished)
                fetchers = list(core.fetchers.values())
                await self._tasks.close()
                await asyncio.gather(*(fetcher.end_session() for fetcher in fetchers))
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
            self._core_or_none.wake_readers()

    def _check(self, *, leaving: bool = False) -> Core:
        """Return the core, or raise. With `leaving`, also while the last callback runs: it may commit."""
        if self._closed and not (leaving and self._leaving):
            raise Closed("the consumer")
        if self._crash is not None:
            raise self._crash
        assert self._core_or_none is not None, "the consumer is not started"
        return self._core_or_none

    # Manual assignment

    def _check_unsubscribed(self) -> Core:
        """Raise if the group assigns the partitions."""
        core = self._check()
        if core.is_subscribed:
            raise AssignedOtherwise("the group assigns the partitions: call unsubscribe() first")
        return core

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._check(leaving=True).positions.tps

    async def assign(
        self, tps: Iterable[tuple[str, int]], *, topic_ids: Mapping[str, Uuid] | None = None
    ) -> None:
        """Assign exactly these partitions. Partitions that were assigned before keep their positions.

        UnknownTopic if a partition does not exist within default.api.timeout.ms. TopicRecreated if the id of
        a topic differs from `topic_ids`; the assignment is then unchanged.
        """
        self._check_unsubscribed()
        wanted = [TopicPartition(*each) for each in tps]
        deadline = Deadline(self.settings.default_api_timeout_ms)
        counts: dict[str, int] = {}
        for tp in wanted:
            counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
        found = {name: await self._topic(name, deadline, partitions) for name, partitions in counts.items()}
        self._replace(self._check_unsubscribed(), topic_ids_of(wanted, found, expected=topic_ids or {}))

    async def assign_topic(self, *names: str) -> frozenset[TopicPartition]:
        """Assign exactly the current partitions of these topics, and return them."""
        self._check_unsubscribed()
        deadline = Deadline(self.settings.default_api_timeout_ms)
        found = [await self._topic(name, deadline) for name in dict.fromkeys(names)]
        ids = {
            TopicPartition(topic.name, each.partition): topic.topic_id
            for topic in found
            for each in topic.partitions
        }
        self._replace(self._check_unsubscribed(), ids)
        return frozenset(ids)

    async def _topic(self, name: str, deadline: Deadline, partitions: int = 0) -> TopicMetadata:
        create = self.settings.allow_auto_create_topics
        return await self._check().cluster.topic(name, deadline, create=create, partitions=partitions)

    def _replace(self, core: Core, ids: dict[TopicPartition, Uuid]) -> None:
        fresh = core.replace(ids)
        if self._member_or_none is not None:
            self._member_or_none.start_at_committed(fresh)
        else:
            core.reset_positions(fresh)
        core.wake_all()

    def unassign(self) -> None:
        """Remove all partitions from the assignment."""
        self._replace(self._check_unsubscribed(), {})

    # Subscription

    def _member(self, what: str, *, leaving: bool = False) -> Member:
        self._check(leaving=leaving)
        if self._member_or_none is None:
            raise NoGroup(what)
        return self._member_or_none

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: "re.Pattern[str] | str | None" = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics by name, or to all whose full name matches the pattern.

        It does not wait for the assignment. The callbacks, sync or async, are called while no reader is
        processing messages: on_revoked before partitions are given up, when offsets can still be committed;
        on_lost when another member owns them already (default: on_revoked).
        """
        member = self._member("subscribe()")
        wanted = subscription_of(topics, pattern)
        core = self._check()
        if core.barrier.is_in_callback:
            raise InCallback("subscribe()")
        if not core.is_subscribed and len(core.positions):
            raise AssignedOtherwise("partitions are assigned manually: call unassign() first")
        callbacks = Callbacks(on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        member.subscribe(wanted, callbacks)

    async def unsubscribe(self) -> None:
        """Revoke all partitions, with on_revoked, and leave the group."""
        member = self._member("unsubscribe()")
        if self._check().barrier.is_in_callback:
            raise InCallback("unsubscribe()")
        await member.unsubscribe()

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics; for a pattern, those that it matches."""
        self._check()
        return frozenset() if self._member_or_none is None else self._member_or_none.topics

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

    # Positions

    def seek(self, tp: tuple[str, int], offset: int, *, until: int | None = None) -> None:
        """Continue at this offset; whether it exists is checked by the next fetch.

        With `until`, fetching stops at that offset, with an EndOfPartition if enable.partition.eof is set.
        Batches are delivered whole, so the last records may be beyond it.
        """
        if offset < 0:
            raise ValueError(f"offset {offset} is negative; use seek_to_beginning() or seek_to_end()")
        if until is not None and until <= offset:
            raise ValueError(f"until={until} must be greater than offset={offset}")
        self._check().positions[TopicPartition(*tp)].until = until
        self.go_back(tp, offset)

    def go_back(self, tp: tuple[str, int], offset: int) -> None:
        """Continue at an offset, and keep the `until` of the last seek()."""
        core = self._check()
        one = core.positions[TopicPartition(*tp)]
        core.buffer.drop(one)
        one.move_to(offset)
        core.wake_all()

    def seek_to_beginning(self, *tps: tuple[str, int]) -> None:
        """Continue at the first record (default: all partitions)."""
        self._seek_by(EARLIEST, tps)

    def seek_to_end(self, *tps: tuple[str, int]) -> None:
        """Continue at the end, with new records only (default: all partitions)."""
        self._seek_by(LATEST, tps)

    def seek_to_time(self, time_ms: int, *tps: tuple[str, int]) -> None:
        """Continue at the first record with this timestamp or later, or at the end if there is none."""
        if time_ms < 0:
            raise ValueError(f"time {time_ms} is before 1970")
        self._seek_by(time_ms, tps)

    def _seek_by(self, reset_to: int, tps: tuple[tuple[str, int], ...]) -> None:
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            core.buffer.drop(one)
            one.until = None
            one.reset(reset_to)
        core.wake_all()

    def pause(self, *tps: tuple[str, int]) -> None:
        """Do not read partitions until resume(); fetched data is kept (default: all partitions)."""
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            if not one.paused:
                core.buffer.pause(one)
                one.paused = True
        core.wake_all()

    def resume(self, *tps: tuple[str, int]) -> None:
        """Read partitions again, also those that an error stopped (default: all partitions)."""
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            one.paused = False
            if one.error is not None:
                core.retry_stopped(one)
            core.buffer.resume(one)
        core.wake_all()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(one.tp for one in self._check().positions if one.paused)

    @property
    def stopped(self) -> Mapping[TopicPartition, ClientError]:
        """The partitions stopped by an error, which the reader has raised or will raise."""
        return {one.tp: one.error for one in self._check().positions if one.error is not None}

    async def position(self, tp: tuple[str, int]) -> int:
        """Return the offset of the next message; wait until it is known, at most default.api.timeout.ms."""
        deadline = Deadline(self.settings.default_api_timeout_ms)
        while True:
            core = self._check(leaving=True)
            # The partition may have been revoked in the meantime.
            one = core.positions[TopicPartition(*tp)]
            offset = core.buffer.position_of(one)[0]
            if offset is not None:
                return offset
            if one.error is not None:
                raise one.error
            await core.wait_for_positions(deadline, one.tp)

    def lag(self, tp: tuple[str, int]) -> int | None:
        """Return the number of offsets left to read, as of the last response; None before the first."""
        core = self._check()
        one = core.positions[TopicPartition(*tp)]
        position, _ = core.buffer.position_of(one)
        end = one.end_offset(committed=self.settings.read_committed)
        return None if position is None or end < 0 else max(0, end - position)

    @property
    def held_bytes(self) -> int:
        """Bytes fetched but not read yet, at most about queued.max.messages.kbytes."""
        return sum(self._check().buffer.buffered_bytes.values())

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
        cluster, deadline = self._check().cluster, Deadline(self.settings.default_api_timeout_ms)
        return await list_offsets(cluster, wanted, committed=self.settings.read_committed, deadline=deadline)

    # Committed offsets

    async def commit(self, offsets: Mapping[tuple[str, int], int | OffsetAndMetadata] | None = None) -> None:
        """Commit the positions after all delivered messages, or the given offsets.

        CommitFailed if a partition no longer belongs to this member. During a rebalance, wait for its end and
        try again.
        """
        member = self._member("commit()", leaving=True)
        wanted = self.delivered if offsets is None else offsets_given(offsets)
        if wanted:
            await member.commit(wanted)

    @property
    def delivered(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that commit() would commit: the position after the last message of each partition."""
        at = self._check(leaving=True).delivered()
        return {tp: OffsetAndMetadata(offset, "", epoch) for tp, (offset, epoch) in at.items()}

    def group_metadata(self) -> Committer:
        """Return group, generation and member id, which a transaction needs to commit offsets."""
        return self._member("group_metadata()", leaving=True).committer

    def calling(self) -> AbstractAsyncContextManager[None]:
        """Context for a task that works for a callback in another thread: calls do not wait for the group."""
        return self._check(leaving=True).barrier.calling()

    async def committed(
        self, tps: Iterable[tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offset of each partition, assigned or not; None if there is none."""
        member = self._member("committed()", leaving=True)
        wanted = [TopicPartition(*each) for each in tps]
        return await member.committed(wanted) if wanted else {}
