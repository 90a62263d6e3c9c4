"""Read as a member of a group, which assigns partitions and stores committed offsets.

Without a group, Assignment is used instead; both have the same interface.
"""

import re
import time
from typing import TYPE_CHECKING, Final

from barnabas.cli.tool import ToolFailed, note

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.group.session import Callback

# A member without partitions reports it after this time. A new group waits 3 s for more members.
PATIENCE_S: Final = 6.0
# After the hint nothing is due; an idle reader wakes once an hour.
_HOUR_MS: Final = 3_600_000.0


def compiled(include: str | None) -> "re.Pattern[str] | None":
    """Compile the pattern of --include. ToolFailed if it is invalid."""
    try:
        return None if include is None else re.compile(include)
    except re.error as wrong:
        raise ToolFailed(f"--include {include} is not a valid regular expression: {wrong}") from None


async def subscribe(
    consumer: "Consumer",
    *,
    topic: str | None,
    include: str | None,
    on_assigned: "Callback | None" = None,
    on_revoked: "Callback | None" = None,
) -> None:
    """Subscribe to one topic, or to all topics whose full name matches `include`."""
    try:
        await consumer.subscribe(
            () if topic is None else [topic],
            pattern=compiled(include),
            on_assigned=on_assigned,
            on_revoked=on_revoked,
        )
    except ValueError as wrong:
        raise ToolFailed(str(wrong)) from None


class Subscription:
    """Subscribes to one topic, or to all topics whose full name matches `include`."""

    def __init__(self, consumer: "Consumer", *, topic: str | None, include: str | None) -> None:
        self._consumer = consumer
        self._topic = topic
        self._include = include
        self._hint_at: float | None = None

    async def begin(self) -> None:
        """Subscribe. The first batch() waits for the assignment as well as for records."""
        await subscribe(self._consumer, topic=self._topic, include=self._include)
        self._hint_at = time.monotonic() + PATIENCE_S

    @property
    def due_ms(self) -> float:
        """Milliseconds until look_again() is due."""
        return _HOUR_MS if self._hint_at is None else max(0.0, self._hint_at - time.monotonic()) * 1000

    async def look_again(self) -> None:
        """Print once that the group has assigned no partition."""
        if self.due_ms > 0:
            return
        self._hint_at = None
        if not self._consumer.assignment:
            group = self._consumer.settings.group_id
            note(f"group {group} has not assigned a partition to this consumer yet; waiting for one")
