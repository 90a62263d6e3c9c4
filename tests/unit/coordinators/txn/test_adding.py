"""Partitions that are added to a transaction, by clients and by brokers, and whether they are in it."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.state import TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from support.txn.model import TxnWorld, codes, given_to

pytestmark = pytest.mark.kernel

ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
OFFSETS = TopicPartition("__consumer_offsets", 7)


def test_the_first_partition_begins_the_transaction() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.tick_ms = 100

    assert codes(world.add(producer, ORDERS, PAYMENTS)) == [0, 0]

    txn = world.txn()
    assert (txn.state, txn.partitions) == (TxnState.ONGOING, {ORDERS, PAYMENTS})
    assert (txn.start_ms, txn.last_update_ms) == (world.now.ms, world.now.ms)


def test_more_partitions_do_not_change_the_start_time() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS)
    began = world.now.ms
    world.tick_ms = 100

    world.add(producer, PAYMENTS)

    assert world.txn().partitions == {ORDERS, PAYMENTS}
    assert (world.txn().start_ms, world.txn().last_update_ms) == (began, began + 100)


def test_existing_partitions_are_not_written_again() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS, PAYMENTS)
    written = len(world.log)

    assert codes(world.add(producer, PAYMENTS)) == [0]
    assert len(world.log) == written


def test_a_transaction_may_begin_without_partitions() -> None:
    world = TxnWorld()

    assert codes(world.add(given_to(world.init()))) == []
    assert world.txn().state is TxnState.ONGOING


@pytest.mark.parametrize(("version", "client"), [(0, 0), (3, 0), (4, 2), (5, 2)])
def test_the_request_version_sets_the_client_version_of_the_transaction(version: int, client: int) -> None:
    world = TxnWorld()

    world.add(given_to(world.init()), ORDERS, version=version)

    assert world.txn().client_version == client


def test_offsets_are_a_partition_like_any_other() -> None:
    world = TxnWorld()
    producer = given_to(world.init())

    assert world.add_offsets(producer, OFFSETS).error_code == ErrorCode.NONE
    assert world.txn().partitions == {OFFSETS}
    assert world.txn().client_version == 0


# Refused


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
@pytest.mark.parametrize("by", [-1, 1])
def test_another_epoch_is_fenced(version: int, code: ErrorCode, by: int) -> None:
    world = TxnWorld()
    producer_id, epoch = given_to(world.init())
    other = producer_id, epoch + by

    assert codes(world.add(other, ORDERS, PAYMENTS, version=version)) == [code, code]
    assert world.add_offsets(other, OFFSETS, version=version).error_code == code
    assert world.txn().state is TxnState.EMPTY


def test_another_producer_id_is_not_that_of_the_transactional_id() -> None:
    world = TxnWorld()
    producer_id, epoch = given_to(world.init())
    other = producer_id + 1, epoch

    assert codes(world.add(other, ORDERS)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert world.add_offsets(other, OFFSETS).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_unknown_transactional_id_has_no_producer() -> None:
    world = TxnWorld()

    assert codes(world.add((1, 0), ORDERS)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert codes(world.add((1, 0), ORDERS, version=5, verify=True)) == [49]
    assert world.add_offsets((1, 0), OFFSETS).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("verify", [False, True])
def test_an_empty_transactional_id_is_invalid(verify: bool) -> None:
    answer = TxnWorld().add((1, 0), ORDERS, transactional_id="", version=5, verify=verify)

    assert codes(answer) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_refuses_partitions(commit: bool) -> None:
    world = TxnWorld()
    producer_id, epoch = given_to(world.init())
    world.add((producer_id, epoch), ORDERS)
    world.end((producer_id, epoch), commit=commit)

    assert codes(world.add((producer_id, epoch + 1), ORDERS)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    # In Kafka this comes before the questions of who asks.
    assert codes(world.add((99, 9), ORDERS)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert world.add_offsets((99, 9), OFFSETS).error_code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_partitions_that_exceed_a_record_are_refused() -> None:
    world = TxnWorld(batch_bytes_max=2_000)
    producer = given_to(world.init())
    world.add(producer, ORDERS)
    many = [TopicPartition(f"topic-{number}", 0) for number in range(100)]

    assert set(codes(world.add(producer, *many))) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert world.txn().partitions == {ORDERS}


def test_records_of_level_0_know_no_clients_of_version_2() -> None:
    world = TxnWorld(TxnSettings(transaction_version=0))

    answer = world.add(given_to(world.init()), ORDERS, version=5)

    assert codes(answer) == [ErrorCode.UNSUPPORTED_VERSION]
    assert world.txn().state is TxnState.EMPTY


# Verifying


def test_verification_answers_per_partition_and_writes_nothing() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS)
    written = len(world.log)

    answer = world.add(producer, ORDERS, PAYMENTS, version=5, verify=True)

    assert codes(answer) == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert [topic.name for topic in answer.topic_results] == ["orders", "payments"]
    assert len(world.log) == written


def test_verification_checks_the_producer_first_even_while_prepared() -> None:
    world = TxnWorld()
    producer_id, epoch = given_to(world.init())
    world.add((producer_id, epoch), ORDERS, version=5)
    world.end((producer_id, epoch))

    def verified(producer: tuple[int, int]) -> list[int]:
        return codes(world.add(producer, ORDERS, version=5, verify=True))

    assert verified((producer_id + 1, epoch)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert verified((producer_id, epoch)) == [ErrorCode.PRODUCER_FENCED]
    assert verified((producer_id, epoch + 1)) == [ErrorCode.CONCURRENT_TRANSACTIONS]


def test_when_it_is_complete_no_partition_is_in_it() -> None:
    world = TxnWorld()
    producer = given_to(world.init())
    world.add(producer, ORDERS)
    world.end(producer, version=3)
    world.mark_all()

    answer = world.add(producer, ORDERS, version=4, verify=True)

    assert codes(answer) == [ErrorCode.TRANSACTION_ABORTABLE]
