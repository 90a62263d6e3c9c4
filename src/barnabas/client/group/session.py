"""One subscription's life: carries out what the membership wants done, in order.

The membership (classic.py, modern.py) decides; here it is done, and told to it. Heartbeats (heartbeats.py)
and the look at topics (topic_watch.py) run beside this and may change what is to be done: see stir().
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.consumer.core import Core
from barnabas.client.deadline import Deadline
from barnabas.client.errors import ClientError, RequestTimedOut, is_retriable
from barnabas.client.group.assignors.assignor import ASSIGNORS
from barnabas.client.group.beginnings import Beginnings
from barnabas.client.group.callbacks import Callbacks
from barnabas.client.group.classic import ClassicMembership
from barnabas.client.group.commits import Commits
from barnabas.client.group.coordinator import JOIN_LANE, Coordinator, Pace
from barnabas.client.group.effects import (
    Divide,
    Effect,
    Fail,
    Give,
    Resolve,
    SendJoin,
    SendSync,
    Stay,
    TakeAway,
)
from barnabas.client.group.modern import ConsumerMembership
from barnabas.client.group.topics import Wanted, names_of, partition_counts, topics_of

logger = logging.getLogger(__name__)

# Kafka's: how much longer than the broker we wait for the end of a rebalance.
_JOIN_MORE_MS: Final = 5_000
# Metadata of what we are given is waited for so long; then it is read when it is known.
_METADATA_MS: Final = 5_000


class Session:
    """Made in a running loop. run() ends only by being cancelled."""

    def __init__(
        self,
        core: Core,
        coordinator: Coordinator,
        membership: ClassicMembership | ConsumerMembership,
        wanted: Wanted,
        callbacks: Callbacks,
    ) -> None:
        self.core = core
        self.coordinator = coordinator
        self.membership = membership
        self.wanted = wanted
        self.callbacks = callbacks
        # How many partitions the topics had that we shared out as the leader.
        self.shared_out: dict[str, int] = {}
        self.shared_topics: frozenset[str] = frozenset()
        # Set when the topics of a pattern are known for the first time.
        self.is_ready = asyncio.Event()
        self.stirred = asyncio.Event()
        self.progress = asyncio.Event()
        self._pace = Pace(core.cluster)

    def attach(
        self, commits: Commits, beginnings: Beginnings, start: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        """`start` is for tasks that end with the session."""
        self._commits = commits
        self._beginnings = beginnings
        self._start = start

    def stir(self) -> None:
        """Something has changed: look what is to be done, and wake who waits for the end of a rebalance."""
        self.stirred.set()
        self.progress.set()
        self.progress = asyncio.Event()

    async def settled(self, deadline: Deadline) -> None:
        """Wait for the end of a rebalance, or until it needs a reader to come back: that may be who asks."""
        while not self.membership.is_settled and (self.membership.is_joining or self.core.gate.is_empty):
            try:
                async with asyncio.timeout_at(deadline.at):
                    await self.progress.wait()
            except TimeoutError:
                raise RequestTimedOut("rebalance", "the group", deadline.timeout_ms) from None

    async def run(self) -> None:
        await self.is_ready.wait()
        while True:
            self.stirred.clear()
            await self._carry_out(self.membership.todo)
            self.progress.set()
            self.progress = asyncio.Event()

    async def _carry_out(self, effect: Effect) -> None:
        try:
            match effect:
                case TakeAway():
                    await self._take_away()
                case Give():
                    await self._give(effect)
                case SendJoin():
                    await self._join(effect)
                case Divide():
                    await self._divide(effect)
                case SendSync():
                    await self._sync(effect)
                case Resolve():
                    await self._resolve(effect)
                case Stay():
                    await self.stirred.wait()
                case Fail(error=error):
                    await self.fail_until_stirred(error)
        except ClientError as error:
            if not is_retriable(error):
                await self.fail_until_stirred(error)
            await self._pace.wait()

    async def fail_until_stirred(self, error: ClientError) -> None:
        """Whoever reads is told, until somebody subscribes again."""
        if self.core.failure is None:
            logger.warning("group membership failed error=%s", error)
        self.core.failure = error
        self.core.changed()
        while self.core.failure is not None:
            await self.progress.wait()

    # What comes and goes

    async def _take_away(self) -> None:
        async with self.core.gate.hold():
            if not self.membership.is_lost and self.core.settings.auto_commits:
                # Like a callback, this must not wait for the end of the rebalance that waits for it.
                async with self.core.gate.calling():
                    await self.commit_finished()
            # It may have been lost while we waited or committed, and then it is more.
            effect = self.membership.todo
            if isinstance(effect, TakeAway):
                await self.let_go(effect.tps, lost=self.membership.is_lost)
                self.membership.took(effect.tps)

    async def let_go(self, tps: frozenset[TopicPartition], *, lost: bool) -> None:
        """Tell the user, who may still commit if it is not lost; then read them no more."""
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
        self.core.changed()

    async def commit_finished(self, *, all_delivered: bool = True) -> None:
        """Commit what was dealt with, as well as it goes in the time there is for it."""
        settings = self.core.settings
        timeout_ms = min(settings.request_timeout_ms, settings.max_poll_interval_ms)
        at = self.core.delivered() if all_delivered else self.core.finished()
        await self._commits.commit_finished(at, timeout_ms=timeout_ms)

    async def _give(self, effect: Give) -> None:
        ids = await self._ids_of(effect.tps)
        async with self.core.gate.hold():
            if self.membership.todo != effect:
                # Lost, or another one is wanted by now.
                return
            logger.info("partitions assigned tps=%s", ",".join(map(str, sorted(effect.tps))))
            fresh = self.core.replace(ids)
            waiting = self._beginnings.wait_for(fresh)
            self.membership.gave(effect.tps)
            await self.callbacks.assigned(self.core, effect.added)
        self._pace.reset()
        self._start(self._beginnings.find(waiting))
        self.core.changed()

    async def _ids_of(self, tps: frozenset[TopicPartition]) -> dict[TopicPartition, Uuid]:
        """With the ids of their topics; zeros for one that is not known yet, which shows later."""
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
        answer = await self.coordinator.ask(effect.request, timeout_ms=timeout_ms, lane=JOIN_LANE)
        self.coordinator.check(answer.error_code)
        if membership.join_answered(answer):
            await self._pace.wait()

    async def _divide(self, effect: Divide) -> None:
        topics = topics_of(effect.members.values())
        counts = await partition_counts(self.core.cluster, topics)
        shares = ASSIGNORS[effect.assignor].assign(effect.members, counts)
        self.shared_out, self.shared_topics = counts, topics
        self._classic.divided(shares)

    async def _sync(self, effect: SendSync) -> None:
        membership = self._classic
        timeout_ms = max(
            self.core.settings.request_timeout_ms, self.core.settings.max_poll_interval_ms + _JOIN_MORE_MS
        )
        try:
            answer = await self.coordinator.ask(effect.request, timeout_ms=timeout_ms, lane=JOIN_LANE)
        except ClientError:
            membership.sync_lost()
            raise
        self.coordinator.check(answer.error_code)
        if membership.sync_answered(answer):
            await self._pace.wait()

    @property
    def _classic(self) -> ClassicMembership:
        assert isinstance(self.membership, ClassicMembership), "only the classic protocol wants this"
        return self.membership

    # And of the other one

    async def _resolve(self, effect: Resolve) -> None:
        assert isinstance(self.membership, ConsumerMembership)
        names = await names_of(self.core.cluster, effect.topic_ids)
        if names:
            self.membership.resolved(names)
        else:
            # Our broker has not heard of them yet, or they are gone: then the next target is without them.
            await self._pace.wait()
