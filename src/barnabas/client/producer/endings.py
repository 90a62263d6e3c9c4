"""Commit and abort of transactions, with EndTxn repeated until its outcome is known.

EndTxn runs as a task of its own: if the caller is cancelled, the task continues. The next call that needs the
outcome waits for the task, or repeats the request if it had no response.
"""

import logging
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import BrokerUnavailable, ClientError, Closed, Refused
from barnabas.client.producer.delivery import finished
from barnabas.client.producer.prepared import PreparedTransaction
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction_errors import MustAbort, OutcomeUnknown, TransactionAborted
from barnabas.client.producer.transaction_requests import NoCoordinator
from barnabas.client.producer.transaction_state import Phase
from barnabas.client.producer.transaction_verdicts import (
    Verdict,
    verdict_of_end,
    verdict_without_coordinator,
)

if TYPE_CHECKING:
    from barnabas.client.producer.transactions import Transactions

logger = logging.getLogger(__name__)
_END: Final = "end"


class Endings:
    def __init__(self, transactions: "Transactions") -> None:
        self._transactions = transactions

    async def commit(self) -> None:
        """Flush all records, then commit. Raise MustAbort if any record failed.

        If cancelled before EndTxn is sent, the transaction stays open. After that, the next call that needs
        the outcome waits for it.
        """
        state = self._transactions.state
        if state.phase not in (Phase.COMMITTING, Phase.PREPARED):
            await self.flush("commit")
        await self.commit_flushed()

    async def commit_flushed(self) -> None:
        """Commit a flushed transaction, or wait for a commit that is in progress."""
        if self._transactions.state.phase is not Phase.COMMITTING:
            self._transactions.state.commit()
        await self._run()

    async def prepare(self) -> PreparedTransaction:
        """Flush all records and accept no more. Raise MustAbort if any record failed.

        No request is needed: with two-phase commit the coordinator ends no transaction by itself. If
        cancelled, the transaction stays open.
        """
        self._transactions.initializing.check_two_phase("prepare")
        await self.flush("prepare")
        return self._transactions.state.prepare()

    async def complete(self, stored: PreparedTransaction) -> None:
        """Commit the prepared transaction if it equals `stored`, otherwise abort it."""
        if self._transactions.state.decides_commit(stored):
            await self.commit()
        else:
            await self.abort()

    async def flush(self, what: str) -> None:
        """Accept no more records or offsets, and wait for those in progress."""
        state = self._transactions.state
        state.flush(what)
        self._transactions.changed()
        try:
            await self._wait_for_all()
        except BaseException:
            state.unflush()
            self._transactions.changed()
            raise

    async def _wait_for_all(self) -> None:
        state, accumulator = self._transactions.state, self._transactions.sender.accumulator
        accumulator.close_open()
        number = state.number
        for batch in list(accumulator.incomplete):
            await finished(batch)
            self._transactions.check_still(number)
        async with self._transactions.offsets_turn:
            self._transactions.check_still(number)

    async def abort(self) -> None:
        """Drop unsent records, wait for requests in flight, then abort."""
        self._transactions.state.abort()
        self._transactions.changed()
        await self._run()

    async def commit_or_abort(self) -> None:
        """Commit; if that is impossible, abort and raise TransactionAborted."""
        try:
            await self.commit()
        except MustAbort as trouble:
            await self.abort()
            raise TransactionAborted(trouble.transactional_id, trouble) from trouble

    def abort_soon(self) -> None:
        """Abort in the background. The next transaction begins after that."""
        state = self._transactions.state
        if state.is_unended:
            state.abort()
            self._transactions.changed()
            self._transactions.sender.run_beside(self._run_quietly())

    async def end_all(self) -> None:
        """Abort an open transaction, or wait for one that is ending. Errors are only logged.

        A prepared transaction stays prepared: the external system may have committed. A transaction that was
        handed over no longer belongs to this producer.
        """
        if self._transactions.state.is_unended:
            self._transactions.state.abort()
            self._transactions.changed()
        if self._transactions.state.phase in (Phase.COMMITTING, Phase.ABORTING):
            await self._run_quietly()

    async def known(self) -> None:
        """Wait until the last transaction has ended; repeat EndTxn if it had no response."""
        if self._transactions.state.phase in (Phase.COMMITTING, Phase.ABORTING):
            await self._run()

    async def _run_quietly(self) -> None:
        try:
            await self._run()
        except ClientError as error:
            logger.warning(
                "could not end transaction transactional_id=%s error=%s", self._transactions.state.id, error
            )

    async def _run(self) -> None:
        await self._transactions.shared.join(_END, self._end)

    async def _end(self) -> None:
        state = self._transactions.state
        commit = state.phase is Phase.COMMITTING
        if not commit:
            await self._transactions.additions.stop()
            # No new batch is sent, and a batch with a retriable error is not sent again: see admits().
            await self._transactions.sender.all_answered()
            self._transactions.drop()
        identity: Identity | None = None
        if state.may_exist and not state.is_forgotten:
            identity = await self._ask(commit=commit)
        state.check_unbroken()
        state.ended(identity)
        if state.phase is Phase.NEW:
            await self._renew()

    async def _renew(self) -> None:
        try:
            await self._transactions.initializing.run()
        except ClientError as error:
            # The transaction has ended anyway. The next begin() tries again and reports the error.
            logger.warning(
                "could not get the next producer epoch transactional_id=%s error=%s",
                self._transactions.state.id,
                error,
            )

    async def _ask(self, *, commit: bool) -> Identity | None:
        state, requests = self._transactions.state, self._transactions.requests
        was = state.identity
        assert was is not None, "a begun transaction has a producer id"

        async def attempt() -> Identity | None:
            before, state.in_doubt = state.in_doubt, True
            try:
                return await requests.end(was, commit=commit, is_v2=state.is_v2)
            except (Refused, BrokerUnavailable):
                # This attempt has changed nothing.
                state.in_doubt = before
                raise

        deadline = self._transactions.deadline()
        try:
            return await self._transactions.ask("END_TXN", attempt, deadline)
        except Closed:
            raise
        except ClientError as error:
            if isinstance(error, Refused) and not error.retriable:
                self._refused(error, commit=commit)
                return None
            raise self._unknown(error, commit=commit) from error

    def _unknown(self, last: ClientError, *, commit: bool) -> OutcomeUnknown:
        timeout_ms = self._transactions.settings.max_block_ms
        return OutcomeUnknown(self._transactions.state.id, commit=commit, timeout_ms=timeout_ms, last=last)

    def _refused(self, error: Refused, *, commit: bool) -> None:
        """Return if there is nothing to end; otherwise raise the error that the code means."""
        state = self._transactions.state
        if isinstance(error, NoCoordinator):
            verdict = verdict_without_coordinator(error.code)
        else:
            verdict = verdict_of_end(error.code, commit=commit, is_sure=state.exists or state.is_v2)
        match verdict:
            case Verdict.FENCED:
                raise self._transactions.fenced() from error
            case Verdict.BROKEN:
                raise self._transactions.broken(error) from error
            case Verdict.FORGOTTEN:
                if commit and state.in_doubt:
                    raise self._transactions.broken(error) from error
                state.is_forgotten = True
                if commit:
                    raise self._transactions.must_abort(error) from error
            case Verdict.ABORT:
                raise self._transactions.must_abort(error) from error
            case Verdict.UNKNOWN:
                raise self._unknown(error, commit=commit) from error
