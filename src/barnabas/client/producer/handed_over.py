"""The identity of an open transaction, for other processes that write into it or end it. Pure.

Kafka identifies a transaction by transactional id, producer id and epoch, on any connection. Nothing else is
shared, so an OpenTransaction can be pickled and sent to other processes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transactional id, producer id and epoch of an open transaction."""

    transactional_id: str
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"transaction of {self.transactional_id} (producer id {self.producer_id}, epoch {self.epoch})"
