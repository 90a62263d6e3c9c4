"""Hanging transactions: definition and search."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.call import PartlyRefused
from barnabas.client.admin.records import ProducerDescription
from barnabas.client.admin.transactions import (
    BATCH_MAX,
    MAX_TIMEOUT_MS,
    SearchProgress,
    SearchStage,
    is_open_too_long,
)
from barnabas.client.errors import UnknownTopic
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.transaction_admin import (
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    PartitionResponse,
    ProducerState,
    TopicData,
    TopicResponse,
)
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.peers import PORT, in_world
from support.our_client.scripted_brokers import ScriptedBroker, listening_all, metadata_of

PRODUCERS, LIST, DESCRIBE = (
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.DESCRIBE_TRANSACTIONS,
)
A_0, A_1 = TopicPartition("a", 0), TopicPartition("a", 1)
NOT_FOUND, NOT_LEADER = int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def writer(*, open_from: int | None = 0, last_ms: int = 0) -> ProducerDescription:
    return ProducerDescription(
        producer_id=1,
        producer_epoch=0,
        last_sequence=0,
        last_timestamp_ms=last_ms,
        coordinator_epoch=None,
        transaction_start_offset=open_from,
    )


def test_a_transaction_is_open_for_long_if_no_coordinator_would_let_it() -> None:
    assert is_open_too_long(writer(), now_ms=101, max_timeout_ms=100)
    assert not is_open_too_long(writer(), now_ms=100, max_timeout_ms=100)
    assert not is_open_too_long(writer(open_from=None), now_ms=101, max_timeout_ms=100)


# The search


class Cluster:
    """State of the partitions and the coordinator of a scripted broker."""

    def __init__(self, world: World, leaders: Mapping[str, list[int]]) -> None:
        self._now_ms = world.clock.now_ms()
        self.metadata: Any = metadata_of(leaders)
        # Open transactions: producer and start offset.
        self.open: dict[TopicPartition, tuple[int, int]] = {}
        # The coordinator's ids, with producer and partitions.
        self.known: dict[str, tuple[int, list[TopicPartition]]] = {}
        self.expired: set[str] = set()
        # The responses of the partitions, in order.
        self.codes: Iterator[int] = repeat(0)
        # Called before transactions are described.
        self.meanwhile: Callable[[], object] = lambda: None
        self.broker = ScriptedBroker(
            says={
                ApiKey.METADATA: lambda request: self.metadata(request),
                ApiKey.FIND_COORDINATOR: self._coordinators,
                PRODUCERS: self._producers,
                LIST: self._listed,
                DESCRIBE: self._described,
            }
        )

    def _producers(self, request: Any) -> DescribeProducersResponse:
        code = next(self.codes)
        topics = [
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(
                        partition_index=number,
                        error_code=code,
                        active_producers=self._active(TopicPartition(topic.name, number)),
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
        return DescribeProducersResponse(topics=topics)

    def _active(self, tp: TopicPartition) -> list[ProducerState]:
        if tp not in self.open:
            return []
        producer, offset = self.open[tp]
        long_ago = self._now_ms - 2 * MAX_TIMEOUT_MS
        return [
            ProducerState(
                producer_id=producer,
                producer_epoch=0,
                last_timestamp=long_ago,
                coordinator_epoch=-1,
                current_txn_start_offset=offset,
            )
        ]

    def _coordinators(self, request: Any) -> FindCoordinatorResponse:
        rows = [
            Coordinator(key=key, node_id=1, host="127.0.0.1", port=PORT, error_code=0, error_message="")
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    def _listed(self, request: Any) -> ListTransactionsResponse:
        rows = [
            ListTransactionsResponseTransactionState(
                transactional_id=name, producer_id=producer, transaction_state="Ongoing"
            )
            for name, (producer, _) in self.known.items()
            if producer in request.producer_id_filters
        ]
        return ListTransactionsResponse(error_code=0, transaction_states=rows)

    def _described(self, request: Any) -> DescribeTransactionsResponse:
        self.meanwhile()
        rows = [
            DescribeTransactionsResponseTransactionState(
                error_code=NOT_FOUND if name in self.expired else 0,
                transactional_id=name,
                transaction_state="Ongoing",
                transaction_timeout_ms=1,
                transaction_start_time_ms=0,
                producer_id=self.known[name][0],
                producer_epoch=0,
                topics=[TopicData(topic=tp.topic, partitions=[tp.partition]) for tp in self.known[name][1]],
            )
            for name in request.transactional_ids
        ]
        return DescribeTransactionsResponse(transaction_states=rows)


@in_world
async def test_a_transaction_unknown_to_coordinators_hangs(world: World) -> None:
    cluster = Cluster(world, {"a": [1, 1]})
    cluster.open = {A_1: (9, 40)}

    async with listening_all(cluster.broker), new_admin(world) as admin:
        (found,) = await admin.find_hanging(["a"])

    assert (found.partition, found.transactional_id) == (A_1, None)
    assert (found.producer.producer_id, found.producer.transaction_start_offset) == (9, 40)
    assert cluster.broker.asked_for(DESCRIBE) == []


@in_world
async def test_only_partitions_outside_the_coordinator_s_transaction_hang(world: World) -> None:
    cluster = Cluster(world, {"a": [1, 1]})
    cluster.open = {A_0: (9, 40), A_1: (9, 0)}
    cluster.known = {"t": (9, [A_0])}

    async with listening_all(cluster.broker), new_admin(world) as admin:
        found = await admin.find_hanging(["a"])

    assert [(each.partition, each.transactional_id) for each in found] == [(A_1, "t")]


@in_world
async def test_an_open_transaction_of_an_expired_id_hangs(world: World) -> None:
    cluster = Cluster(world, {"a": [1]})
    cluster.open = {A_0: (9, 40)}
    cluster.known, cluster.expired = {"t": (9, [A_0])}, {"t"}

    async with listening_all(cluster.broker), new_admin(world) as admin:
        found = await admin.find_hanging(["a"])

    assert [each.partition for each in found] == [A_0]


@in_world
async def test_a_transaction_that_is_not_open_for_long_is_passed_over(world: World) -> None:
    cluster = Cluster(world, {"a": [1]})
    cluster.open = {A_0: (9, 40)}

    async with listening_all(cluster.broker), new_admin(world) as admin:
        found = await admin.find_hanging(["a"], max_timeout_ms=3 * MAX_TIMEOUT_MS)

    assert found == []
    # Without candidates, no transactions are listed or described.
    assert cluster.broker.asked_for(LIST) == []


@in_world
async def test_a_transaction_that_ends_during_the_search_does_not_hang(world: World) -> None:
    cluster = Cluster(world, {"a": [1, 1]})
    cluster.open = {A_0: (9, 40), A_1: (9, 7)}
    cluster.known = {"t": (9, [A_0, A_1])}

    def ended() -> None:
        cluster.known["t"] = (9, [])
        # In one partition the next transaction has begun.
        cluster.open = {A_1: (9, 8)}

    cluster.meanwhile = ended
    async with listening_all(cluster.broker), new_admin(world) as admin:
        found = await admin.find_hanging(["a"])

    assert found == []


@in_world
async def test_with_a_broker_only_its_replicas_are_searched_on_that_broker(world: World) -> None:
    cluster = Cluster(world, {"a": [2, 2, 2]})
    told = metadata_of({"a": [2, 2, 2]})

    def only_one_is_here(request: Any) -> object:
        answer = told(request)
        for topic in answer.topics:
            for number, partition in enumerate(topic.partitions):
                partition.replica_nodes = [2, 1] if number == 1 else [2]
        return answer

    cluster.metadata = only_one_is_here
    cluster.open = {TopicPartition("a", number): (9, 40) for number in range(3)}

    async with listening_all(cluster.broker), new_admin(world) as admin:
        found = await admin.find_hanging(broker=1)

    assert [each.partition for each in found] == [A_1]


@in_world
async def test_a_topic_that_is_deleted_during_the_search_is_not_missed(world: World) -> None:
    cluster = Cluster(world, {"a": [1]})
    cluster.open = {A_0: (9, 40)}
    everything = metadata_of({"a": [1], "gone": [1]})
    named = metadata_of({"a": [1]})
    cluster.metadata = lambda request: everything(request) if request.topics is None else named(request)

    async with listening_all(cluster.broker), new_admin(world) as admin:
        found = await admin.find_hanging()
        with pytest.raises(PartlyRefused) as caught:
            await admin.find_hanging(["gone"])

    assert [each.partition for each in found] == [A_0]
    assert isinstance(caught.value.refused["gone"], UnknownTopic)


@in_world
async def test_each_step_of_a_long_search_has_its_own_timeout(world: World) -> None:
    steps = 4
    cluster = Cluster(world, {"a": [1] * (steps * BATCH_MAX)})
    # Every step needs two attempts, which takes 0.1 s.
    cluster.codes = chain(*[(NOT_LEADER, 0)] * steps)
    told: list[SearchProgress] = []

    async with listening_all(cluster.broker), new_admin(world) as admin:
        began_ms = world.clock.monotonic_ms()
        found = await admin.find_hanging(["a"], tell=told.append, timeout_ms=250)
        took_ms = world.clock.monotonic_ms() - began_ms

    assert found == []
    assert took_ms > 250
    assert [each.done for each in told if each.stage is SearchStage.DESCRIBE_PRODUCERS] == [
        BATCH_MAX * number for number in range(steps)
    ]
    asked = cluster.broker.asked_for(PRODUCERS)
    assert max(len(topic.partition_indexes) for each in asked for topic in each.topics) == BATCH_MAX
