"""How a transaction ends: prepare, commit, abort, or hand over to another process.

EndTxn is repeated until its outcome is known. It runs as a task of its own: if the caller is cancelled, the
task continues. The next call that needs the outcome waits for the task, or repeats the request if it had no
response.
"""

import logging
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import BrokerUnavailable, ClientError, Closed, Refused
from barnabas.client.producer.delivery import finished
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction import OpenTransaction, PreparedTransaction
from barnabas.client.producer.transaction_errors import (
    MustAbort,
    OutcomeUnknown,
    TransactionAborted,
    TransactionError,
    Verdict,
    verdict_of_end,
    verdict_without_coordinator,
)
from barnabas.client.producer.transaction_requests import NoCoordinator
from barnabas.client.producer.transaction_state import Phase

if TYPE_CHECKING:
    from barnabas.client.producer.transaction_manager import TransactionManager

logger = logging.getLogger(__name__)
_END: Final = "end"


class TransactionCompletion:
    def __init__(self, manager: "TransactionManager") -> None:
        self._manager = manager

    async def commit(self) -> None:
        """Flush all records, then commit. Raise MustAbort if any record failed.

        If cancelled before EndTxn is sent, the transaction stays open. After that, the next call that needs
        the outcome waits for it.
        """
        state = self._manager.state
        if state.phase not in (Phase.COMMITTING, Phase.PREPARED):
            await self._flush("commit")
        await self._commit_flushed()

    async def _commit_flushed(self) -> None:
        """Commit a flushed transaction, or wait for a commit that is in progress."""
        if self._manager.state.phase is not Phase.COMMITTING:
            self._manager.state.commit()
        await self._run()

    async def prepare(self) -> PreparedTransaction:
        """Flush all records and accept no more. Raise MustAbort if any record failed.

        No request is needed: with two-phase commit the coordinator ends no transaction by itself. If
        cancelled, the transaction stays open.
        """
        self._manager.check_two_phase("prepare")
        await self._flush("prepare")
        return self._manager.state.prepare()

    async def complete(self, stored: PreparedTransaction) -> None:
        """Commit the prepared transaction if it equals `stored`, otherwise abort it."""
        if self._manager.state.decides_commit(stored):
            await self.commit()
        else:
            await self.abort()

    async def hand_over(self) -> OpenTransaction | None:
        """Flush all records and accept no more. Raise MustAbort if any record failed.

        If cancelled, the transaction stays open.
        """
        state = self._manager.state
        await self._flush("hand_over_transaction()")
        if state.may_exist:
            return state.hand_over()
        # The coordinator does not know the transaction: end it locally, like an empty commit.
        await self._commit_flushed()
        return None

    async def _flush(self, what: str) -> None:
        """Accept no more records or offsets, and wait for those in progress."""
        state = self._manager.state
        state.flush(what)
        self._manager.changed()
        try:
            await self._wait_for_all()
        except BaseException:
            state.unflush()
            self._manager.changed()
            raise

    async def _wait_for_all(self) -> None:
        state, accumulator = self._manager.state, self._manager.sender.accumulator
        accumulator.close_open()
        number = state.number
        for batch in list(accumulator.incomplete):
            await finished(batch)
            self._manager.check_same_transaction(number)
        async with self._manager.offsets_turn:
            self._manager.check_same_transaction(number)

    async def abort(self) -> None:
        """Drop unsent records, wait for requests in flight, then abort."""
        self._manager.state.abort()
        self._manager.changed()
        await self._run()

    async def commit_block(self, number: int) -> None:
        """Commit transaction `number` at the end of its `async with` block.

        If that is impossible, abort and raise TransactionAborted.
        """
        if self._has_ended(number) or self._manager.state.phase in (Phase.PREPARED, Phase.HANDED_OVER):
            return
        try:
            try:
                await self.commit()
            except MustAbort as error:
                await self.abort()
                raise TransactionAborted(error.transactional_id, error) from error
        except BaseException:
            # Aborts if the commit was cancelled before EndTxn was sent; otherwise does nothing.
            self._abort_soon()
            raise

    async def abort_block(self, number: int, error: BaseException) -> None:
        """Abort transaction `number`, whose `async with` block raised `error`."""
        if self._has_ended(number) or not self._manager.state.is_unended:
            return
        if not isinstance(error, Exception):
            # A cancelled task must not wait.
            self._abort_soon()
            return
        try:
            await self.abort()
        except ClientError as abort_error:
            if isinstance(error, TransactionError) and isinstance(abort_error, TransactionError):
                # The newer error says more, for example that the producer is fenced.
                raise abort_error from error
            error.add_note(f"the transaction could not be aborted: {abort_error}")

    def _has_ended(self, number: int) -> bool:
        """Whether a call within the block has ended it."""
        state = self._manager.state
        return state.number != number or state.phase in (Phase.READY, Phase.NEW)

    def _abort_soon(self) -> None:
        """Abort in the background. The next transaction begins after that."""
        state = self._manager.state
        if state.is_unended:
            state.abort()
            self._manager.changed()
            self._manager.sender.start_task(self._run_quietly())

    async def end_all(self) -> None:
        """Abort an open transaction, or wait for one that is ending. Errors are only logged.

        A prepared transaction stays prepared: the external system may have committed. A transaction that was
        handed over no longer belongs to this producer.
        """
        if self._manager.state.is_unended:
            self._manager.state.abort()
            self._manager.changed()
        if self._manager.state.phase in (Phase.COMMITTING, Phase.ABORTING):
            await self._run_quietly()

    async def wait_until_ended(self) -> None:
        """Wait until the last transaction has ended; repeat EndTxn if it had no response."""
        if self._manager.state.phase in (Phase.COMMITTING, Phase.ABORTING):
            await self._run()

    async def _run_quietly(self) -> None:
        try:
            await self._run()
        except ClientError as error:
            logger.warning(
                "could not end transaction transactional_id=%s error=%s", self._manager.state.id, error
            )

    async def _run(self) -> None:
        await self._manager.shared.join(_END, self._end)

    async def _end(self) -> None:
        state = self._manager.state
        commit = state.phase is Phase.COMMITTING
        if not commit:
            await self._manager.additions.stop()
            # No new batch is sent, and a batch with a retriable error is not sent again: see admits().
            await self._manager.sender.wait_for_responses()
            self._manager.drop()
        identity: Identity | None = None
        if state.may_exist and not state.is_forgotten:
            identity = await self._ask(commit=commit)
        state.check_usable()
        state.ended(identity)
        if state.phase is Phase.NEW:
            await self._renew()

    async def _renew(self) -> None:
        try:
            await self._manager.initialize()
        except ClientError as error:
            # The transaction has ended anyway. The next begin() tries again and reports the error.
            logger.warning(
                "could not get the next producer epoch transactional_id=%s error=%s",
                self._manager.state.id,
                error,
            )

    async def _ask(self, *, commit: bool) -> Identity | None:
        state, requests = self._manager.state, self._manager.requests
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

        deadline = self._manager.deadline()
        try:
            return await self._manager.ask("END_TXN", attempt, deadline)
        except Closed:
            raise
        except ClientError as error:
            if isinstance(error, Refused) and not error.retriable:
                self._refused(error, commit=commit)
                return None
            raise self._unknown(error, commit=commit) from error

    def _unknown(self, last: ClientError, *, commit: bool) -> OutcomeUnknown:
        timeout_ms = self._manager.settings.max_block_ms
        return OutcomeUnknown(self._manager.state.id, commit=commit, timeout_ms=timeout_ms, last=last)

    def _refused(self, error: Refused, *, commit: bool) -> None:
        """Return if there is nothing to end; otherwise raise the error that the code means."""
        state = self._manager.state
        if isinstance(error, NoCoordinator):
            verdict = verdict_without_coordinator(error.code)
        else:
            verdict = verdict_of_end(error.code, commit=commit, is_sure=state.exists or state.is_v2)
        match verdict:
            case Verdict.FENCED:
                raise self._manager.fence() from error
            case Verdict.BROKEN:
                raise self._manager.fail(error) from error
            case Verdict.FORGOTTEN:
                if commit and state.in_doubt:
                    raise self._manager.fail(error) from error
                state.is_forgotten = True
                if commit:
                    raise self._manager.must_abort(error) from error
            case Verdict.ABORT:
                raise self._manager.must_abort(error) from error
            case Verdict.UNKNOWN:
                raise self._unknown(error, commit=commit) from error
