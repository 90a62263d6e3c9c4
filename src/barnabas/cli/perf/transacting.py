"""Consecutive transactions of a given duration.

By the rule of Kafka's tool, the sender begins a transaction when none is open, and ends it after the first
record sent when the duration is over. Commits happen only after a record, so at a low rate transactions last
longer.
"""

from typing import TYPE_CHECKING

from barnabas.cli.perf.acknowledgements import now_ms

if TYPE_CHECKING:
    from barnabas.client.producer.producer import Producer


class Transactions:
    def __init__(self, producer: "Producer", duration_ms: int) -> None:
        self._producer = producer
        self._duration_ms = duration_ms
        self._due_ms = 0.0
        self.is_open = False

    async def begin(self) -> None:
        await self._producer.begin_transaction()
        self._due_ms = now_ms() + self._duration_ms
        self.is_open = True

    def is_due(self, sent_ms: float) -> bool:
        """Whether a record sent at this time is the last of its transaction."""
        return sent_ms >= self._due_ms

    async def end(self) -> None:
        """Commit the open transaction, if any, after all of its records are delivered."""
        if self.is_open:
            self.is_open = False
            await self._producer.commit_transaction()
