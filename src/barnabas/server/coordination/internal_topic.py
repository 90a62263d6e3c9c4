"""Internal topics, created when a client first asks for a coordinator that needs them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.base.tasks import Tasks
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.coordination.transactions import TRANSACTION_TOPIC
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings

logger = logging.getLogger(__name__)

# How long a FindCoordinator request waits for the topic. After that the client must retry.
WAIT_MAX_S: Final = 5.0


class InternalTopic:
    """Concurrent calls of create() share one request to the controller. `describe` configures the topic."""

    def __init__(
        self,
        ask: Callable[[object], Awaitable[object]],
        settings: DynamicSettings,
        tasks: Tasks,
        describe: Callable[[BrokerSettings], CreatableTopic],
    ) -> None:
        self._ask = ask
        self._describe = describe
        self._settings = settings
        self._tasks = tasks
        self._creating: asyncio.Task[None] | None = None
        self._complaint = ""

    async def create(self) -> None:
        """Try to create the topic. The metadata image shows whether it exists."""
        if self._creating is None or self._creating.done():
            self._creating = self._tasks.start(self._create())
        await asyncio.wait((self._creating,), timeout=WAIT_MAX_S)

    async def _create(self) -> None:
        settings = self._settings.now
        wanted = self._describe(settings)
        answer = await self._ask(CreateTopicsRequest(topics=[wanted], timeout_ms=settings.request_timeout_ms))
        assert isinstance(answer, CreateTopicsResponse), f"unexpected response to CreateTopics: {answer!r}"
        (topic,) = answer.topics
        code = ErrorCode.of(topic.error_code)
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        complaint = f"{code.name}: {topic.error_message}"
        if complaint != self._complaint:
            # Clients retry every 100 ms: log the same error only once.
            self._complaint = complaint
            logger.warning("topic creation failed topic=%s error=%s", wanted.name, complaint)


def transaction_topic(settings: BrokerSettings) -> CreatableTopic:
    """__transaction_state."""
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(settings.transaction_state_log_min_isr),
        "segment.bytes": str(settings.transaction_state_log_segment_bytes),
        "unclean.leader.election.enable": "false",
    }
    return CreatableTopic(
        name=TRANSACTION_TOPIC,
        num_partitions=settings.transaction_state_log_num_partitions,
        replication_factor=settings.transaction_state_log_replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )


def offsets_topic(settings: BrokerSettings) -> CreatableTopic:
    """__consumer_offsets."""
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(settings.offsets_topic_segment_bytes),
    }
    return CreatableTopic(
        name=OFFSETS_TOPIC,
        num_partitions=settings.offsets_topic_num_partitions,
        replication_factor=settings.offsets_topic_replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
