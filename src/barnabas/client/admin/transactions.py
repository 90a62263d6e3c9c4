"""Transactions: list and describe them, abort or fence them from outside, and find hanging ones.

ListTransactions goes to every broker; DescribeTransactions and InitProducerId, which fences a producer and
aborts its open transaction, go to the coordinators. WriteTxnMarkers goes to the partition leader and bypasses
the coordinator: it is for hanging transactions.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin import records, topic_descriptions, topics
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, all_of, check, outcome_of
from barnabas.client.admin.coordinators import TRANSACTION, ask_coordinators
from barnabas.client.admin.leaders import ask_leaders
from barnabas.client.admin.records import ProducerDescription
from barnabas.client.errors import ClientError, Refused, UnknownTopic
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.protocol.messages.transactions import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# List and describe


_DURATION_FROM, _PATTERN_FROM = 1, 2
_ANY_DURATION: Final = -1


class TransactionState(StrEnum):
    """Transaction states as in responses. UNKNOWN: only known to newer brokers."""

    ONGOING = "Ongoing"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_COMMIT = "PrepareCommit"
    COMPLETE_ABORT = "CompleteAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    EMPTY = "Empty"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


_STATES: Final = {state.value: state for state in TransactionState}


def state_of(text: str) -> TransactionState:
    return _STATES.get(text, TransactionState.UNKNOWN)


@value(kw_only=True)
class TransactionListing:
    """`coordinator` is the broker that listed it."""

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator: int


@value(kw_only=True)
class TransactionDescription:
    """`partitions` are sorted. `start_time_ms` is that of the last transaction, None before the first."""

    transactional_id: str
    coordinator: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: tuple[TopicPartition, ...]


async def list_transactions(
    call: Call,
    *,
    states: Collection[TransactionState] = (),
    producer_ids: Collection[int] = (),
    longer_than_ms: int | None = None,
    pattern: str | None = None,
) -> dict[str, TransactionListing]:
    """List transactions, sorted by transactional id, that pass all filters."""

    def make(api: NegotiatedApi) -> object:
        if longer_than_ms is not None and longer_than_ms >= 0:
            api.require(_DURATION_FROM, "filtering transactions by duration")
        if pattern:
            api.require(_PATTERN_FROM, "filtering transactions by id pattern (KIP-1152)")
        return ListTransactionsRequest(
            state_filters=[state.value for state in states],
            producer_id_filters=list(producer_ids),
            duration_filter=_ANY_DURATION if longer_than_ms is None else longer_than_ms,
            # An empty pattern matches all, so it is not sent to older brokers.
            transactional_id_pattern=pattern or None,
        )

    async def ask(broker: int) -> list[TransactionListing]:
        answer: ListTransactionsResponse = await call.ask(ApiKey.LIST_TRANSACTIONS, make, broker)
        check(answer.error_code, about=f"the transactions of broker {broker}")
        return [_listing(entry, broker) for entry in answer.transaction_states]

    shares = all_of(await call.ask_brokers("LIST_TRANSACTIONS", ask))
    # An id whose coordinator moves meanwhile may be listed by two brokers.
    listed = {listing.transactional_id: listing for share in shares.values() for listing in share}
    return dict(sorted(listed.items()))


def _listing(entry: Any, broker: int) -> TransactionListing:
    return TransactionListing(
        transactional_id=entry.transactional_id,
        producer_id=entry.producer_id,
        state=state_of(entry.transaction_state),
        coordinator=broker,
    )


async def describe_transactions(call: Call, ids: Iterable[str]) -> dict[str, Outcome[TransactionDescription]]:
    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[TransactionDescription]]:
        answer: DescribeTransactionsResponse = await call.ask(
            ApiKey.DESCRIBE_TRANSACTIONS,
            lambda _: DescribeTransactionsRequest(transactional_ids=share),
            node.id,
        )
        return {entry.transactional_id: _description(entry, node.id) for entry in answer.transaction_states}

    return await ask_coordinators(call, "DESCRIBE_TRANSACTIONS", ids, ask, TRANSACTION)


def _description(entry: Any, broker: int) -> Outcome[TransactionDescription]:
    partitions = {
        TopicPartition(each.topic, partition) for each in entry.topics for partition in each.partitions
    }
    found = TransactionDescription(
        transactional_id=entry.transactional_id,
        coordinator=broker,
        state=state_of(entry.transaction_state),
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        timeout_ms=entry.transaction_timeout_ms,
        start_time_ms=entry.transaction_start_time_ms if entry.transaction_start_time_ms >= 0 else None,
        partitions=tuple(sorted(partitions)),
    )
    return outcome_of(entry.error_code, found, about=TRANSACTION.about(entry.transactional_id))


# Abort and fence


@value(kw_only=True)
class FencedProducer:
    """The new producer id and epoch: producers with an older epoch are fenced."""

    producer_id: int
    producer_epoch: int


async def abort_transaction(
    call: Call, tp: TopicPartition, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> dict[TopicPartition, Outcome[None]]:
    """Write an abort marker. After a lost response it is written again; a second marker is harmless."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
        coordinator_epoch=coordinator_epoch,
    )

    def make(_: NegotiatedApi, __: list[TopicPartition]) -> object:
        return WriteTxnMarkersRequest(markers=[marker])

    return await ask_leaders(call, ApiKey.WRITE_TXN_MARKERS, [tp], make, _written)


def _written(answer: Any) -> dict[TopicPartition, Outcome[None]]:
    response: WriteTxnMarkersResponse = answer
    found: dict[TopicPartition, Outcome[None]] = {}
    for marker in response.markers:
        for topic in marker.topics:
            for entry in topic.partitions:
                tp = TopicPartition(topic.name, entry.partition_index)
                found[tp] = outcome_of(entry.error_code, None, about=str(tp))
    return found


