"""The name of a transaction that is prepared, to be stored where its fate is decided. Pure.

Experimental (KIP-939). Another system commits the name together with its own changes; whoever comes after a
crash compares what is stored there with what the coordinator has, and so knows whether to commit or to abort.
"""

from dataclasses import dataclass
from typing import Final

_NONE: Final = -1
_EPOCH_MAX: Final = 0x7FFF
_ID_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF


class BadPreparedTransaction(ValueError):
    """The text names no prepared transaction."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is not a prepared transaction: expected PRODUCER_ID:EPOCH or an empty string"
        )
        self.text = text


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """The producer id and the epoch that its records have. False if there is no transaction.

    str() is the text that Kafka's clients use, and parse() reads it.
    """

    producer_id: int = _NONE
    epoch: int = _NONE

    def __bool__(self) -> bool:
        return self.producer_id != _NONE

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}" if self else ""

    @classmethod
    def parse(cls, text: str | None) -> "PreparedTransaction":
        """BadPreparedTransaction if it is neither empty nor what str() gives."""
        if not text:
            return NOTHING_PREPARED
        producer_id, _, epoch = text.partition(":")
        if not (_is_number(producer_id, _ID_MAX) and _is_number(epoch, _EPOCH_MAX)):
            raise BadPreparedTransaction(text)
        return cls(int(producer_id), int(epoch))


def _is_number(text: str, most: int) -> bool:
    # The length first: a text of any size may come.
    return len(text) <= len(str(most)) and text.isascii() and text.isdigit() and int(text) <= most


NOTHING_PREPARED: Final = PreparedTransaction()
