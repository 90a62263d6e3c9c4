"""The calls of the admin client about transactions: what Admin inherits from here.

A transactional id is asked for at its coordinator, a partition at its leader. Coordinators that are loading
or have moved are waited for and looked up again. What the calls return is declared in transactions.py,
transactions_ending.py and transactions_hanging.py, which are loaded by the calls. Who has written to a
partition, with its open transaction, is told by describe_producers() of Admin.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.call import Outcome, all_of, only
from barnabas.client.admin.group_calls import TopicPartitionLike
from barnabas.client.admin.lifetime import AdminLifetime

if TYPE_CHECKING:
    from barnabas.client.admin.transactions import (
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from barnabas.client.admin.transactions_ending import FencedProducer
    from barnabas.client.admin.transactions_hanging import HangingTransaction, SearchProgress
    from barnabas.client.producer.handed_over import OpenTransaction


class TransactionCalls(AdminLifetime):
    async def list_transactions(
        self,
        *,
        states: "Collection[TransactionState]" = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: float | None = None,
    ) -> "dict[str, TransactionListing]":
        """By transactional id, in their order: all, or those in these states, of these producers, that have
        been running for longer, and whose whole id the regular expression (RE2) matches."""
        from barnabas.client.admin import transactions

        return await transactions.list_all(
            self._call(timeout_ms),
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=longer_than_ms,
            pattern=pattern,
        )

    async def describe_transaction(
        self, transactional_id: str, *, timeout_ms: float | None = None
    ) -> "TransactionDescription":
        """Refused with TRANSACTIONAL_ID_NOT_FOUND if there is none."""
        from barnabas.client.admin import transactions

        return only(await transactions.describe(self._call(timeout_ms), [transactional_id]))

    async def describe_transactions(
        self, ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> "dict[str, TransactionDescription]":
        from barnabas.client.admin import transactions

        return all_of(await transactions.describe(self._call(timeout_ms), ids))

    async def find_hanging(
        self,
        topics: Iterable[str] | None = None,
        *,
        partitions: Iterable[TopicPartitionLike] | None = None,
        broker: int | None = None,
        max_timeout_ms: int | None = None,
        tell: "Callable[[SearchProgress], object] | None" = None,
        timeout_ms: float | None = None,
    ) -> "list[HangingTransaction]":
        """Transactions that are open in partitions and that no coordinator will ever end.

        In these topics and partitions, or in all. With `broker`, in the replicas that it has, and as it knows
        them. `max_timeout_ms` is the longest that a transaction may take (15 minutes): younger ones are
        passed over. `tell` is told how far the search is, and `timeout_ms` is for each of its steps.
        """
        from barnabas.client.admin.transactions_hanging import MAX_TIMEOUT_MS, HangingSearch

        search = HangingSearch(
            lambda: self._call(timeout_ms),
            broker=broker,
            max_timeout_ms=MAX_TIMEOUT_MS if max_timeout_ms is None else max_timeout_ms,
            tell=tell,
        )
        tps = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        return await search.run(topics, tps)

    async def end_transactions(
        self, opened: "Iterable[OpenTransaction]", *, commit: bool, timeout_ms: float | None = None
    ) -> None:
        """Commit or abort transactions that producers handed over, which need not be there any more.

        Each is atomic, not all of them together. All are tried, and the first error is raised, with notes of
        the others: ProducerFenced if a newer producer has the id, TransactionNotOpen if it was ended in
        another way, TransactionsFailed if the coordinator refuses it, and OutcomeUnknown if nobody answered
        in time. The same call may be made again, also for those that were ended by it.
        """
        from barnabas.client.admin import transactions_handed_over

        call = self._call(timeout_ms)
        await transactions_handed_over.end_all(self.cluster, opened, commit=commit, deadline=call.deadline)

    async def abort_transaction(
        self,
        partition: TopicPartitionLike,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timeout_ms: float | None = None,
    ) -> None:
        """Abort one that hangs, in one partition, past its coordinator.

        Of what find_hanging() found; where that has no coordinator epoch it is 0.
        """
        from barnabas.client.admin import transactions_ending

        only(
            await transactions_ending.abort(
                self._call(timeout_ms),
                TopicPartition(*partition),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
            )
        )

    async def fence_producer(
        self,
        transactional_id: str,
        *,
        transaction_timeout_ms: int | None = None,
        timeout_ms: float | None = None,
    ) -> "FencedProducer":
        """Let nobody go on who uses this id, and have what is open aborted.

        The id keeps this transaction time-out until a producer gives it another; as in Kafka's client it is
        request.timeout.ms unless it is given.
        """
        return only(await self._fence([transactional_id], transaction_timeout_ms, timeout_ms))

    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        transaction_timeout_ms: int | None = None,
        timeout_ms: float | None = None,
    ) -> "dict[str, FencedProducer]":
        """The same for several."""
        return all_of(await self._fence(ids, transaction_timeout_ms, timeout_ms))

    async def _fence(
        self, ids: Iterable[str], transaction_timeout_ms: int | None, timeout_ms: float | None
    ) -> "dict[str, Outcome[FencedProducer]]":
        from barnabas.client.admin import transactions_ending

        if transaction_timeout_ms is None:
            transaction_timeout_ms = self.settings.request_timeout_ms
        return await transactions_ending.fence(
            self._call(timeout_ms), ids, transaction_timeout_ms=transaction_timeout_ms
        )
