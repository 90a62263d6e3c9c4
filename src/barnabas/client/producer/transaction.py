"""The public transaction API: an `async with` block, or calls to begin, commit and abort.

    async with producer.transaction() as transaction:
        await producer.send("payments", b"...")
        await transaction.send_offsets(consumer.delivered, consumer)

Leaving the block commits; an exception aborts and propagates. A prepared transaction stays prepared however
the block is left: the external system may have committed its part, so only complete, commit and abort end it.
A transaction that was handed over is ended by another process.
"""

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from barnabas.client.errors import ClientError, Closed
from barnabas.client.producer.handed_over import OpenTransaction
from barnabas.client.producer.prepared import PreparedTransaction
from barnabas.client.producer.transaction_errors import NotTransactional, TransactionError
from barnabas.client.producer.transaction_state import Phase

if TYPE_CHECKING:
    from barnabas.client.group.offsets import Committer, OffsetAndMetadata
    from barnabas.client.producer.sender import Sender
    from barnabas.client.producer.transactions import Transactions


class HasGroup(Protocol):
    """A consumer that is a member of a group."""

    def group_metadata(self) -> "Committer": ...


# A consumer, the result of its group_metadata(), or the name of a group without members.
Group: TypeAlias = "HasGroup | Committer | str"
Offsets: TypeAlias = "Mapping[tuple[str, int], int | OffsetAndMetadata]"


class Transaction:
    """One transaction of a producer; `async with` begins and ends it."""

    def __init__(self, calls: "TransactionCalls") -> None:
        self._calls = calls
        self._number = 0

    async def send_offsets(self, offsets: Offsets, group: Group) -> None:
        """Commit the offsets of a group atomically with the transaction."""
        await self._calls.send_offsets_to_transaction(offsets, group)

    async def prepare(self) -> PreparedTransaction:
        """Experimental: see TransactionCalls.prepare_transaction(). The block then no longer ends it."""
        return await self._calls.prepare_transaction()

    async def __aenter__(self) -> "Transaction":
        await self._calls.begin_transaction()
        self._number = self._calls._transactions().state.number
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with suppress(Closed):
                await self._abort(error)
            return
        transactions = self._calls._transactions()
        if self._was_ended(transactions):
            return
        if transactions.state.phase in (Phase.PREPARED, Phase.HANDED_OVER):
            return
        try:
            await transactions.endings.commit_or_abort()
        except BaseException:
            # Aborts if the commit was cancelled before EndTxn was sent; otherwise does nothing.
            transactions.endings.abort_soon()
            raise

    def _was_ended(self, transactions: "Transactions") -> bool:
        """Whether a call within the block has ended it."""
        state = transactions.state
        return state.number != self._number or state.phase in (Phase.READY, Phase.NEW)

    async def _abort(self, error: BaseException) -> None:
        transactions = self._calls._transactions()
        if self._was_ended(transactions) or not transactions.state.is_unended:
            return
        if not isinstance(error, Exception):
            # A cancelled task must not wait.
            transactions.endings.abort_soon()
            return
        try:
            await transactions.endings.abort()
        except ClientError as trouble:
            if isinstance(error, TransactionError) and isinstance(trouble, TransactionError):
                # The newer error says more, for example that the producer is fenced.
                raise trouble from error
            error.add_note(f"the transaction could not be aborted: {trouble}")


class TransactionCalls:
    """Mixin of Producer with the transaction calls."""

    def _running(self) -> "Sender":
        raise NotImplementedError

    def _transactions(self) -> "Transactions":
        transactions = self._running().transactions
        if transactions is None:
            raise NotTransactional()
        return transactions

    def transaction(self) -> Transaction:
        """For `async with`: begin on entry, commit on exit, abort if the block raises."""
        return Transaction(self)

    async def init_transactions(self, keep_prepared: bool = False) -> PreparedTransaction:
        """Get a producer id, and fence older producers of this transactional.id. begin() does so if needed.

        A transaction that an older producer left open is aborted. With `keep_prepared` (experimental, for
        two-phase commit) it is kept and returned, and must be completed before the next one begins.
        """
        return await self._transactions().initializing.run(keep=keep_prepared)

    async def begin_transaction(self) -> None:
        await self._transactions().begin()

    async def send_offsets_to_transaction(self, offsets: Offsets, group: Group) -> None:
        """Commit the offsets of a group atomically with the transaction."""
        from barnabas.client.group.offsets import Committer, offsets_given

        transactions = self._transactions()
        if isinstance(group, str):
            group = Committer(group, -1, "", None)
        committer = group if isinstance(group, Committer) else group.group_metadata()
        await transactions.send_offsets(offsets_given(offsets), committer)

    async def prepare_transaction(self) -> PreparedTransaction:
        """Experimental: flush all records, and guarantee that the transaction can be committed or aborted.

        From here on only complete, commit and abort are possible, in this producer or in a later one with the
        same transactional.id. Store the result atomically with the changes of the external system. MustAbort
        if any record failed.
        """
        return await self._transactions().endings.prepare()

    async def complete_transaction(self, prepared: PreparedTransaction | str) -> None:
        """Experimental: commit if `prepared` is the prepared transaction, otherwise abort it.

        `prepared` is the stored value, or its text. After OutcomeUnknown, repeat the call.
        """
        if isinstance(prepared, str):
            prepared = PreparedTransaction.parse(prepared)
        await self._transactions().endings.complete(prepared)

    async def hand_over_transaction(self) -> OpenTransaction | None:
        """Flush all records, and leave the transaction open for another process to end.

        Admin.end_transactions() ends it, in any process. After this call the producer can only be closed,
        which does not end the transaction. MustAbort if any record failed. None if the transaction is empty:
        nothing has to be ended, and this producer continues as after a commit. A joined transaction never
        returns None.
        """
        return await self._transactions().handing_over.hand_over()

    async def open_transaction_for_others(self) -> OpenTransaction:
        """Begin a transaction and hand it over empty, for other producers to join.

        After this call the producer can only be closed, which does not end the transaction.
        """
        return await self._transactions().handing_over.open_for_others()

    async def join_transaction(self, opened: OpenTransaction) -> None:
        """Join the open transaction of another producer, instead of init and begin.

        transactional.id must equal that of `opened`, otherwise ValueError. Everything else works as in any
        open transaction; close() aborts it for all producers, unless it was handed over. Rules for joining:

        - Only one of the producers writes to a partition, and joins only once. All of them count sequences
          from 0, so the records of a second one would be rejected, or dropped silently as duplicates.
        - End the transaction only after all others have handed it over. Later records are rejected; in
          version 1 of transactions they begin another one, which the next EndTxn under this epoch ends, too.
        - After an abort no producer can continue, and no record of any producer is visible.
        """
        await self._transactions().handing_over.join(opened)

    async def commit_transaction(self) -> None:
        """Flush all records and commit. MustAbort if any record failed: then nothing was committed.

        After OutcomeUnknown, repeat the call.
        """
        await self._transactions().endings.commit()

    async def abort_transaction(self) -> None:
        """Drop unsent records and abort: read_committed consumers see no record of the transaction."""
        await self._transactions().endings.abort()
