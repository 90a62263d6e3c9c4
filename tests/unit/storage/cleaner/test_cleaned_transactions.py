import pytest

from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.header import read_header
from barnabas.records.rebuild import empty_batch
from barnabas.storage.cleaner.batch import Batch
from barnabas.storage.cleaner.transactions import Transactions
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.compaction import marker, records

pytestmark = pytest.mark.kernel

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def data(base_offset: int, producer_id: int, *, transactional: bool = True) -> bytes:
    return build_batch(
        records((b"k", b"v"), (b"k", b"w")),
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
    )


def aborted(producer_id: int, first_offset: int, last_offset: int) -> AbortedTxn:
    return AbortedTxn(producer_id, first_offset, last_offset, last_offset + 1)


def feed(transactions: Transactions, raw: bytes) -> bool:
    """Whether the data was aborted, or the marker is obsolete."""
    batch = Batch()
    batch.begin_segment(0, 1 << 40)
    batch.use(raw)
    assert batch.load(0)
    if not batch.is_control:
        return transactions.is_aborted(batch)
    batch.unpack()
    return transactions.is_done_with(batch)


def test_data_is_aborted_from_the_first_offset_to_the_marker() -> None:
    transactions = Transactions([aborted(7, 10, 14)], 0)

    assert not feed(transactions, data(8, 7))
    assert feed(transactions, data(10, 7))
    assert feed(transactions, data(12, 7))
    assert not feed(transactions, marker(ABORT, base_offset=14, producer_id=7))
    assert not feed(transactions, data(15, 7))


def test_other_producers_and_other_batches_are_not_aborted() -> None:
    transactions = Transactions([aborted(7, 10, 20)], 0)

    assert not feed(transactions, data(10, 8))
    assert not feed(transactions, data(12, 7, transactional=False))
    assert feed(transactions, data(14, 7))


def test_markers_stay_while_data_of_their_transaction_is_there() -> None:
    transactions = Transactions([aborted(7, 10, 14)], 0)
    feed(transactions, data(10, 7))
    feed(transactions, data(12, 8))

    assert not feed(transactions, marker(ABORT, base_offset=14, producer_id=7))
    assert not feed(transactions, marker(COMMIT, base_offset=15, producer_id=8))


def test_markers_without_data_are_obsolete() -> None:
    transactions = Transactions([aborted(7, 10, 14)], 0)

    assert feed(transactions, marker(ABORT, base_offset=14, producer_id=7))
    assert feed(transactions, marker(COMMIT, base_offset=15, producer_id=8))


def test_a_marker_ends_only_its_own_transaction() -> None:
    transactions = Transactions([], 0)
    feed(transactions, data(10, 8))

    assert not feed(transactions, marker(COMMIT, base_offset=12, producer_id=8))
    assert feed(transactions, marker(COMMIT, base_offset=13, producer_id=8))


def test_aborted_transactions_are_remembered_as_long_as_their_markers_stay() -> None:
    with_data, without = aborted(7, 10, 14), aborted(8, 11, 15)
    transactions = Transactions([with_data, without], 0)
    feed(transactions, data(10, 7))
    feed(transactions, marker(ABORT, base_offset=14, producer_id=7))
    feed(transactions, marker(ABORT, base_offset=15, producer_id=8))

    assert transactions.take_kept() == [with_data]
    assert transactions.take_kept() == []


def test_an_empty_batch_is_still_data_of_its_transaction() -> None:
    transactions = Transactions([aborted(7, 10, 14)], 0)

    assert feed(transactions, empty_batch(read_header(data(10, 7))))
    assert not feed(transactions, marker(ABORT, base_offset=14, producer_id=7))


def test_an_empty_control_batch_is_obsolete() -> None:
    emptied = empty_batch(read_header(marker(COMMIT, base_offset=3, producer_id=7)))
    assert feed(Transactions([], 0), emptied)


def test_control_batches_that_are_no_markers_stay() -> None:
    leader_change = build_control_batch(
        ControlType.LEADER_CHANGE, b"", timestamp=5, base_offset=3, leader_epoch=1
    )
    assert not feed(Transactions([], 0), leader_change)


def test_a_transaction_without_data_still_ends_with_its_marker() -> None:
    transactions = Transactions([aborted(7, 10, 14)], 0)

    feed(transactions, marker(ABORT, base_offset=14, producer_id=7))

    assert not feed(transactions, data(15, 7))


def test_a_transaction_without_a_read_marker_has_ended() -> None:
    over, goes_on = aborted(7, 10, 14), aborted(8, 10, 15)
    transactions = Transactions([over, goes_on], 15)

    assert not feed(transactions, data(20, 7))
    assert feed(transactions, data(22, 8))


def test_a_producer_may_abort_again_and_again() -> None:
    transactions = Transactions([aborted(7, 20, 22), aborted(7, 10, 12)], 0)

    assert feed(transactions, data(10, 7))
    feed(transactions, marker(ABORT, base_offset=12, producer_id=7))
    assert not feed(transactions, data(15, 7))
    feed(transactions, marker(COMMIT, base_offset=17, producer_id=7))
    assert feed(transactions, data(20, 7))


def test_the_marker_of_a_transaction_open_at_the_log_start_stays() -> None:
    # Its data was deleted with earlier segments. The snapshot has it open, and only the marker ends it.
    transactions = Transactions([], 0, open_before={7})

    assert not feed(transactions, marker(COMMIT, base_offset=20, producer_id=7))
    assert feed(transactions, marker(COMMIT, base_offset=21, producer_id=7))
