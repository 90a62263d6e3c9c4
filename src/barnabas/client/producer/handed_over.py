"""The name of a transaction that is open, for whoever writes into it or ends it from another process. Pure.

It is all that Kafka asks of them: they come with the transactional id, the producer id and the epoch, from
any connection. Nothing else is shared, so a name may be pickled and sent wherever it is needed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """Who an open transaction belongs to: the id of its producers, and the numbers that its records have."""

    transactional_id: str
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"transaction of {self.transactional_id} (producer id {self.producer_id}, epoch {self.epoch})"
