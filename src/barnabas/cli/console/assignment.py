"""Assign partitions without a group: those of one topic, or of all topics whose names match.

Kafka's tools use a group with a random name for this. Here the consumer is assigned all existing partitions,
and new ones are discovered as often as a group member would (metadata.max.age.ms). A partition that appears
later is read from its first record, because all of its records are new.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.settings import settings_of
from barnabas.cli.tool import note
from barnabas.client.errors import ClientError, UnknownTopic, is_retriable

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer

# How often a topic that does not exist yet is looked up.
LOOK_AGAIN_S: Final = 1.0
# After this time a note on stderr explains the wait.
PATIENCE_S: Final = 3.0


class Assignment:
    """Assigns one topic, one partition, or all topics whose full name matches `include`."""

    def __init__(
        self,
        consumer: "Consumer",
        settings: Mapping[str, object],
        *,
        topic: str | None,
        include: str | None = None,
        partition: int | None = None,
    ) -> None:
        assert (topic is None) != (include is None), "either a topic or a pattern"
        self._consumer = consumer
        self._settings = settings
        self._topic = topic
        self._include = None if include is None else re.compile(include)
        self._partition = partition
        self._look_at = 0.0

    async def begin(self) -> None:
        """Wait for a matching partition and assign all of them. The caller sets the timeout."""
        loop = asyncio.get_running_loop()
        hint = loop.call_later(PATIENCE_S, note, f"{self._shown()} does not exist yet; waiting for it")
        try:
            while not await self._assign():
                await asyncio.sleep(LOOK_AGAIN_S)
        finally:
            hint.cancel()
        self._set_due()

    @property
    def due_ms(self) -> float:
        """Milliseconds until look_again() is due."""
        return max(0.0, self._look_at - time.monotonic()) * 1000

    async def look_again(self) -> None:
        """Assign new partitions, if a look-up is due."""
        if self.due_ms > 0 or self._partition is not None:
            return
        before = self._consumer.assignment
        try:
            await self._assign()
        except ClientError as error:
            # Assigned partitions are still read; new ones are looked up on the next call.
            if not is_retriable(error):
                raise
        self._set_due()
        new = self._consumer.assignment - before
        if new:
            self._consumer.seek_to_beginning(*new)

    def _set_due(self) -> None:
        self._look_at = time.monotonic() + self._consumer.settings.metadata_max_age_ms / 1000

    async def _assign(self) -> bool:
        """Assign the existing partitions; return whether there are any."""
        try:
            if self._topic is None:
                names = await self._matching()
                return bool(names) and bool(await self._consumer.assign_topic(*names))
            if self._partition is not None:
                await self._consumer.assign([TopicPartition(self._topic, self._partition)])
                return True
            return bool(await self._consumer.assign_topic(self._topic))
        except UnknownTopic:
            return False

    async def _matching(self) -> list[str]:
        """Return the matching topics. Internal topics are excluded as for the pattern of a group."""
        from barnabas.client.admin.admin import Admin
        from barnabas.client.settings import AdminSettings

        known = settings_of(AdminSettings)
        settings = {name: value for name, value in self._settings.items() if name in known}
        async with Admin(settings) as admin:
            topics = await admin.list_topics(internal=not self._consumer.settings.exclude_internal_topics)
        assert self._include is not None, "there is a pattern"
        return [name for name in topics if self._include.fullmatch(name)]

    def _shown(self) -> str:
        if self._include is not None:
            return f"a topic that matches {self._include.pattern}"
        return f"topic {self._topic}" if self._partition is None else f"{self._topic}-{self._partition}"
