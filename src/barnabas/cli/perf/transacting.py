"""One transaction after the other, each as long as was asked for.

Whoever sends begins one when none is open, and ends it after a record that was sent when it was due: the rule
of Kafka's tool. Nothing is committed between records, so one that waits for its rate may last longer.
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
        """Whether the record that was sent at this time is the last of its transaction."""
        return sent_ms >= self._due_ms

    async def end(self) -> None:
        """Commit what is open, if anything is: waits until all of it is delivered."""
        if self.is_open:
            self.is_open = False
            await self._producer.commit_transaction()
