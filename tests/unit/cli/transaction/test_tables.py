"""Tables and documents of `barnabas transactions`, equal to those of Kafka's tool."""

from barnabas.base.ids import TopicPartition
from barnabas.cli.transaction import documents, tables
from barnabas.client.admin.records import ProducerDescription
from barnabas.client.admin.transactions import (
    HangingTransaction,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)

OPEN = TransactionDescription(
    transactional_id="orders-1",
    coordinator=2,
    state=TransactionState.ONGOING,
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    start_time_ms=1_000,
    partitions=(TopicPartition("a", 0), TopicPartition("b", 11)),
)
FRESH = TransactionDescription(
    transactional_id="t",
    coordinator=1,
    state=TransactionState.EMPTY,
    producer_id=8,
    producer_epoch=0,
    timeout_ms=1,
    start_time_ms=None,
    partitions=(),
)
WRITER = ProducerDescription(
    producer_id=7,
    producer_epoch=3,
    last_sequence=41,
    last_timestamp_ms=100_000,
    coordinator_epoch=None,
    transaction_start_offset=0,
)
IDLE = ProducerDescription(
    producer_id=8,
    producer_epoch=0,
    last_sequence=-1,
    last_timestamp_ms=-1,
    coordinator_epoch=5,
    transaction_start_offset=None,
)


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("\t")] for line in text.split("\n")]


def test_a_column_is_as_wide_as_its_widest_cell_and_a_tab_follows_each() -> None:
    assert tables.table(("A", "Bee"), [("long", 1), ("", 22222)]) == (
        "A   \tBee  \t\nlong\t1    \t\n    \t22222\t"
    )
    assert tables.table(("A", "B"), []) == "A\tB\t"


def test_a_listing_names_the_coordinator() -> None:
    row = TransactionListing(
        transactional_id="orders-1", producer_id=7, state=TransactionState.PREPARE_COMMIT, coordinator=2
    )

    assert cells(tables.listing([row]))[1] == ["orders-1", "2", "7", "PrepareCommit", ""]


def test_an_ongoing_transaction_has_a_duration_and_partitions() -> None:
    head, row = cells(tables.description(OPEN, now_ms=1_250))

    assert head[6:8] == ["CurrentTransactionStartTimeMs", "TransactionDurationMs"]
    assert row == ["2", "orders-1", "7", "3", "Ongoing", "60000", "1000", "250", "a-0,b-11", ""]


def test_a_transactional_id_without_transaction_has_no_times() -> None:
    _, row = cells(tables.description(FRESH, now_ms=1_250))

    assert row == ["1", "t", "8", "0", "Empty", "1", "None", "None", "", ""]


def test_missing_values_of_a_producer_are_none_or_minus_one() -> None:
    _, writer, idle = cells(tables.producers([WRITER, IDLE]))

    # Offset 0 is a valid start of a transaction.
    assert writer == ["7", "3", "-1", "41", "100000", "0", ""]
    assert idle == ["8", "0", "5", "-1", "-1", "None", ""]


def test_the_duration_of_a_hanging_transaction_is_in_whole_minutes() -> None:
    found = HangingTransaction(partition=TopicPartition("a", 4), producer=WRITER, transactional_id=None)

    _, row = cells(tables.hanging([found], now_ms=100_000 + 2 * 60_000 - 1))

    assert row == ["a", "4", "7", "3", "-1", "0", "100000", "1", ""]


def test_documents_have_null_for_unknown_values() -> None:
    found = HangingTransaction(partition=TopicPartition("a", 4), producer=WRITER, transactional_id="orders-1")

    assert documents.described(FRESH, now_ms=5)["durationMs"] is None
    assert documents.described(OPEN, now_ms=1_250)["durationMs"] == 250
    assert documents.described(OPEN, now_ms=0)["partitions"][1] == {"topic": "b", "partition": 11}
    assert documents.hanging(found, now_ms=100_500) == {
        "topic": "a",
        "partition": 4,
        "transactionalId": "orders-1",
        "producerId": 7,
        "producerEpoch": 3,
        "coordinatorEpoch": None,
        "lastSequence": 41,
        "lastTimestamp": 100_000,
        "transactionStartOffset": 0,
        "durationMs": 500,
    }
