"""The public classes of transactions: the `async with` block, and identities that other processes may use.

    async with producer.transaction() as transaction:
        await producer.send("payments", b"...")
        await transaction.send_offsets(consumer.delivered, consumer)

Leaving the block commits; an exception aborts and propagates. A prepared transaction stays prepared however
the block is left: the external system may have committed its part, so only complete, commit and abort end it.
A transaction that was handed over is ended by another process. The rules are in transaction_completion.py.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from barnabas.client.errors import Closed

if TYPE_CHECKING:
    from barnabas.client.group.offsets import Committer, OffsetAndMetadata
    from barnabas.client.producer.producer import Producer

_NONE: Final = -1
_EPOCH_MAX: Final = 0x7FFF
_ID_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF


class HasGroup(Protocol):
    """A consumer that is a member of a group."""

    def group_metadata(self) -> "Committer": ...


# A consumer, the result of its group_metadata(), or the name of a group without members.
Group: TypeAlias = "HasGroup | Committer | str"
Offsets: TypeAlias = "Mapping[tuple[str, int], int | OffsetAndMetadata]"


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

    # Experimental (KIP-939). The external system commits this identity together with its own changes. After a
    # crash the next producer compares it with the coordinator's, and commits if they are equal, otherwise
    # aborts.

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


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transactional id, producer id and epoch of an open transaction."""

    # Kafka identifies a transaction by these three, on any connection. Nothing else is shared, so an
    # OpenTransaction can be pickled and sent to other processes that write into the transaction or end it.
    transactional_id: str
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"transaction of {self.transactional_id} (producer id {self.producer_id}, epoch {self.epoch})"


class Transaction:
    """One transaction of a producer; `async with` begins and ends it."""

    def __init__(self, producer: "Producer") -> None:
        self._producer = producer
        self._number = 0

    async def send_offsets(self, offsets: Offsets, group: Group) -> None:
        """Commit the offsets of a group atomically with the transaction."""
        await self._producer.send_offsets_to_transaction(offsets, group)

    async def prepare(self) -> PreparedTransaction:
        """Experimental: see Producer.prepare_transaction(). The block then no longer ends it."""
        return await self._producer.prepare_transaction()

    async def __aenter__(self) -> "Transaction":
        await self._producer.begin_transaction()
        self._number = self._producer._transactions().state.number
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self._producer._transactions().completion.commit_block(self._number)
            return
        with suppress(Closed):
            await self._producer._transactions().completion.abort_block(self._number, error)
