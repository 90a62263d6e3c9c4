"""Automatic creation of topics that clients request and that do not exist yet.

The client does not wait: it gets an unknown-topic error, and finds the topic when it retries.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from barnabas.base.tasks import Tasks
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.topic_rows import INTERNAL_TOPICS

logger = logging.getLogger(__name__)

# Topics that may be in creation at once. Others are started when their clients ask again.
IN_FLIGHT_MAX: Final = 1_000


class AutoTopics:
    """Remembers the names in creation, so that repeated requests do not create them again."""

    def __init__(self) -> None:
        self.in_flight: set[str] = set()

    def create(
        self,
        names: Iterable[str],
        *,
        settings: BrokerSettings,
        ask: Callable[[object], Awaitable[object]],
        tasks: Tasks,
    ) -> None:
        """Start to create the topics that are not in creation yet. The names must be valid.

        Internal topics are left to their coordinators, because they need special settings.
        """
        chosen = []
        for name in names:
            if len(self.in_flight) >= IN_FLIGHT_MAX:
                break
            if name not in self.in_flight and name not in INTERNAL_TOPICS:
                self.in_flight.add(name)
                chosen.append(name)
        if chosen:
            tasks.start(self._create(chosen, settings, ask))

    async def _create(
        self, names: list[str], settings: BrokerSettings, ask: Callable[[object], Awaitable[object]]
    ) -> None:
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=settings.num_partitions,
                replication_factor=settings.default_replication_factor,
            )
            for name in names
        ]
        try:
            answer = await ask(CreateTopicsRequest(topics=topics, timeout_ms=settings.request_timeout_ms))
        finally:
            self.in_flight.difference_update(names)
        assert isinstance(answer, CreateTopicsResponse), f"unexpected response to CreateTopics: {answer!r}"
        for topic in answer.topics:
            # Another broker or client may have created the topic first.
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                logger.info(
                    "automatic topic creation refused topic=%s error=%s message=%s",
                    topic.name,
                    ErrorCode(topic.error_code).name,
                    topic.error_message,
                )
