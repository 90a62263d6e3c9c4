"""InitProducerId: ids and epochs, who is fenced, and what happens to a transaction that is under way."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.answers import NEEDS_PRODUCER_ID
from barnabas.coordinators.txn.initializing import decide_init
from barnabas.coordinators.txn.state import TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from support.txn.model import FIRST_ID, Asked, TxnWorld, given_to, refused

pytestmark = pytest.mark.kernel

FIRST = FIRST_ID + 1
ORDERS = TopicPartition("orders", 0)


def at_epoch(world: TxnWorld, epoch: int) -> tuple[int, int]:
    """A producer with this epoch, without a transaction."""
    producer = given_to(world.init())
    world.given(world.txn()._replace(producer_epoch=epoch))
    return producer[0], epoch


# Ids and epochs


def test_a_new_id_gets_a_producer_id_and_epoch_0() -> None:
    world = TxnWorld()

    assert given_to(world.init()) == (FIRST, 0)

    txn = world.txn()
    assert (txn.state, txn.timeout_ms, txn.start_ms) == (TxnState.EMPTY, 60_000, -1)
    assert (txn.prev_producer_id, txn.last_update_ms) == (FIRST, world.now.ms)


def test_without_a_new_producer_id_the_decision_is_postponed() -> None:
    world = TxnWorld()
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1)

    assert decide_init(world.shard.table, request, 5, None, Asked(), world.now) is NEEDS_PRODUCER_ID
    assert len(world.shard) == 0


def test_the_next_producer_gets_the_same_id_and_a_bumped_epoch() -> None:
    world = TxnWorld()
    world.init()

    assert given_to(world.init(timeout_ms=5_000)) == (FIRST, 1)
    assert world.txn().timeout_ms == 5_000
    assert world.ids_given == 1


def test_a_new_transactional_id_ignores_the_producer_id_of_the_request() -> None:
    assert given_to(TxnWorld().init(was=(77, 3))) == (FIRST, 0)


def test_a_producer_that_says_its_id_and_epoch_gets_the_next_epoch() -> None:
    world = TxnWorld()

    assert given_to(world.init(was=given_to(world.init()))) == (FIRST, 1)


def test_a_retry_after_a_lost_response_gets_the_same_epoch() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.init(was=producer)

    assert given_to(world.init(was=producer)) == (FIRST, 1)


def test_the_previous_epoch_is_lost_in_a_restart() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.init(was=producer)
    world.crash()

    assert refused(world.init(was=producer)) is ErrorCode.PRODUCER_FENCED


def test_init_without_an_epoch_stores_no_previous_epoch() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.init()

    assert refused(world.init(was=producer)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
)
def test_a_producer_with_another_id_or_epoch_is_fenced(version: int, code: ErrorCode) -> None:
    world = TxnWorld()
    world.init()
    written = len(world.log)

    assert refused(world.init(was=(FIRST, 7), version=version)) is code
    assert refused(world.init(was=(FIRST + 1, 0), version=version)) is code
    assert len(world.log) == written


# Exhausted epochs


def test_after_the_last_epoch_a_new_producer_id_is_assigned() -> None:
    world = TxnWorld()
    at_epoch(world, 32_765)

    assert given_to(world.init()) == (FIRST, 32_766)
    assert given_to(world.init()) == (FIRST + 1, 0)
    assert world.txn().prev_producer_id == FIRST


def test_a_retry_after_a_new_producer_id_is_accepted() -> None:
    world = TxnWorld()
    producer = at_epoch(world, 32_766)
    world.init(was=producer)

    assert given_to(world.init(was=producer)) == (FIRST + 1, 0)
    assert world.ids_given == 2


def test_an_earlier_epoch_of_an_id_whose_epochs_are_exhausted_fails_as_in_kafka() -> None:
    world = TxnWorld()
    at_epoch(world, 32_766)

    assert refused(world.init(was=(FIRST, 32_765))) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_id_before_is_fenced_unless_its_epochs_were_exhausted() -> None:
    world = TxnWorld()
    at_epoch(world, 32_766)
    world.init()

    assert refused(world.init(was=(FIRST, 5))) is ErrorCode.PRODUCER_FENCED


# A transaction under way


def test_an_ongoing_transaction_is_fenced_and_aborted_first() -> None:
    world = TxnWorld()
    world.add(given_to(world.init()), ORDERS)

    assert refused(world.init()) is ErrorCode.CONCURRENT_TRANSACTIONS

    ended = world.desk.asked[0]
    assert (ended.producer_id, ended.producer_epoch, ended.commit) == (FIRST, 1, False)
    assert (ended.partitions, ended.transaction_version) == ({ORDERS}, 2)
    assert refused(world.init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert len(world.desk.asked) == 1

    world.mark_all()

    assert world.txn().state is TxnState.COMPLETE_ABORT
    assert given_to(world.init()) == (FIRST, 2)


@pytest.mark.parametrize("level", [0, 1])
def test_below_version_2_of_transactions_it_is_fenced_in_the_old_way(level: int) -> None:
    world = TxnWorld(TxnSettings(transaction_version=level))
    world.add(given_to(world.init()), ORDERS)

    assert refused(world.init()) is ErrorCode.CONCURRENT_TRANSACTIONS

    ended = world.desk.asked[0]
    assert (ended.producer_epoch, ended.transaction_version) == (1, 0)
    assert world.txn().last_producer_epoch == -1


def test_fencing_the_last_epoch_takes_a_new_id() -> None:
    world = TxnWorld()
    world.add(at_epoch(world, 32_766), ORDERS)

    assert refused(world.init()) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (world.desk.asked[0].producer_id, world.desk.asked[0].producer_epoch) == (FIRST, 32_767)

    world.mark_all()

    assert given_to(world.init()) == (FIRST + 1, 1)


def test_below_version_2_the_last_epoch_is_fenced_without_a_new_id() -> None:
    world = TxnWorld(TxnSettings(transaction_version=1))
    world.add(at_epoch(world, 32_766), ORDERS)
    world.init()
    assert world.desk.asked[0].producer_epoch == 32_767
    assert world.ids_given == 1

    world.mark_all()

    assert given_to(world.init()) == (FIRST + 1, 0)


def test_during_prepare_any_producer_gets_concurrent_transactions() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS)
    world.end(producer)

    assert refused(world.init(was=(99, 0))) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_unknown_producer_does_not_abort_an_ongoing_transaction() -> None:
    world = TxnWorld()
    world.add(given_to(world.init()), ORDERS)

    assert refused(world.init(was=(99, 0))) is ErrorCode.PRODUCER_FENCED
    assert world.txn().state is TxnState.ONGOING


def test_an_epoch_that_is_late_aborts_an_ongoing_transaction_as_in_kafka() -> None:
    world = TxnWorld()
    world.init()
    world.add(given_to(world.init()), ORDERS)

    assert refused(world.init(was=(FIRST, 0))) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.txn().state is TxnState.PREPARE_ABORT


# Bad input


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_a_timeout_of_zero_or_above_the_maximum_is_refused(timeout_ms: int) -> None:
    world = TxnWorld()

    assert refused(world.init(timeout_ms=timeout_ms)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert len(world.shard) == 0


def test_the_longest_timeout_is_allowed() -> None:
    assert given_to(TxnWorld().init(timeout_ms=900_000)) == (FIRST, 0)


@pytest.mark.parametrize(
    ("transactional_id", "was"), [("", (-1, -1)), (None, (-1, -1)), ("t", (5, -1)), ("t", (-1, 5))]
)
def test_id_without_epoch_or_epoch_without_id_is_invalid(
    transactional_id: str | None, was: tuple[int, int]
) -> None:
    assert refused(TxnWorld().init(transactional_id, was=was)) is ErrorCode.INVALID_REQUEST
