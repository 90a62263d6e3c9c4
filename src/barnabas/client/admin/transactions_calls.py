"""Mixin of Admin with the calls about transactions.

Requests about a transactional id go to its coordinator, requests about a partition to its leader. Loading or
moved coordinators are retried. Result types are declared in transactions.py, transactions_ending.py and
transactions_hanging.py, which the calls import late. Admin.describe_producers() returns the producers and
open transactions of a partition.
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
    from barnabas.client.producer.transaction import OpenTransaction


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
        """List transactions, sorted by transactional id, filtered by state, producer id, minimum duration and
        a regular expression (RE2) that must match the full id."""
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
        """Describe a transaction. Refused with TRANSACTIONAL_ID_NOT_FOUND if the id is unknown."""
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
        """Find hanging transactions: open in a partition, but unknown to every coordinator.

        Search these topics and partitions (default: all). With `broker`, search its replicas on that broker.
        Transactions younger than `max_timeout_ms` (default: 15 minutes) are skipped. `tell` is called with
        the progress, and `timeout_ms` applies to each step.
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
        """Commit or abort transactions that producers handed over; the producers need not exist any more.

        Each transaction is atomic, not all of them together. All are tried, and the first error is raised
        with notes about the others: ProducerFenced if a newer producer uses the id, TransactionNotOpen if it
        was already ended differently, TransactionsFailed if the coordinator rejects the request, and
        OutcomeUnknown without a response in time. The call may be repeated, also for transactions that it
        has already ended.
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
        """Abort a hanging transaction in one partition, bypassing its coordinator.

        Use the values from find_hanging(), and coordinator epoch 0 if it has none.
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
        """Fence all producers of a transactional id and abort its open transaction.

        The id keeps `transaction_timeout_ms` (default, as in Kafka's client: request.timeout.ms) until a
        producer sets another.
        """
        return only(await self._fence([transactional_id], transaction_timeout_ms, timeout_ms))

    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        transaction_timeout_ms: int | None = None,
        timeout_ms: float | None = None,
    ) -> "dict[str, FencedProducer]":
        """Like fence_producer(), for several ids."""
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