async def fence_producers(
    call: Call, ids: Iterable[str], *, transaction_timeout_ms: int
) -> dict[str, Outcome[FencedProducer]]:
    async def one(broker: int, transactional_id: str) -> Outcome[FencedProducer]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms
        )
        try:
            entry: InitProducerIdResponse = await call.ask(ApiKey.INIT_PRODUCER_ID, lambda _: request, broker)
        except ClientError as error:
            return error
        fenced = FencedProducer(producer_id=entry.producer_id, producer_epoch=entry.producer_epoch)
        return outcome_of(entry.error_code, fenced, about=TRANSACTION.about(transactional_id))

    async def ask(node: Node, share: list[str]) -> Mapping[str, Outcome[FencedProducer]]:
        # InitProducerId has one id per request.
        return {each: await one(node.id, each) for each in share}

    return await ask_coordinators(call, "INIT_PRODUCER_ID", ids, ask, TRANSACTION)


# Hanging transactions


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
    """One search for transactions that are open in a partition, but unknown to every coordinator.

    No coordinator will end them, so the last stable offset of the partition stops at their start. The search
    is that of Kafka's tool: find producers with a transaction older than the maximum timeout, look up their
    transactional ids, and describe those at the coordinators. A transaction that ends during the search looks
    the same, so the partitions of all findings are checked again.

    Every request has its own Call and timeout, because the whole search may take long.
    """

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
        open_ones = await self._open_too_long(sorted(set(wanted)), may_be_gone=everywhere)
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
            self._report(SearchStage.LIST_TOPICS, 0, 1)
            names = await topics.list_topics(self._new_call(), internal=True)
        wanted, found = sorted(set(names)), list[TopicPartition]()
        for done, batch in _batches(wanted):
            self._report(SearchStage.DESCRIBE_TOPICS, done, len(wanted))
            outcomes = await topic_descriptions.describe_topics(
                self._new_call(), batch, operations=False, page_partitions=topic_descriptions.PAGE_PARTITIONS
            )
            for topic in _existing(outcomes, may_be_gone).values():
                found += [
                    TopicPartition(topic.name, each.partition)
                    for each in topic.partitions
                    if self._broker is None or self._broker in each.replicas
                ]
        return found

    # Open transactions

    async def _open_too_long(
        self, wanted: list[TopicPartition], *, may_be_gone: bool
    ) -> list[tuple[TopicPartition, ProducerDescription]]:
        found: list[tuple[TopicPartition, ProducerDescription]] = []
        for done, batch in _batches(wanted):
            self._report(SearchStage.DESCRIBE_PRODUCERS, done, len(wanted))
            call = self._new_call()
            outcomes = await records.describe_producers(call, batch, broker=self._broker)
            now_ms = call.cluster.ports.clock.now_ms()
            found += [
                (tp, each)
                for tp, producers in _existing(outcomes, may_be_gone).items()
                for each in sorted(producers, key=lambda producer: producer.producer_id)
                if is_open_too_long(each, now_ms=now_ms, max_timeout_ms=self._max_timeout_ms)
            ]
        return found

    async def _still_open(self, suspects: list[HangingTransaction]) -> list[HangingTransaction]:
        tps = sorted({each.partition for each in suspects})
        open_now: set[tuple[TopicPartition, int, int | None]] = set()
        for done, batch in _batches(tps):
            self._report(SearchStage.DESCRIBE_PRODUCERS, done, len(tps))
            outcomes = await records.describe_producers(self._new_call(), batch, broker=self._broker)
            open_now |= {
                _transaction_key(tp, each)
                for tp, found in _existing(outcomes, True).items()
                for each in found
            }
        return [each for each in suspects if _transaction_key(each.partition, each.producer) in open_now]

    # Coordinators

    async def _ids_of(self, producer_ids: set[int]) -> dict[int, str]:
        wanted, found = sorted(producer_ids), dict[int, str]()
        for done, batch in _batches(wanted):
            self._report(SearchStage.LIST_TRANSACTIONS, done, len(wanted))
            listed = await list_transactions(self._new_call(), producer_ids=batch)
            found |= {each.producer_id: name for name, each in listed.items()}
        return found

    async def _described(self, ids: Sequence[str]) -> dict[str, TransactionDescription]:
        self._report(SearchStage.DESCRIBE_TRANSACTIONS, 0, len(ids))
        outcomes = await describe_transactions(self._new_call(), ids)
        # Skip ids that expired since they were listed.
        return all_of({each: outcome for each, outcome in outcomes.items() if not _is_not_found(outcome)})

    def _report(self, stage: SearchStage, done: int, total: int) -> None:
        if self._tell is not None:
            self._tell(SearchProgress(stage, done, total))


def is_open_too_long(producer: ProducerDescription, *, now_ms: int, max_timeout_ms: int) -> bool:
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


def _transaction_key(
    tp: TopicPartition, producer: ProducerDescription
) -> tuple[TopicPartition, int, int | None]:
    return tp, producer.producer_id, producer.transaction_start_offset


def _is_not_found(outcome: object) -> bool:
    return isinstance(outcome, Refused) and outcome.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def _existing(outcomes: Mapping[K, Outcome[V]], may_be_gone: bool) -> dict[K, V]:
    """Return the results. In a search of all topics, ignore topics deleted in the meantime."""
    if may_be_gone:
        outcomes = {key: each for key, each in outcomes.items() if not isinstance(each, UnknownTopic)}
    return all_of(outcomes)


def _batches(wanted: list[K]) -> Iterator[tuple[int, list[K]]]:
    """Yield slices of BATCH_MAX items, with the number of preceding items."""
    for start in range(0, len(wanted), BATCH_MAX):
        yield start, wanted[start : start + BATCH_MAX]
