"""A consumer's part in its group: subscribing, committing, and leaving.

Without a subscription it is not a member, but it can still fetch and commit offsets of the group.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from barnabas.base.ids import TopicPartition, Uuid, format_uuid
from barnabas.base.tasks import Tasks
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.positions import PartitionState
from barnabas.client.consumer.rebalance_barrier import ReaderState
from barnabas.client.deadline import Deadline, retry
from barnabas.client.errors import Refused
from barnabas.client.group.classic import ClassicMembership
from barnabas.client.group.committed_offsets import Commits, StartPositions
from barnabas.client.group.coordinator import Coordinator
from barnabas.client.group.modern import ConsumerMembership
from barnabas.client.group.offsets import Committer, OffsetAndMetadata, fetch_committed
from barnabas.client.group.session import Callbacks, Session
from barnabas.client.group.session_tasks import (
    TopicWatch,
    check_poll_interval,
    send_classic_heartbeats,
    send_consumer_heartbeats,
)
from barnabas.client.group.settings import CONSUMER
from barnabas.client.group.subscription import NO_GENERATION
from barnabas.client.group.topics import TopicSelection, re2_of

logger = logging.getLogger(__name__)


class Member:
    """Create it in a running loop, if group.id is set."""

    def __init__(self, core: Core, on_crash: Callable[[BaseException], None]) -> None:
        group_id = core.settings.group_id
        assert group_id is not None, "group.id is not set"
        self.group_id = group_id
        self._core = core
        self._settings = core.settings
        self._on_crash = on_crash
        self._coordinator = Coordinator(core.cluster, group_id)
        self._commits = Commits(core, self._coordinator, self)
        self._start_positions = StartPositions(core, self._coordinator, lambda: self._reader)
        # Tasks that live as long as the consumer, and as long as the subscription.
        self._tasks = Tasks(on_crash)
        self._session_tasks = Tasks(on_crash)
        self._session: Session | None = None
        # The ending session: the last callback may still commit for it.
        self._leaving: Session | None = None
        self._watch: TopicWatch | None = None
        self._committing: dict[ReaderState, asyncio.Task[None]] = {}
        core.barrier.on_commit_due = self._commit_soon

    def start(self) -> None:
        if self._settings.auto_commits:
            self._tasks.start(self._commit_by_interval())

    async def close(self, *, finished: bool) -> None:
        """Auto-commit, leave the group, and stop. `finished`: the last delivered messages are processed."""
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                await self._end_session("the consumer is closed", finished=finished)
        except TimeoutError:
            logger.warning("leave request not answered group=%s", self.group_id)
        finally:
            await self._session_tasks.close()
            await self._tasks.close()
            await self._coordinator.close()

    # Subscribing

    @property
    def wanted(self) -> TopicSelection | None:
        return None if self._session is None else self._session.wanted

    @property
    def topics(self) -> frozenset[str]:
        """The subscribed topics; for a pattern, its matches as far as this member knows."""
        session = self._session
        if session is None:
            return frozenset()
        if session.wanted.pattern is None:
            return session.wanted.names
        return session.membership.topics or frozenset(tp.topic for tp in session.membership.owned)

    def subscribe(self, wanted: TopicSelection, callbacks: Callbacks) -> None:
        """Join the group, or change the subscription."""
        regex = None
        if wanted.pattern is not None and self._settings.group_protocol == CONSUMER:
            regex = re2_of(wanted.pattern)
        self._core.failure = None
        self._core.is_subscribed = True
        if self._session is None:
            self._start_session(wanted, callbacks)
        session = self._session
        assert session is not None
        session.wanted, session.callbacks = wanted, callbacks
        if isinstance(session.membership, ConsumerMembership):
            session.membership.subscribe(wanted.names, regex)
            session.is_ready.set()
        elif wanted.pattern is None:
            session.membership.subscribe(wanted.names)
            session.is_ready.set()
        else:
            session.membership.subscribe(session.membership.topics)
        if self._watch is not None:
            self._watch.wake()
        session.wake()

    def _start_session(self, wanted: TopicSelection, callbacks: Callbacks) -> None:
        rack = self._settings.client_rack or None
        membership: ClassicMembership | ConsumerMembership
        if self._settings.group_protocol == CONSUMER:
            member_id = format_uuid(Uuid(self._core.cluster.ports.rng.randbytes(16)))
            membership = ConsumerMembership(self._settings, self.group_id, rack, member_id)
        else:
            membership = ClassicMembership(self._settings, self.group_id, rack)
        session = self._session = Session(self._core, self._coordinator, membership, wanted, callbacks)
        session.attach(self._commits, self._start_positions, self._session_tasks.start)
        now_s = self._core.now_s()
        for reader in self._core.barrier.readers:
            reader.last_activity, reader.last_activity_s, reader.expired = reader.activity(), now_s, False
        self._session_tasks.start(session.run())
        self._session_tasks.start(check_poll_interval(session))
        is_classic = isinstance(membership, ClassicMembership)
        self._session_tasks.start(
            send_classic_heartbeats(session) if is_classic else send_consumer_heartbeats(session)
        )
        self._watch = TopicWatch(session)
        self._session_tasks.start(self._watch.run())

    async def unsubscribe(self) -> None:
        """Revoke all partitions and leave the group."""
        await self._end_session("the subscription ended", finished=False)

    async def _end_session(self, reason: str, *, finished: bool) -> None:
        session, self._session, self._watch = self._session, None, None
        if session is None:
            if self._settings.auto_commits:
                await self._commit_rest(finished=finished)
            return
        self._leaving = session
        try:
            # Stop the session first: it could change the owned partitions.
            await self._session_tasks.close()
            lost = session.membership.is_lost
            if self._settings.auto_commits and not lost:
                await self._commit_rest(finished=finished)
            await session.drop_partitions(session.membership.owned, lost=lost)
        finally:
            self._leaving = None
            self._core.replace({})
            self._core.is_subscribed, self._core.failure = False, None
            self._core.wake_all()
        request = session.membership.leave(reason)
        if request is not None and not lost:
            await self._coordinator.send_leave(request)

    # Committing

    @property
    def _non_member(self) -> Committer:
        return Committer(self.group_id, NO_GENERATION, "", None)

    @property
    def committer(self) -> Committer:
        session = self._session or self._leaving
        instance_id = self._settings.group_instance_id
        if session is None:
            return self._non_member
        return Committer(self.group_id, *session.membership.identity, instance_id)

    @property
    def _reader(self) -> Committer:
        """The identity for OffsetFetch, which is fenced in the consumer protocol, too."""
        session = self._session
        if session is not None and isinstance(session.membership, ConsumerMembership):
            return self.committer
        return self._non_member

    @property
    def losses(self) -> int:
        session = self._session or self._leaving
        return -1 if session is None else session.membership.losses

    def has(self, tp: TopicPartition) -> bool:
        return tp in self._core.positions

    async def is_member(self, deadline: Deadline) -> bool:
        """Whether it can commit: as a member, after waiting for a join, or without a subscription."""
        session = self._session or self._leaving
        if session is None:
            return True
        if session.membership.is_lost or self.committer.generation <= 0:
            await self.settled(deadline)
        return not session.membership.is_lost and self.committer.generation > 0

    async def settled(self, deadline: Deadline) -> None:
        """Wait for the end of a rebalance, unless called in a callback that the rebalance waits for."""
        if self._session is not None and not self._core.barrier.is_in_callback:
            await self._session.settled(deadline)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self._core.failure is not None:
            raise self._core.failure
        await self._commits.commit(offsets)

    async def committed(
        self, tps: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; retry until the deadline."""
        wanted = frozenset(tps)

        async def attempt() -> dict[TopicPartition, OffsetAndMetadata | None]:
            stable = self._settings.read_committed
            found = await fetch_committed(self._coordinator, self._non_member, wanted, require_stable=stable)
            for one in found.values():
                if isinstance(one, Refused):
                    raise one
            return {tp: one for tp, one in found.items() if not isinstance(one, Refused)}

        deadline = Deadline(self._settings.default_api_timeout_ms)
        return await retry(attempt, deadline=deadline, backoff=self._core.backoff, what="committed offsets")

    def start_at_committed(self, fresh: list[PartitionState]) -> None:
        """Start manually assigned partitions at the group's committed offsets, too."""
        waiting = self._start_positions.hold_back(fresh)
        if waiting:
            self._tasks.start(self._start_positions.find(waiting))

    async def _commit_by_interval(self) -> None:
        while True:
            await asyncio.sleep(max(1, self._settings.auto_commit_interval_ms) / 1000)
            self._core.barrier.request_commits()

    def _commit_soon(self, reader: ReaderState) -> None:
        session, before = self._session, self._committing.get(reader)
        if (session is not None and session.membership.is_lost) or (before is not None and not before.done()):
            # One commit per reader at a time; the next interval commits the rest.
            return
        at = self._core.delivered(reader)
        if at:
            timeout_ms = self._settings.request_timeout_ms
            work = self._commits.commit_finished(at, timeout_ms=timeout_ms)
            self._committing[reader] = self._tasks.start(work)

    async def _commit_rest(self, *, finished: bool) -> None:
        at = self._core.delivered() if finished else self._core.finished()
        async with self._core.barrier.calling():
            await self._commits.commit_finished(at, timeout_ms=self._settings.request_timeout_ms)
