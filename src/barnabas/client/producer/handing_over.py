"""How a transaction goes from one process to another: handed over, opened for others, joined.

Nobody tells the coordinator of it. Whoever has the name of an open transaction writes and ends under it, as
whoever began it would: see handed_over.py. Ended by nobody, it is aborted when its time-out is over, or by
the next producer that initialises its id.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.client.producer.handed_over import OpenTransaction
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction_errors import NoTransaction
from barnabas.client.producer.transaction_state import Phase

if TYPE_CHECKING:
    from barnabas.client.producer.transactions import Transactions

logger = logging.getLogger(__name__)


class HandingOver:
    def __init__(self, transactions: "Transactions") -> None:
        self._transactions = transactions

    async def hand_over(self) -> OpenTransaction | None:
        """Wait for all that was sent, and let nothing more in. MustAbort if any of it failed.

        If this is cancelled, the transaction is open as before.
        """
        state = self._transactions.state
        await self._transactions.endings.flush("hand_over_transaction()")
        if state.may_exist:
            return state.hand_over()
        # The coordinator has not heard of it: it ends here, as a commit of nothing does.
        await self._transactions.endings.commit_flushed()
        return None

    async def open_for_others(self) -> OpenTransaction:
        """Begin one, under an epoch that nothing was written with, and hand it over at once."""
        transactions, state = self._transactions, self._transactions.state
        await transactions.begin()
        if not state.is_fresh:
            # All transactions of version 1 have one epoch. Whoever joins counts from 0, and a partition that
            # has seen these numbers under this epoch would take them for repeated, and drop the records.
            state.begin_anew()
            transactions.changed()
            await transactions.begin()
            assert state.is_fresh, "it was initialised"
        state.flush("open_transaction_for_others()")
        transactions.changed()
        return state.hand_over()

    async def join(self, opened: OpenTransaction) -> None:
        """Go on in it as if it had been begun here. Whether it is still open the first write tells."""
        transactions, state = self._transactions, self._transactions.state
        if opened.transactional_id != state.id:
            raise ValueError(f"cannot join the {opened}: this producer has transactional.id {state.id}")
        if opened.producer_id < 0 or opened.epoch < 0:
            raise ValueError(f"invalid producer id or epoch: {opened}")
        self._check_unused()
        is_v2 = await transactions.ask(
            "transaction.version", transactions.requests.speaks_v2, transactions.deadline()
        )
        self._check_unused()
        logger.info("transaction joined transactional_id=%s id=%d epoch=%d", *_facts(opened))
        state.join(Identity(opened.producer_id, opened.epoch), transactions.now_ms(), is_v2=is_v2)
        transactions.changed()

    def _check_unused(self) -> None:
        """A producer that has an id of its own has fenced what it would join."""
        transactions, state = self._transactions, self._transactions.state
        state.check_unbroken()
        if state.phase is not Phase.NEW or transactions.initializing.is_running:
            why = "this producer is already initialized" if state.phase in (Phase.NEW, Phase.READY) else None
            raise NoTransaction("join", why or state.phase.value)


def _facts(opened: OpenTransaction) -> tuple[str, int, int]:
    return opened.transactional_id, opened.producer_id, opened.epoch
