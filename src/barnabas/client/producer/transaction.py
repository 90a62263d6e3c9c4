"""Transactions as users see them: a block, or calls for begin, commit and abort.

    async with producer.transaction() as transaction:
        await producer.send("payments", b"...")
        await transaction.send_offsets(consumer.delivered, consumer)

Leaving the block commits; an error aborts, and goes on. But what is prepared stays so, however the block is
left: another system may have committed its part, and only complete, commit and abort may end it. What is
handed over is somebody else's to end.
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


# A consumer, what its group_metadata() gave, or the name of a group without members.
Group: TypeAlias = "HasGroup | Committer | str"
Offsets: TypeAlias = "Mapping[tuple[str, int], int | OffsetAndMetadata]"


class Transaction:
    """One transaction of a producer; `async with` begins and ends it."""

    def __init__(self, calls: "TransactionCalls") -> None:
        self._calls = calls
        self._number = 0

    async def send_offsets(self, offsets: Offsets, group: Group) -> None:
        """Commit these offsets of a group with the transaction, or not at all."""
        await self._calls.send_offsets_to_transaction(offsets, group)

    async def prepare(self) -> PreparedTransaction:
        """Experimental: see TransactionCalls.prepare_transaction(). The block does not end it any more."""
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
            # Cancelled before the coordinator was asked; otherwise there is nothing to be done.
            transactions.endings.abort_soon()
            raise

    def _was_ended(self, transactions: "Transactions") -> bool:
        """By a call within the block."""
        state = transactions.state
        return state.number != self._number or state.phase in (Phase.READY, Phase.NEW)

    async def _abort(self, error: BaseException) -> None:
        transactions = self._calls._transactions()
        if self._was_ended(transactions) or not transactions.state.is_unended:
            return
        if not isinstance(error, Exception):
            # Who is cancelled can not wait.
            transactions.endings.abort_soon()
            return
        try:
            await transactions.endings.abort()
        except ClientError as trouble:
            if isinstance(error, TransactionError) and isinstance(trouble, TransactionError):
                # It says more: for example that another producer has the id.
                raise trouble from error
            error.add_note(f"the transaction could not be aborted: {trouble}")


class TransactionCalls:
    """What a producer with a transactional.id can do beside sending."""

    def _running(self) -> "Sender":
        raise NotImplementedError

    def _transactions(self) -> "Transactions":
        transactions = self._running().transactions
        if transactions is None:
            raise NotTransactional()
        return transactions

    def transaction(self) -> Transaction:
        """For `async with`: begun at its beginning, committed at its end, aborted if the block raises."""
        return Transaction(self)

    async def init_transactions(self, keep_prepared: bool = False) -> PreparedTransaction:
        """Get a producer id, and fence an older producer of this name. The first begin does it by itself.

        What the older one left open is aborted. With `keep_prepared`, which is experimental and for two-phase
        commit, it is kept and returned: it is prepared, and to be completed before the next one begins.
        """
        return await self._transactions().initializing.run(keep=keep_prepared)

    async def begin_transaction(self) -> None:
        await self._transactions().begin()

    async def send_offsets_to_transaction(self, offsets: Offsets, group: Group) -> None:
        """Commit these offsets of a group with the transaction, or not at all."""
        from barnabas.client.group.offsets import Committer, offsets_given

        transactions = self._transactions()
        if isinstance(group, str):
            group = Committer(group, -1, "", None)
        committer = group if isinstance(group, Committer) else group.group_metadata()
        await transactions.send_offsets(offsets_given(offsets), committer)

    async def prepare_transaction(self) -> PreparedTransaction:
        """Experimental: wait for all that was sent, and promise that it can be committed or aborted.

        From here on only complete, commit and abort are possible, in this producer or in a later one of its
        name. Store the answer with what has to happen together with it. MustAbort if anything sent failed.
        """
        return await self._transactions().endings.prepare()

    async def complete_transaction(self, prepared: PreparedTransaction | str) -> None:
        """Experimental: commit if this is the transaction that is prepared, and abort it otherwise.

        `prepared` is what was stored, or its text. After OutcomeUnknown the same call asks again.
        """
        if isinstance(prepared, str):
            prepared = PreparedTransaction.parse(prepared)
        await self._transactions().endings.complete(prepared)

    async def hand_over_transaction(self) -> OpenTransaction | None:
        """Wait for all that was sent, and leave the transaction open for somebody else to end.

        Admin.end_transactions() ends it, in any process. This producer can only be closed then, which does
        not end it. MustAbort if anything sent failed. None if nothing is in it: there is nothing to end, and
        this producer goes on as after a commit. Of a transaction that was joined it is never None.
        """
        return await self._transactions().handing_over.hand_over()

    async def open_transaction_for_others(self) -> OpenTransaction:
        """Begin a transaction and hand it over with nothing in it, for others to join: instead of begin.

        This producer can only be closed then, which does not end the transaction.
        """
        return await self._transactions().handing_over.open_for_others()

    async def join_transaction(self, opened: OpenTransaction) -> None:
        """Write into the open transaction of another producer: instead of init and begin.

        transactional.id is the same as there, or it is a ValueError. From here on everything is as in any
        open transaction; close() aborts it for all, unless it was handed over. The rules for those who join:

        - Each partition is written by one of them, once. Everybody counts sequences from 0, so a second
          one's records would be refused, or taken for those of the first and dropped without a word.
        - Whoever ends it does so when the others have handed it over. What comes later is refused; in version
          1 of transactions it begins another one, which the next end under this epoch would end, too.
        - After an abort nobody can go on in it, and none of what the others wrote is visible.
        """
        await self._transactions().handing_over.join(opened)

    async def commit_transaction(self) -> None:
        """Wait for all that was sent, and commit. MustAbort if any of it failed: then nothing was committed.

        After OutcomeUnknown the same call asks again.
        """
        await self._transactions().endings.commit()

    async def abort_transaction(self) -> None:
        """What was not sent yet is dropped, and who reads committed records sees none of the others."""
        await self._transactions().endings.abort()
