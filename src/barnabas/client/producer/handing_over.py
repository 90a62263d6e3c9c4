"""Passing a transaction between processes: hand over, open for others, join.

The coordinator is not involved. Any process with the OpenTransaction (handed_over.py) can write into it and
end it. If nobody ends it, the coordinator aborts it after its timeout, or when the next producer initializes
the transactional id.
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
        """Flush all records and accept no more. Raise MustAbort if any record failed.

        If cancelled, the transaction stays open.
        """
        state = self._transactions.state
        await self._transactions.endings.flush("hand_over_transaction()")
        if state.may_exist:
            return state.hand_over()
        # The coordinator does not know the transaction: end it locally, like an empty commit.
        await self._transactions.endings.commit_flushed()
        return None

    async def open_for_others(self) -> OpenTransaction:
        """Begin a transaction under an unused epoch and hand it over at once."""
        transactions, state = self._transactions, self._transactions.state
        await transactions.begin()
        if not state.is_fresh:
            # In version 1 all transactions share one epoch. A joined producer counts from 0, so a partition
            # that has seen these sequences under this epoch would drop the records as duplicates.
            state.begin_anew()
            transactions.changed()
            await transactions.begin()
            assert state.is_fresh, "a new epoch is fresh"
        state.flush("open_transaction_for_others()")
        transactions.changed()
        return state.hand_over()

    async def join(self, opened: OpenTransaction) -> None:
        """Continue a transaction as if it had begun here. The first write fails if it is no longer open."""
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
        logger.info("transaction joined transactional_id=%s id=%d epoch=%d", *_log_values(opened))
        state.join(Identity(opened.producer_id, opened.epoch), transactions.now_ms(), is_v2=is_v2)
        transactions.changed()

    def _check_unused(self) -> None:
        """Raise if this producer has called InitProducerId: that fenced the transaction it would join."""
        transactions, state = self._transactions, self._transactions.state
        state.check_unbroken()
        if state.phase is not Phase.NEW or transactions.initializing.is_running:
            why = "this producer is already initialized" if state.phase in (Phase.NEW, Phase.READY) else None
            raise NoTransaction("join", why or state.phase.value)


def _log_values(opened: OpenTransaction) -> tuple[str, int, int]:
    return opened.transactional_id, opened.producer_id, opened.epoch
