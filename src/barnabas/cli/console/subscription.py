"""Reading as a member of a group: the group says which partitions, and remembers how far they were read.

Without a group it is Assignment that says what is read; to whoever reads, both look alike.
"""

import re
import time
from typing import TYPE_CHECKING, Final

from barnabas.cli.tool import ToolFailed, note

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.group.callbacks import Callback

# After so long a member that has nothing to read says so. A new group waits three seconds for more members.
PATIENCE_S: Final = 6.0
# Nothing is ever due here; a reader that comes back with nothing once an hour harms nobody.
_HOUR_MS: Final = 3_600_000.0


def compiled(include: str | None) -> "re.Pattern[str] | None":
    """The pattern of --include. ToolFailed if it is none."""
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
    """To one topic, or to all whose whole names `include` matches."""
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
    """Of one topic, or of every topic whose whole name `include` matches."""

    def __init__(self, consumer: "Consumer", *, topic: str | None, include: str | None) -> None:
        self._consumer = consumer
        self._topic = topic
        self._include = include
        self._hint_at: float | None = None

    async def begin(self) -> None:
        """Ask to become a member. What is waited for then is the same as for records: the next batch."""
        await subscribe(self._consumer, topic=self._topic, include=self._include)
        self._hint_at = time.monotonic() + PATIENCE_S

    @property
    def due_ms(self) -> float:
        """In how long it is time to look again."""
        return _HOUR_MS if self._hint_at is None else max(0.0, self._hint_at - time.monotonic()) * 1000

    async def look_again(self) -> None:
        """Once, tell whoever waits why nothing comes."""
        if self.due_ms > 0:
            return
        self._hint_at = None
        if not self._consumer.assignment:
            group = self._consumer.settings.group_id
            note(f"group {group} has not assigned a partition to this consumer yet; waiting for one")
