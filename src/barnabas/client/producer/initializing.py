"""InitProducerId for a transactional.id, and the transaction that a predecessor left open.

The coordinator aborts that transaction before it responds. With two-phase commit it can be kept: it is then
prepared in this producer, which decides its outcome. (KIP-939, experimental)
"""

import logging
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import Refused
from barnabas.client.producer.prepared import PreparedTransaction
from barnabas.client.producer.transaction_errors import NoTransaction, TwoPhaseCommitOff
from barnabas.client.producer.transaction_state import Phase
from barnabas.client.producer.transaction_verdicts import FENCED

if TYPE_CHECKING:
    from barnabas.client.producer.transactions import Transactions

logger = logging.getLogger(__name__)
_INIT: Final = "init"


class Initializing:
    def __init__(self, transactions: "Transactions") -> None:
        self._transactions = transactions

    @property
    def is_running(self) -> bool:
        return self._transactions.shared.is_running(_INIT)

    async def run(self, *, keep: bool = False) -> PreparedTransaction:
        """Initialize once. Return the prepared transaction that was kept; it must be completed first."""
        state = self._transactions.state
        state.check_unbroken()
        if state.phase is Phase.HANDED_OVER:
            # A new epoch would fence the processes that write into or end the transaction.
            raise NoTransaction("another transaction", state.phase.value)
        if keep:
            self.check_two_phase("init_transactions(keep_prepared=True)")
        if state.phase is Phase.NEW:
            await self._transactions.shared.join(_INIT, lambda: self._init(keep=keep))
        return state.prepared

    def check_two_phase(self, what: str) -> None:
        if not self._transactions.settings.transaction_two_phase_commit_enable:
            raise TwoPhaseCommitOff(what)

    async def _init(self, *, keep: bool) -> None:
        transactions, state = self._transactions, self._transactions.state
        was = state.identity
        try:
            identity, kept = await transactions.ask(
                "INIT_PRODUCER_ID",
                lambda: transactions.requests.init(was, keep=keep),
                transactions.deadline(),
            )
        except Refused as error:
            if error.code in FENCED:
                raise transactions.fenced() from error
            raise
        logger.info("producer id assigned transactional_id=%s id=%d epoch=%d", state.id, *identity)
        state.initialized(identity)
        if kept:
            logger.info("prepared transaction kept transactional_id=%s prepared=%s", state.id, kept)
            state.keep(kept, transactions.now_ms())
