"""Background tasks of a session: heartbeats, the max.poll.interval.ms check, and the topic watch."""

import asyncio
import logging
from contextlib import suppress

from barnabas.client.errors import ClientError, is_retriable
from barnabas.client.group.classic import ClassicMembership
from barnabas.client.group.coordinator import RetryDelay
from barnabas.client.group.modern import ConsumerMembership
from barnabas.client.group.modern import Phase as ModernPhase
from barnabas.client.group.session import Session
from barnabas.client.group.topics import matching_topics, partition_counts
from barnabas.protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)


async def send_classic_heartbeats(session: Session) -> None:
    """Send a heartbeat every heartbeat.interval.ms while the member has a generation."""
    membership, settings = session.membership, session.core.settings
    assert isinstance(membership, ClassicMembership)
    delay = RetryDelay(session.core.cluster)
    while True:
        await asyncio.sleep(settings.heartbeat_interval_ms / 1000)
        while (request := membership.heartbeat()) is not None:
            try:
                timeout_ms = min(settings.request_timeout_ms, settings.session_timeout_ms)
                answer = await session.coordinator.ask(request, timeout_ms=timeout_ms)
            except ClientError as error:
                if not is_retriable(error):
                    await session.fail_until_resubscribed(error)
                # The session timeout keeps running at the broker, so retry before the next interval.
                await delay.wait()
                continue
            delay.reset()
            session.coordinator.check(answer.error_code)
            membership.heartbeat_answered(request.generation_id, ErrorCode.of(answer.error_code))
            session.wake()
            break


async def send_consumer_heartbeats(session: Session) -> None:
    """Send a heartbeat at the broker's interval, and whenever the member's state changes."""
    membership = session.membership
    assert isinstance(membership, ConsumerMembership)
    delay = RetryDelay(session.core.cluster)
    await session.is_ready.wait()
    while True:
        await _wait_for_heartbeat(session, membership)
        if membership.phase not in (ModernPhase.JOINING, ModernPhase.MEMBER):
            continue
        sent = membership.next_heartbeat()
        try:
            answer = await session.coordinator.ask(sent)
        except ClientError as error:
            membership.heartbeat_failed()
            if not is_retriable(error):
                await session.fail_until_resubscribed(error)
            await delay.wait()
            membership.request_heartbeat()
            continue
        session.coordinator.check(answer.error_code)
        waits = membership.answered(sent, answer)
        session.wake()
        if waits:
            await delay.wait()
        else:
            delay.reset()


async def _wait_for_heartbeat(session: Session, membership: ConsumerMembership) -> None:
    """Wait until the interval is over or the member's state changes."""
    at_s = session.core.now_s() + membership.interval_ms / 1000
    while not membership.is_heartbeat_due:
        progress = session.progress
        with suppress(TimeoutError):
            async with asyncio.timeout_at(at_s if membership.interval_ms else None):
                await progress.wait()
        if membership.interval_ms and session.core.due_s() >= at_s:
            return


async def check_poll_interval(session: Session) -> None:
    """Leave the group if a reader does not poll within max.poll.interval.ms."""
    core, limit_s = session.core, session.core.settings.max_poll_interval_ms / 1000
    while True:
        now_s = core.now_s()
        next_s = now_s + limit_s
        for reader in core.barrier.readers:
            activity = reader.activity()
            if reader.last_activity != activity or reader.in_poll:
                reader.last_activity, reader.last_activity_s = activity, now_s
            elif not reader.expired and now_s - reader.last_activity_s >= limit_s:
                reader.expired = reader.must_poll = True
                await _leave(session)
            next_s = min(next_s, max(reader.last_activity_s + limit_s, now_s + limit_s / 10))
        await asyncio.sleep(min(next_s - now_s, limit_s / 10))


async def _leave(session: Session) -> None:
    membership = session.membership
    logger.warning(
        "left the group: no poll within max.poll.interval.ms=%d; rejoins at the next poll",
        session.core.settings.max_poll_interval_ms,
    )
    reason = "no poll within max.poll.interval.ms"
    request = membership.leave(reason)
    membership.left()
    session.wake()
    if request is not None:
        await session.coordinator.send_leave(request)


class TopicWatch:
    """Watches the subscribed topics, and lets missing ones be created: see topics.py."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cluster = session.core.cluster
        self._settings = session.core.settings
        self._wakeup = asyncio.Event()
        self._delay = RetryDelay(self._cluster)

    def wake(self) -> None:
        """The subscription has changed."""
        self._wakeup.set()

    async def run(self) -> None:
        while True:
            self._wakeup.clear()
            try:
                wait_ms = await self._check_topics()
                self._delay.reset()
            except ClientError as error:
                if not is_retriable(error):
                    self._session.core.report_error(error)
                logger.info("topic lookup failed error=%s", error)
                await self._delay.wait()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wakeup.wait()

    async def _check_topics(self) -> float:
        """Look up the topics once, and return the wait until the next time."""
        session, settings = self._session, self._settings
        missing = False
        if session.wanted.pattern is not None:
            # In the consumer protocol the broker evaluates the pattern.
            if isinstance(session.membership, ClassicMembership):
                topics = await matching_topics(
                    self._cluster, session.wanted, exclude_internal=settings.exclude_internal_topics
                )
                session.membership.follow(topics)
        else:
            create = settings.allow_auto_create_topics
            names = session.wanted.names
            missing = len(await partition_counts(self._cluster, names, create=create)) < len(names)
        session.is_ready.set()
        if session.membership.is_leader:
            await self._rejoin_if_changed()
        session.wake()
        # Look for a missing topic more often than for new partitions.
        return settings.retry_backoff_max_ms if missing else settings.metadata_max_age_ms

    async def _rejoin_if_changed(self) -> None:
        """As the leader, start a rebalance if topics or partition counts changed since the assignment."""
        session, membership = self._session, self._session.membership
        assert isinstance(membership, ClassicMembership), "in the consumer protocol the broker watches topics"
        before = session.assigned_counts
        now = await partition_counts(self._cluster, session.assigned_topics)
        # A new assignment or leader may have come in the meantime.
        if membership.is_leader and session.assigned_counts is before and now != before:
            membership.rejoin("topics or partitions changed")
