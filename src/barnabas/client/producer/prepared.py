"""The identity of a prepared transaction, to be stored in the external system of a two-phase commit. Pure.

Experimental (KIP-939). The external system commits the identity together with its own changes. After a crash
the next producer compares it with the coordinator's, and commits if they are equal, otherwise aborts.
"""

from dataclasses import dataclass
from typing import Final

_NONE: Final = -1
_EPOCH_MAX: Final = 0x7FFF
_ID_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF


class BadPreparedTransaction(ValueError):
    """The text is not a prepared transaction."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is not a prepared transaction: expected PRODUCER_ID:EPOCH or an empty string"
        )
        self.text = text


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """Producer id and epoch of the prepared transaction. False if there is none.

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
        """Parse the output of str(); raise BadPreparedTransaction for anything else."""
        if not text:
            return NOTHING_PREPARED
        producer_id, _, epoch = text.partition(":")
        if not (_is_number(producer_id, _ID_MAX) and _is_number(epoch, _EPOCH_MAX)):
            raise BadPreparedTransaction(text)
        return cls(int(producer_id), int(epoch))


def _is_number(text: str, most: int) -> bool:
    # Check the length before int(): the text may have any size.
    return len(text) <= len(str(most)) and text.isascii() and text.isdigit() and int(text) <= most


NOTHING_PREPARED: Final = PreparedTransaction()
