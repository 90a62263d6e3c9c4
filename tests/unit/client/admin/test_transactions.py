"""The admin client's calls about transactions: routing, retries and results.

The brokers are scripted: a good one does not say that it coordinates nothing any more, or that it is old.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.call import PartlyRefused
from barnabas.client.admin.coordinators import KEYS_IN_REQUEST_MAX
from barnabas.client.admin.transactions import TransactionState
from barnabas.client.errors import Refused, UnsupportedByBroker
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.transaction_admin import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
)
from barnabas.protocol.messages.transactions import (
    InitProducerIdResponse,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from barnabas.sim.world import World
from support.our_client.admin_worlds import new_admin
from support.our_client.peers import PORT, in_world
from support.our_client.scripted_brokers import ScriptedBroker, listening_all, metadata_of

METADATA, FIND, LIST = ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.LIST_TRANSACTIONS
DESCRIBE, INIT, MARK = ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.INIT_PRODUCER_ID, ApiKey.WRITE_TXN_MARKERS
NONE, LOADING, MOVED = 0, int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), int(ErrorCode.NOT_COORDINATOR)
NOT_FOUND, BUSY = int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), int(ErrorCode.CONCURRENT_TRANSACTIONS)
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
# FindCoordinator's type of a transactional id.
TRANSACTION = 1


def in_turn(*answers: object) -> Any:
    """Yield responses in order, then the last one forever; a function is called with the request."""
    left = list(answers)

    def say(request: Any) -> object:
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer(request) if callable(answer) else answer

    return say


def found_at(nodes: Callable[[str], int]) -> Callable[[Any], FindCoordinatorResponse]:
    """The coordinator of each id, in the format of the version."""

    def where(key: str) -> dict[str, Any]:
        return {"node_id": nodes(key), "host": "127.0.0.1", "port": PORT + nodes(key) - 1, "error_code": 0}

    def say(request: Any) -> FindCoordinatorResponse:
        if not request.coordinator_keys:
            return FindCoordinatorResponse(error_message=None, **where(request.key))
        rows = [Coordinator(key=key, error_message="", **where(key)) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=rows)

    return say


def broker(
    says: Mapping[ApiKey, Any],
    *,
    node: int = 1,
    nodes: tuple[int, ...] = (1,),
    finds: Any = None,
    leaders: Any = None,
    newest: Mapping[ApiKey, int] | None = None,
) -> ScriptedBroker:
    base = {
        METADATA: leaders or metadata_of({"orders": [1, 1]}, brokers=nodes),
        FIND: finds or found_at(lambda _: 1),
    }
    return ScriptedBroker(node, says={**base, **says}, newest=newest)


def described(codes: Mapping[str, int], *, start_ms: int = 5) -> Callable[[Any], object]:
    def say(request: Any) -> object:
        rows = [
            DescribeTransactionsResponseTransactionState(
                error_code=codes.get(name, NONE),
                transactional_id=name,
                transaction_state="Ongoing",
                transaction_timeout_ms=60_000,
                transaction_start_time_ms=start_ms,
                producer_id=7,
                producer_epoch=3,
                topics=[TopicData(topic="orders", partitions=[1, 0])],
            )
            for name in request.transactional_ids
        ]
        return DescribeTransactionsResponse(transaction_states=rows)

    return say


# Describe


@in_world
async def test_each_coordinator_gets_one_request_for_its_ids(world: World) -> None:
    finds = found_at(lambda name: 1 if name < "m" else 2)
    one = broker({DESCRIBE: described({})}, nodes=(1, 2), finds=finds)
    two = broker({DESCRIBE: described({})}, node=2, nodes=(1, 2), finds=finds)

    async with listening_all(one, two), new_admin(world) as admin:
        found = await admin.describe_transactions(["a", "z", "b"])

    assert list(found) == ["a", "z", "b"]
    assert [found[name].coordinator for name in found] == [1, 2, 1]
    assert found["a"].partitions == (ORDERS_0, ORDERS_1)
    assert [each.asked_for(DESCRIBE)[0].transactional_ids for each in (one, two)] == [["a", "b"], ["z"]]
    [asked] = one.asked_for(FIND) + two.asked_for(FIND)
    assert asked.key_type == TRANSACTION


@in_world
async def test_coordinators_are_found_one_by_one_on_old_brokers(world: World) -> None:
    old = broker({DESCRIBE: described({})}, newest={FIND: 3})

    async with listening_all(old), new_admin(world) as admin:
        await admin.describe_transactions(["a", "b"])

    assert [(each.key, each.key_type) for each in old.asked_for(FIND)] == [("a", 1), ("b", 1)]


@in_world
async def test_a_broker_without_transactions_is_reported_as_too_old(world: World) -> None:
    ancient = broker({DESCRIBE: described({})}, newest={FIND: 0})

    async with listening_all(ancient), new_admin(world) as admin:
        with pytest.raises(UnsupportedByBroker, match="the coordinator of a transactional id"):
            await admin.describe_transaction("a")

    assert ancient.asked_for(FIND) == []


@in_world
async def test_a_moved_id_is_requested_from_its_new_coordinator(world: World) -> None:
    finds = in_turn(found_at(lambda _: 1), found_at(lambda _: 2))
    one = broker({DESCRIBE: described({"a": MOVED})}, nodes=(1, 2), finds=finds)
    two = broker({DESCRIBE: described({})}, node=2, nodes=(1, 2), finds=finds)

    async with listening_all(one, two), new_admin(world) as admin:
        found = await admin.describe_transaction("a")

    assert found.coordinator == 2


@in_world
async def test_only_a_loading_coordinator_is_asked_again(world: World) -> None:
    one = broker({DESCRIBE: in_turn(described({"a": LOADING}), described({}))})

    async with listening_all(one), new_admin(world) as admin:
        await admin.describe_transactions(["a", "b"])

    assert [each.transactional_ids for each in one.asked_for(DESCRIBE)] == [["a", "b"], ["a"]]


@in_world
async def test_an_unknown_id_does_not_hide_the_others(world: World) -> None:
    one = broker({DESCRIBE: described({"a": NOT_FOUND}, start_ms=-1)})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(PartlyRefused) as caught:
            await admin.describe_transactions(["a", "b"])

    assert caught.value.refused["a"].code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert caught.value.done["b"].start_time_ms is None
    assert len(one.asked_for(DESCRIBE)) == 1


@in_world
async def test_a_lost_coordinator_connection_only_retries_its_own_ids(world: World) -> None:
    finds = found_at(lambda name: 1 if name < "m" else 2)
    one = broker({DESCRIBE: described({})}, nodes=(1, 2), finds=finds)
    two = broker({DESCRIBE: in_turn(None, described({}))}, node=2, nodes=(1, 2), finds=finds)

    async with listening_all(one, two), new_admin(world) as admin:
        found = await admin.describe_transactions(["a", "z"])

    assert sorted(found) == ["a", "z"]
    assert [len(each.asked_for(DESCRIBE)) for each in (one, two)] == [1, 2]


@in_world
async def test_no_request_names_more_ids_than_the_limit(world: World) -> None:
    one = broker({DESCRIBE: described({})})

    async with listening_all(one), new_admin(world) as admin:
        await admin.describe_transactions([f"t{number}" for number in range(KEYS_IN_REQUEST_MAX + 1)])

    for key, names in ((DESCRIBE, "transactional_ids"), (FIND, "coordinator_keys")):
        assert [len(getattr(each, names)) for each in one.asked_for(key)] == [KEYS_IN_REQUEST_MAX, 1]


# List


def listed(*rows: tuple[str, int, str], code: int = NONE) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        error_code=code,
        transaction_states=[
            ListTransactionsResponseTransactionState(
                transactional_id=name, producer_id=producer, transaction_state=state
            )
            for name, producer, state in rows
        ],
    )


@in_world
async def test_the_transactions_of_all_brokers_are_listed_by_id(world: World) -> None:
    one = broker({LIST: in_turn(listed(("z", 1, "Ongoing"), ("b", 2, "Empty")))}, nodes=(1, 2))
    two = broker({LIST: in_turn(listed(code=LOADING), listed(("a", 3, "Dreaming")))}, node=2, nodes=(1, 2))

    async with listening_all(one, two), new_admin(world) as admin:
        found = await admin.list_transactions()

    assert [(name, each.coordinator, each.state) for name, each in found.items()] == [
        ("a", 2, TransactionState.UNKNOWN),
        ("b", 1, TransactionState.EMPTY),
        ("z", 1, TransactionState.ONGOING),
    ]
    assert len(one.asked_for(LIST)) == 1


@in_world
async def test_filters_are_for_the_broker_to_choose_by(world: World) -> None:
    one = broker({LIST: in_turn(listed())})

    async with listening_all(one), new_admin(world) as admin:
        await admin.list_transactions(
            states=[TransactionState.ONGOING], producer_ids=[4, 5], longer_than_ms=0, pattern="o.*"
        )
        await admin.list_transactions()

    chosen, everything = one.asked_for(LIST)
    assert (chosen.state_filters, chosen.producer_id_filters) == (["Ongoing"], [4, 5])
    assert (chosen.duration_filter, chosen.transactional_id_pattern) == (0, "o.*")
    assert (everything.state_filters, everything.producer_id_filters) == ([], [])
    assert (everything.duration_filter, everything.transactional_id_pattern) == (-1, None)


@in_world
async def test_an_old_broker_cannot_choose_by_duration_or_pattern(world: World) -> None:
    old = broker({LIST: in_turn(listed(("a", 1, "Empty")))}, newest={LIST: 0})

    async with listening_all(old), new_admin(world) as admin:
        # These filters match all, so they are not sent.
        found = await admin.list_transactions(producer_ids=[1], longer_than_ms=-1, pattern="")
        with pytest.raises(UnsupportedByBroker, match="by duration"):
            await admin.list_transactions(longer_than_ms=5)
        with pytest.raises(UnsupportedByBroker, match="KIP-1152"):
            await admin.list_transactions(pattern="o.*")

    assert list(found) == ["a"]
    assert len(old.asked_for(LIST)) == 1


# Abort


def marked(code: int) -> Callable[[Any], object]:
    def say(request: Any) -> object:
        (marker,) = request.markers
        (topic,) = marker.topics
        told = WritableTxnMarkerPartitionResult(partition_index=topic.partition_indexes[0], error_code=code)
        topics = [WritableTxnMarkerTopicResult(name=topic.name, partitions=[told])]
        return WriteTxnMarkersResponse(
            markers=[WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)]
        )

    return say


@in_world
async def test_the_marker_goes_to_the_leader_and_follows_it(world: World) -> None:
    leaders = in_turn(
        metadata_of({"orders": [1, 1]}, brokers=(1, 2)),
        metadata_of({"orders": [1, 1]}, brokers=(1, 2)),
        metadata_of({"orders": [1, 2]}, brokers=(1, 2)),
    )
    one = broker({MARK: marked(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))}, leaders=leaders)
    two = broker({MARK: marked(NONE)}, node=2, leaders=leaders)

    async with listening_all(one, two), new_admin(world) as admin:
        await admin.abort_transaction(("orders", 1), producer_id=9, producer_epoch=2, coordinator_epoch=4)

    [asked] = two.asked_for(MARK)
    (marker,) = asked.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (9, 2, 4)
    assert marker.transaction_result is False
    assert [(each.name, each.partition_indexes) for each in marker.topics] == [("orders", [1])]


@in_world
async def test_a_marker_that_is_refused_is_not_sent_again(world: World) -> None:
    one = broker({MARK: marked(int(ErrorCode.INVALID_PRODUCER_EPOCH))})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(Refused) as caught:
            await admin.abort_transaction(ORDERS_0, producer_id=9, producer_epoch=2, coordinator_epoch=4)

    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(one.asked_for(MARK)) == 1


# Fence


def initialized(code: int = NONE) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=4)


@in_world
async def test_fencing_a_producer_aborts_its_open_transaction(world: World) -> None:
    one = broker({INIT: in_turn(initialized(BUSY), initialized(BUSY), initialized())})

    async with listening_all(one), new_admin(world) as admin:
        fenced = await admin.fence_producer("a")

    assert (fenced.producer_id, fenced.producer_epoch) == (7, 4)
    asked = one.asked_for(INIT)
    assert len(asked) == 3
    # No current epoch, so that the coordinator fences the producer instead of continuing it.
    assert {(each.transactional_id, each.producer_id, each.producer_epoch) for each in asked} == {
        ("a", -1, -1)
    }
    assert asked[0].transaction_timeout_ms == admin.settings.request_timeout_ms


@in_world
async def test_one_id_that_is_refused_does_not_keep_others_from_being_fenced(world: World) -> None:
    no = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    one = broker({INIT: lambda request: initialized(no if request.transactional_id == "a" else NONE)})

    async with listening_all(one), new_admin(world) as admin:
        with pytest.raises(PartlyRefused) as caught:
            await admin.fence_producers(["a", "b"], transaction_timeout_ms=5)
        with pytest.raises(Refused, match="transactional id a"):
            await admin.fence_producer("a")

    assert list(caught.value.done) == ["b"]
    assert {each.transaction_timeout_ms for each in one.asked_for(INIT)[:2]} == {5}


@in_world
async def test_a_lost_response_does_not_fence_other_ids_again(world: World) -> None:
    lost = in_turn(None, initialized())
    one = broker({INIT: lambda request: lost(request) if request.transactional_id == "b" else initialized()})

    async with listening_all(one), new_admin(world) as admin:
        await admin.fence_producers(["a", "b"])

    assert [each.transactional_id for each in one.asked_for(INIT)] == ["a", "b", "b"]
