"""Drives the membership of one subscription: carries out its effects, in order.

The membership (classic.py, modern.py) decides; the session acts and reports the results. Heartbeats
and the topic watch (session_tasks.py) run concurrently and may change the next effect: see wake().
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.client.consumer.core import Core
from barnabas.client.deadline import Deadline
from barnabas.client.errors import ClientError, RequestTimedOut, is_retriable
from barnabas.client.group.assignors import ASSIGNORS
from barnabas.client.group.classic import ClassicMembership
from barnabas.client.group.committed_offsets import Commits, StartPositions
from barnabas.client.group.coordinator import JOIN_CHANNEL, Coordinator, RetryDelay
from barnabas.client.group.effects import (
    Assign,
    ComputeAssignment,
    Effect,
    Fail,
    ResolveTopicIds,
    Revoke,
    SendJoin,
    SendSync,
    Wait,
)
from barnabas.client.group.errors import CallbackFailed
from barnabas.client.group.modern import ConsumerMembership
from barnabas.client.group.topics import TopicSelection, names_of, partition_counts, topics_of

logger = logging.getLogger(__name__)

# Sync or async.
Callback: TypeAlias = Callable[[frozenset[TopicPartition]], Awaitable[None] | None]

# Kafka's margin for JoinGroup and SyncGroup beyond the rebalance timeout.
_JOIN_MORE_MS: Final = 5_000
# Longest wait for metadata of assigned topics; later the fetch waits for it.
_METADATA_MS: Final = 5_000


@value(kw_only=True)
class Callbacks:
    """Rebalance callbacks of the user."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    # Without on_lost, lost partitions are passed to on_revoked, as in Kafka's consumer.
    on_lost: Callback | None = None

    async def assigned(self, core: Core, tps: frozenset[TopicPartition]) -> None:
        await _call(core, "on_assigned", self.on_assigned, tps)

    async def revoked(self, core: Core, tps: frozenset[TopicPartition]) -> None:
        await _call(core, "on_revoked", self.on_revoked, tps)

    async def lost(self, core: Core, tps: frozenset[TopicPartition]) -> None:
        if self.on_lost is None:
            await self.revoked(core, tps)
        else:
            await _call(core, "on_lost", self.on_lost, tps)


async def _call(core: Core, which: str, callback: Callback | None, tps: frozenset[TopicPartition]) -> None:
    if callback is None:
        return
    try:
        async with core.barrier.calling():
            result = callback(tps)
            if inspect.isawaitable(result):
                await result
    except Exception as error:
        # Errors of user code must not block the group.
        logger.warning("rebalance callback failed callback=%s error=%r", which, error)
        core.report_error(CallbackFailed(which, error))


