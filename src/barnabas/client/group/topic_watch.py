"""The task that watches the subscribed topics, and lets missing ones be created: see topics.py."""

import asyncio
import logging
from contextlib import suppress

from barnabas.client.errors import ClientError, is_retriable
from barnabas.client.group.classic import ClassicMembership
from barnabas.client.group.coordinator import Pace
from barnabas.client.group.session import Session
from barnabas.client.group.topics import matching_topics, partition_counts

logger = logging.getLogger(__name__)


class TopicWatch:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._cluster = session.core.cluster
        self._settings = session.core.settings
        self._poked = asyncio.Event()
        self._pace = Pace(self._cluster)

    def poke(self) -> None:
        """The subscription has changed."""
        self._poked.set()

    async def run(self) -> None:
        while True:
            self._poked.clear()
            try:
                wait_ms = await self._look()
                self._pace.reset()
            except ClientError as error:
                if not is_retriable(error):
                    self._session.core.complain(error)
                logger.info("topic lookup failed error=%s", error)
                await self._pace.wait()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._poked.wait()

    async def _look(self) -> float:
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
            await self._compare()
        session.stir()
        # Look for a missing topic more often than for new partitions.
        return settings.retry_backoff_max_ms if missing else settings.metadata_max_age_ms

    async def _compare(self) -> None:
        """As the leader, start a rebalance if topics or partition counts changed since the assignment."""
        session, membership = self._session, self._session.membership
        assert isinstance(membership, ClassicMembership), "in the consumer protocol the broker watches topics"
        before = session.shared_out
        now = await partition_counts(self._cluster, session.shared_topics)
        # A new assignment or leader may have come in the meantime.
        if membership.is_leader and session.shared_out is before and now != before:
            membership.rejoin("topics or partitions changed")
