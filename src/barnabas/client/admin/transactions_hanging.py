"""Finds hanging transactions: open in a partition, but unknown to every coordinator.

No coordinator will end them, so the last stable offset of the partition stops at their start. The search is
that of Kafka's tool: find producers with a transaction older than the maximum timeout, look up their
transactional ids, and describe those at the coordinators. A transaction that ends during the search
looks the same, so the partitions of all findings are checked again.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin import describing, records, topics, transactions
from barnabas.client.admin.call import Call, Outcome, all_of
from barnabas.client.admin.records import ProducerDescription
from barnabas.client.admin.transactions import TransactionDescription
from barnabas.client.errors import Refused, UnknownTopic
from barnabas.protocol.error_codes import ErrorCode

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Default of the broker's transaction.max.timeout.ms: no transaction is open for longer.
MAX_TIMEOUT_MS: Final = 15 * 60 * 1000
# Topics or partitions per request.
BATCH_MAX: Final = 500


class SearchStage(StrEnum):
    """The steps of a search, in order."""

    LIST_TOPICS = "list topics"
    DESCRIBE_TOPICS = "describe topics"
    DESCRIBE_PRODUCERS = "describe producers"
    LIST_TRANSACTIONS = "list transactions"
    DESCRIBE_TRANSACTIONS = "describe transactions"


@value
class SearchProgress:
    """Progress: `done` of `total` topics, partitions, producers or transactions."""

    stage: SearchStage
    done: int
    total: int


@value(kw_only=True)
class HangingTransaction:
    """`transactional_id` is None if no coordinator knows the producer. `producer` has the values for
    abort_transaction()."""

    partition: TopicPartition
    producer: ProducerDescription
    transactional_id: str | None


OnProgress: TypeAlias = Callable[[SearchProgress], object]


class HangingSearch:
    """One search. Every request has its own Call and timeout, because the whole search may take long."""

    def __init__(
        self,
        new_call: Callable[[], Call],
        *,
        broker: int | None,
        max_timeout_ms: int,
        tell: OnProgress | None,
    ) -> None:
        self._new_call = new_call
        self._broker = broker
        self._max_timeout_ms = max_timeout_ms
        self._tell = tell

    async def run(
        self, names: Iterable[str] | None, partitions: Iterable[TopicPartition] | None
    ) -> list[HangingTransaction]:
        """Return findings sorted by partition and producer. Default: search all partitions."""
        everywhere = names is None and partitions is None
        wanted = list(partitions) if partitions is not None else []
        if names is not None or everywhere:
            wanted += await self._partitions_of(names)
        open_ones = await self._open_for_long(sorted(set(wanted)), may_be_gone=everywhere)
        if not open_ones:
            return []
        ids = await self._ids_of({producer.producer_id for _, producer in open_ones})
        known = await self._described(sorted(set(ids.values())))
        suspects = [
            HangingTransaction(
                partition=tp, producer=producer, transactional_id=ids.get(producer.producer_id)
            )
            for tp, producer in open_ones
            if not is_known(tp, ids.get(producer.producer_id), known)
        ]
        return await self._still_open(suspects)

    # Which partitions

    async def _partitions_of(self, names: Iterable[str] | None) -> list[TopicPartition]:
        """Return the partitions of these topics (None: all), only those with a replica on `broker` if set."""
        may_be_gone = names is None
        if names is None:
            self._at(SearchStage.LIST_TOPICS, 0, 1)
            names = await topics.list_all(self._new_call(), internal=True)
        wanted, found = sorted(set(names)), list[TopicPartition]()
        for done, batch in _batches(wanted):
            self._at(SearchStage.DESCRIBE_TOPICS, done, len(wanted))
            outcomes = await describing.describe(
                self._new_call(), batch, operations=False, page_partitions=describing.PAGE_PARTITIONS
            )
            for topic in _there(outcomes, may_be_gone).values():
                found += [
                    TopicPartition(topic.name, each.partition)
                    for each in topic.partitions
                    if self._broker is None or self._broker in each.replicas
                ]
        return found

    # Open transactions

    async def _open_for_long(
        self, wanted: list[TopicPartition], *, may_be_gone: bool
    ) -> list[tuple[TopicPartition, ProducerDescription]]:
        found: list[tuple[TopicPartition, ProducerDescription]] = []
        for done, batch in _batches(wanted):
            self._at(SearchStage.DESCRIBE_PRODUCERS, done, len(wanted))
            call = self._new_call()
            outcomes = await records.describe_producers(call, batch, broker=self._broker)
            now_ms = call.cluster.ports.clock.now_ms()
            found += [
                (tp, each)
                for tp, producers in _there(outcomes, may_be_gone).items()
                for each in sorted(producers, key=lambda producer: producer.producer_id)
                if is_open_for_long(each, now_ms=now_ms, max_timeout_ms=self._max_timeout_ms)
            ]
        return found

    async def _still_open(self, suspects: list[HangingTransaction]) -> list[HangingTransaction]:
        tps = sorted({each.partition for each in suspects})
        open_now: set[tuple[TopicPartition, int, int | None]] = set()
        for done, batch in _batches(tps):
            self._at(SearchStage.DESCRIBE_PRODUCERS, done, len(tps))
            outcomes = await records.describe_producers(self._new_call(), batch, broker=self._broker)
            open_now |= {_begun(tp, each) for tp, found in _there(outcomes, True).items() for each in found}
        return [each for each in suspects if _begun(each.partition, each.producer) in open_now]

    # Coordinators

    async def _ids_of(self, producer_ids: set[int]) -> dict[int, str]:
        wanted, found = sorted(producer_ids), dict[int, str]()
        for done, batch in _batches(wanted):
            self._at(SearchStage.LIST_TRANSACTIONS, done, len(wanted))
            listed = await transactions.list_all(self._new_call(), producer_ids=batch)
            found |= {each.producer_id: name for name, each in listed.items()}
        return found

    async def _described(self, ids: Sequence[str]) -> dict[str, TransactionDescription]:
        self._at(SearchStage.DESCRIBE_TRANSACTIONS, 0, len(ids))
        outcomes = await transactions.describe(self._new_call(), ids)
        # Skip ids that expired since they were listed.
        return all_of({each: outcome for each, outcome in outcomes.items() if not _is_not_found(outcome)})

    def _at(self, stage: SearchStage, done: int, total: int) -> None:
        if self._tell is not None:
            self._tell(SearchProgress(stage, done, total))


def is_open_for_long(producer: ProducerDescription, *, now_ms: int, max_timeout_ms: int) -> bool:
    """Whether it has an open transaction older than the maximum timeout."""
    if producer.transaction_start_offset is None:
        return False
    return now_ms - producer.last_timestamp_ms > max_timeout_ms


def is_known(
    tp: TopicPartition, transactional_id: str | None, known: Mapping[str, TransactionDescription]
) -> bool:
    """Whether the coordinator's transaction contains the partition: then it will be ended."""
    description = None if transactional_id is None else known.get(transactional_id)
    return description is not None and tp in description.partitions


def _begun(tp: TopicPartition, producer: ProducerDescription) -> tuple[TopicPartition, int, int | None]:
    return tp, producer.producer_id, producer.transaction_start_offset


def _is_not_found(outcome: object) -> bool:
    return isinstance(outcome, Refused) and outcome.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def _there(outcomes: Mapping[K, Outcome[V]], may_be_gone: bool) -> dict[K, V]:
    """Return the results. In a search of all topics, ignore topics deleted in the meantime."""
    if may_be_gone:
        outcomes = {key: each for key, each in outcomes.items() if not isinstance(each, UnknownTopic)}
    return all_of(outcomes)


def _batches(wanted: list[K]) -> Iterator[tuple[int, list[K]]]:
    """Yield slices of BATCH_MAX items, with the number of preceding items."""
    for start in range(0, len(wanted), BATCH_MAX):
        yield start, wanted[start : start + BATCH_MAX]