class Session:
    """Create it in a running loop. run() ends only when cancelled."""

    def __init__(
        self,
        core: Core,
        coordinator: Coordinator,
        membership: ClassicMembership | ConsumerMembership,
        wanted: TopicSelection,
        callbacks: Callbacks,
    ) -> None:
        self.core = core
        self.coordinator = coordinator
        self.membership = membership
        self.wanted = wanted
        self.callbacks = callbacks
        # Partition counts and topics of the last assignment computed as the leader.
        self.assigned_counts: dict[str, int] = {}
        self.assigned_topics: frozenset[str] = frozenset()
        # Set once the topics of a pattern are known.
        self.is_ready = asyncio.Event()
        self.woken = asyncio.Event()
        self.progress = asyncio.Event()
        self._delay = RetryDelay(core.cluster)

    def attach(
        self,
        commits: Commits,
        start_positions: StartPositions,
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """`start` starts tasks that end with the session."""
        self._commits = commits
        self._start_positions = start_positions
        self._start = start

    def wake(self) -> None:
        """Wake run() and waiters for the end of a rebalance, because the membership changed."""
        self.woken.set()
        self.progress.set()
        self.progress = asyncio.Event()

    async def settled(self, deadline: Deadline) -> None:
        """Wait for the end of a rebalance, or until it waits for a reader, which may be the caller."""
        while not self.membership.is_settled and (self.membership.is_joining or self.core.barrier.is_ready):
            try:
                async with asyncio.timeout_at(deadline.at):
                    await self.progress.wait()
            except TimeoutError:
                raise RequestTimedOut("rebalance", "the group", deadline.timeout_ms) from None

    async def run(self) -> None:
        await self.is_ready.wait()
        while True:
            self.woken.clear()
            await self._carry_out(self.membership.next_effect)
            self.progress.set()
            self.progress = asyncio.Event()

    async def _carry_out(self, effect: Effect) -> None:
        try:
            match effect:
                case Revoke():
                    await self._revoke()
                case Assign():
                    await self._assign(effect)
                case SendJoin():
                    await self._join(effect)
                case ComputeAssignment():
                    await self._compute_assignment(effect)
                case SendSync():
                    await self._sync(effect)
                case ResolveTopicIds():
                    await self._resolve_topic_ids(effect)
                case Wait():
                    await self.woken.wait()
                case Fail(error=error):
                    await self.fail_until_resubscribed(error)
        except ClientError as error:
            if not is_retriable(error):
                await self.fail_until_resubscribed(error)
            await self._delay.wait()

    async def fail_until_resubscribed(self, error: ClientError) -> None:
        """Make reading raise the error until the user subscribes again."""
        if self.core.failure is None:
            logger.warning("group membership failed error=%s", error)
        self.core.failure = error
        self.core.wake_all()
        while self.core.failure is not None:
            await self.progress.wait()

    # Revocation and assignment

    async def _revoke(self) -> None:
        async with self.core.barrier.hold():
            if not self.membership.is_lost and self.core.settings.auto_commits:
                # Like a callback, the commit must not wait for the end of the rebalance: that would deadlock.
                async with self.core.barrier.calling():
                    await self.commit_finished()
            # The membership may have been lost in the meantime: then more partitions are dropped.
            effect = self.membership.next_effect
            if isinstance(effect, Revoke):
                await self.drop_partitions(effect.tps, lost=self.membership.is_lost)
                self.membership.partitions_revoked(effect.tps)

    async def drop_partitions(self, tps: frozenset[TopicPartition], *, lost: bool) -> None:
        """Call on_revoked (where the user may still commit) or on_lost, then drop the partitions."""
        if not tps:
            return
        logger.info("partitions %s tps=%s", "lost" if lost else "revoked", ",".join(map(str, sorted(tps))))
        if lost:
            await self.callbacks.lost(self.core, tps)
        else:
            await self.callbacks.revoked(self.core, tps)
        self._commits.forget(tps)
        kept = {one.tp: one.topic_id for one in self.core.positions if one.tp not in tps}
        self.core.replace(kept)
        self.core.wake_all()

    async def commit_finished(self, *, all_delivered: bool = True) -> None:
        """Commit processed messages, best effort and within the rebalance timeout."""
        settings = self.core.settings
        timeout_ms = min(settings.request_timeout_ms, settings.max_poll_interval_ms)
        at = self.core.delivered() if all_delivered else self.core.finished()
        await self._commits.commit_finished(at, timeout_ms=timeout_ms)

    async def _assign(self, effect: Assign) -> None:
        ids = await self._ids_of(effect.tps)
        async with self.core.barrier.hold():
            if self.membership.next_effect != effect:
                # The membership was lost or its target changed.
                return
            logger.info("partitions assigned tps=%s", ",".join(map(str, sorted(effect.tps))))
            fresh = self.core.replace(ids)
            waiting = self._start_positions.hold_back(fresh)
            self.membership.partitions_assigned(effect.tps)
            await self.callbacks.assigned(self.core, effect.added)
        self._delay.reset()
        self._start(self._start_positions.find(waiting))
        self.core.wake_all()

    async def _ids_of(self, tps: frozenset[TopicPartition]) -> dict[TopicPartition, Uuid]:
        """Return the topic ids; zero for a topic without metadata, which check_topic_id() fills in later."""
        topics = self.core.cluster.metadata.topics
        unknown = {tp.topic for tp in tps} - topics.keys()
        deadline = Deadline(_METADATA_MS)
        for name in sorted(unknown):
            try:
                await self.core.cluster.topic(name, deadline)
            except ClientError as error:
                logger.info("metadata of assigned topic is not available topic=%s error=%s", name, error)
        topics = self.core.cluster.metadata.topics
        return {tp: topics[tp.topic].topic_id if tp.topic in topics else ZERO_UUID for tp in sorted(tps)}

    # Requests of the classic protocol

    async def _join(self, effect: SendJoin) -> None:
        membership = self._classic
        timeout_ms = max(
            self.core.settings.request_timeout_ms, self.core.settings.max_poll_interval_ms + _JOIN_MORE_MS
        )
        answer = await self.coordinator.ask(effect.request, timeout_ms=timeout_ms, channel=JOIN_CHANNEL)
        self.coordinator.check(answer.error_code)
        if membership.join_answered(answer):
            await self._delay.wait()

    async def _compute_assignment(self, effect: ComputeAssignment) -> None:
        topics = topics_of(effect.members.values())
        counts = await partition_counts(self.core.cluster, topics)
        shares = ASSIGNORS[effect.assignor].assign(effect.members, counts)
        self.assigned_counts, self.assigned_topics = counts, topics
        self._classic.assignment_computed(shares)

    async def _sync(self, effect: SendSync) -> None:
        membership = self._classic
        timeout_ms = max(
            self.core.settings.request_timeout_ms, self.core.settings.max_poll_interval_ms + _JOIN_MORE_MS
        )
        try:
            answer = await self.coordinator.ask(effect.request, timeout_ms=timeout_ms, channel=JOIN_CHANNEL)
        except ClientError:
            membership.sync_lost()
            raise
        self.coordinator.check(answer.error_code)
        if membership.sync_answered(answer):
            await self._delay.wait()

    @property
    def _classic(self) -> ClassicMembership:
        assert isinstance(self.membership, ClassicMembership), "the effect belongs to the classic protocol"
        return self.membership

    # Requests of the consumer protocol

    async def _resolve_topic_ids(self, effect: ResolveTopicIds) -> None:
        assert isinstance(self.membership, ConsumerMembership)
        names = await names_of(self.core.cluster, effect.topic_ids)
        if names:
            self.membership.topic_ids_resolved(names)
        else:
            # The broker does not know the ids yet, or the topics are deleted and the next target omits them.
            await self._delay.wait()
