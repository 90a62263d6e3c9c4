"""DescribeTransactions and ListTransactions with its filters."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.admin import TransactionFilter, describe, transactions_of
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TopicData,
)
from support.txn.model import FIRST_ID, TxnWorld, given_to

pytestmark = pytest.mark.kernel


def three() -> TxnWorld:
    """Of the ids a, b and c: a is Empty, b Ongoing since 100 ms, c CompleteCommit and began 300 ms ago."""
    world = TxnWorld()
    world.init("a")
    b, c = given_to(world.init("b")), given_to(world.init("c"))
    world.add(c, TopicPartition("orders", 1), transactional_id="c")
    world.end(c, transactional_id="c")
    world.mark_all()
    world.tick_ms = 200
    for partition in (3, 1):
        world.add(b, TopicPartition("orders", partition), transactional_id="b")
    world.add(b, TopicPartition("apples", 0), transactional_id="b")
    world.tick_ms = 300
    return world


def listed(world: TxnWorld, **how: object) -> list[str]:
    answer = asked(world, **how)
    assert answer.error_code == ErrorCode.NONE
    return [one.transactional_id for one in answer.transaction_states]


def asked(world: TxnWorld, **how: object) -> ListTransactionsResponse:
    return answer_of([world.shard], ListTransactionsRequest(**how), world)  # type: ignore[arg-type]


def answer_of(
    shards: list[TxnShard], request: ListTransactionsRequest, world: TxnWorld
) -> ListTransactionsResponse:
    wanted = TransactionFilter(request)
    rows = [
        one
        for one in transactions_of([shard.table for shard in shards], wanted, world.now)
        if one is not None
    ]
    return ListTransactionsResponse(unknown_state_filters=wanted.unknown_states, transaction_states=rows)


def test_a_transaction_is_described() -> None:
    world = three()

    assert describe(world.shard.table, "b") == DescribeTransactionsResponseTransactionState(
        transactional_id="b",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=world.now.ms - 100,
        producer_id=FIRST_ID + 2,
        producer_epoch=0,
        topics=[TopicData(topic="apples", partitions=[0]), TopicData(topic="orders", partitions=[1, 3])],
    )


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("", ErrorCode.INVALID_REQUEST), ("z", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)],
)
def test_an_unknown_transactional_id_is_not_described(transactional_id: str, code: ErrorCode) -> None:
    answer = describe(three().shard.table, transactional_id)

    assert answer == DescribeTransactionsResponseTransactionState(
        transactional_id=transactional_id, error_code=code
    )


def test_without_filters_all_are_listed() -> None:
    answer = asked(three())

    assert [
        (one.transactional_id, one.producer_id, one.transaction_state) for one in answer.transaction_states
    ] == [
        ("a", FIRST_ID + 1, "Empty"),
        ("b", FIRST_ID + 2, "Ongoing"),
        ("c", FIRST_ID + 3, "CompleteCommit"),
    ]


def test_of_several_shards_all_are_listed() -> None:
    answer = answer_of([three().shard, three().shard], ListTransactionsRequest(), three())

    assert [one.transactional_id for one in answer.transaction_states] == ["a", "b", "c", "a", "b", "c"]


def test_the_state_filter_reports_unknown_states() -> None:
    world = three()

    assert listed(world, state_filters=["Ongoing", "Empty"]) == ["a", "b"]
    answer = asked(world, state_filters=["Ongoing", "ongoing", "Dead", "ongoing"])
    assert [one.transactional_id for one in answer.transaction_states] == ["b"]
    assert answer.unknown_state_filters == ["ongoing"]


def test_unknown_states_match_no_transaction() -> None:
    assert listed(three(), state_filters=["Odd"]) == []
    assert listed(three(), state_filters=["PrepareEpochFence"]) == []


def test_those_of_the_producer_ids_are_listed() -> None:
    assert listed(three(), producer_id_filters=[FIRST_ID + 3, 9]) == ["c"]


@pytest.mark.parametrize(
    ("duration", "ids"),
    [(-1, ["a", "b", "c"]), (0, ["a", "b", "c"]), (99, ["a", "b", "c"]), (100, ["a", "c"]), (300, ["a"])],
)
def test_the_duration_filter_treats_unstarted_transactions_as_kafka_does(
    duration: int, ids: list[str]
) -> None:
    assert listed(three(), duration_filter=duration) == ids


def test_filters_are_combined_with_and() -> None:
    assert listed(three(), state_filters=["Ongoing"], duration_filter=200) == []
    assert listed(three(), state_filters=["Ongoing"], producer_id_filters=[FIRST_ID + 2]) == ["b"]
