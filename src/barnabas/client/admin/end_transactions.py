"""Ends transactions that were handed over: EndTxn for each, with the producer id and epoch of its producer.

A repeated EndTxn after a lost response returns the outcome and ends nothing twice: in version 1 of
transactions the epoch is unchanged, in version 2 the coordinator recognizes the previous epoch.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff, Deadline, retry
from barnabas.client.errors import BrokerUnavailable, ClientError, Closed, Refused
from barnabas.client.producer.outcomes import CONCURRENT_TRANSACTIONS_RETRY_MS
from barnabas.client.producer.stamp import Identity
from barnabas.client.producer.transaction import OpenTransaction
from barnabas.client.producer.transaction_errors import (
    FencedBeforeItsEnd,
    OutcomeUnknown,
    TransactionNotOpen,
    TransactionsFailed,
    Verdict,
    verdict_of_end,
    verdict_without_coordinator,
)
from barnabas.client.producer.transaction_requests import NoCoordinator, TransactionRequests
from barnabas.protocol.error_codes import ErrorCode

# Limit of concurrent requests.
AT_ONCE: Final = 16
# Limit of notes about further errors.
NOTES_MAX: Final = 20
# Only used by InitProducerId, which is not sent here.
_NO_TIMEOUT_MS: Final = 0


async def end_all(
    cluster: Cluster, opened: Iterable[OpenTransaction], *, commit: bool, deadline: Deadline
) -> None:
    """End each transaction once, even if several producers that joined it handed it over.

    All are tried. Then the first error is raised, with notes about the others.
    """
    turn = asyncio.Semaphore(AT_ONCE)
    endings = [
        _Ending(cluster, each, commit=commit, deadline=deadline, turn=turn) for each in dict.fromkeys(opened)
    ]
    outcomes = await asyncio.gather(*(ending.run() for ending in endings), return_exceptions=True)
    errors = [each for each in outcomes if each is not None]
    if not errors:
        return
    first, *others = errors
    for other in others[:NOTES_MAX]:
        first.add_note(f"also: {other}")
    if len(others) > NOTES_MAX:
        first.add_note(f"and {len(others) - NOTES_MAX} more transactions were not ended")
    raise first


class _Ending:
    """Ends one transaction: retries EndTxn until its outcome is known."""

    def __init__(
        self,
        cluster: Cluster,
        opened: OpenTransaction,
        *,
        commit: bool,
        deadline: Deadline,
        turn: asyncio.Semaphore,
    ) -> None:
        self._opened = opened
        self._commit = commit
        self._deadline = deadline
        self._turn = turn
        self._requests = TransactionRequests(cluster, opened.transactional_id, _NO_TIMEOUT_MS)
        settings = cluster.settings
        self._backoff = Backoff(
            first_ms=min(CONCURRENT_TRANSACTIONS_RETRY_MS, max(1, settings.retry_backoff_ms)),
            max_ms=settings.retry_backoff_max_ms,
            rng=cluster.ports.rng,
        )
        # Assume version 2 until the coordinator's ApiVersions are known.
        self._is_v2 = True
        # A request had no response and may have succeeded.
        self._in_doubt = False

    async def run(self) -> None:
        try:
            await retry(self._try, deadline=self._deadline, backoff=self._backoff, what="END_TXN")
        except Closed:
            raise
        except ClientError as error:
            raise self._meaning(error) from error
        finally:
            await self._requests.close()

    async def _try(self) -> None:
        # Hold the semaphore per attempt, so that unavailable coordinators do not block other transactions.
        async with self._turn:
            self._is_v2 = await self._requests.speaks_v2()
            before, self._in_doubt = self._in_doubt, True
            try:
                who = Identity(self._opened.producer_id, self._opened.epoch)
                await self._requests.end(who, commit=self._commit, is_v2=self._is_v2)
            except (Refused, BrokerUnavailable):
                # This attempt has changed nothing.
                self._in_doubt = before
                raise

    def _meaning(self, error: ClientError) -> ClientError:
        in_doubt = self._commit and self._in_doubt
        if error.retriable:
            return self._unknown(error)
        if not isinstance(error, Refused):
            return TransactionsFailed(self._opened.transactional_id, error, in_doubt=in_doubt)
        if error.code is ErrorCode.INVALID_TXN_STATE:
            return TransactionNotOpen(self._opened, commit=self._commit, because=error)
        verdict = (
            verdict_without_coordinator(error.code)
            if isinstance(error, NoCoordinator)
            else verdict_of_end(error.code, commit=self._commit, is_sure=True)
        )
        match verdict:
            case Verdict.FENCED:
                return FencedBeforeItsEnd(self._opened, is_v2=self._is_v2, in_doubt=in_doubt)
            case Verdict.ABORT:
                return TransactionNotOpen(self._opened, commit=self._commit, because=error)
            case Verdict.BROKEN | Verdict.FORGOTTEN:
                return TransactionsFailed(self._opened.transactional_id, error, in_doubt=in_doubt)
        return self._unknown(error)

    def _unknown(self, last: ClientError) -> OutcomeUnknown:
        return OutcomeUnknown(
            self._opened.transactional_id,
            commit=self._commit,
            timeout_ms=self._deadline.timeout_ms,
            last=last,
        )
