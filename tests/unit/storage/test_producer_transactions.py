"""Transactions, markers and verification, with the decisions of Kafka's brokers."""

import pytest

from barnabas.records.header import CONTROL_BIT
from barnabas.storage.producers.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from barnabas.storage.producers.table import Duplicate, Origin, Producers
from support.log.producer_logs import P, Q, append, end, fields_of, header

pytestmark = pytest.mark.kernel


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    producers = Producers()
    append(producers, -1, epoch=-1, sequence=-1, count=5)
    append(producers, sequence=0, count=2, transactional=True)
    append(producers, sequence=2, count=2, transactional=True)

    assert producers.first_open_offset() == 5
    assert producers.has_open_transaction(P, 0)
    assert not producers.has_open_transaction(P, 1)
    assert fields_of(end(producers)) == (P, 5, 9, False)
    assert not producers.has_open_transaction(P, 0)


def test_a_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    producers = Producers()
    append(producers, transactional=True)
    end(producers)

    producers.high_watermark_moved(1)
    assert producers.first_open_offset() == 0
    assert not producers.is_empty
    producers.high_watermark_moved(2)
    assert producers.first_open_offset() is None


def test_the_first_unstable_offset_is_that_of_the_earliest_transaction() -> None:
    producers = Producers()
    append(producers, P, transactional=True)
    append(producers, Q, transactional=True)
    end(producers, Q)
    append(producers, Q, sequence=1, transactional=True)
    end(producers, P)

    producers.high_watermark_moved(3)
    assert producers.first_open_offset() == 0
    producers.high_watermark_moved(5)
    assert producers.first_open_offset() == 3


def test_a_completed_transaction_may_be_the_earliest_behind_an_open_one() -> None:
    producers = Producers()
    append(producers, P, transactional=True)
    append(producers, Q, transactional=True)
    append(producers, 6000, transactional=True)
    end(producers, P)
    end(producers, Q)

    producers.high_watermark_moved(4)

    assert producers.first_open_offset() == 1


def test_the_last_stable_offset_after_a_transaction_is_the_next_open_one() -> None:
    producers = Producers()
    append(producers, P, transactional=True)
    append(producers, Q, transactional=True)

    first = end(producers, P, aborted=True)
    assert first is not None
    assert producers.last_stable_after(first) == 1
    second = end(producers, Q, aborted=True)
    assert second is not None
    assert producers.last_stable_after(second) == 4


def test_a_marker_without_records_completes_nothing() -> None:
    producers = Producers()

    assert end(producers, epoch=2, coordinator_epoch=1, timestamp=8) is None

    (entry,) = producers.entries()
    assert entry == (P, 2, -1, -1, 0, 8, 1, -1)
    assert producers.end_offset == 1


def test_nontransactional_batches_fail_while_a_transaction_is_open() -> None:
    producers = Producers()
    append(producers, transactional=True)

    for origin in (Origin.CLIENT, Origin.REPLICATION):
        with pytest.raises(InvalidTxnState, match="since offset 0"):
            producers.check(header(P, sequence=1), origin)
        assert producers.check(header(P, sequence=1, transactional=True), origin) is None


def test_a_marker_of_the_same_epoch_keeps_the_sequences() -> None:
    producers = Producers()
    append(producers, sequence=0, count=3, transactional=True)
    end(producers, epoch=0)

    assert producers.check(header(P, sequence=3, transactional=True), Origin.CLIENT) is None
    assert producers.check(header(P, count=3, transactional=True), Origin.CLIENT) == Duplicate(0, 2, 1)


def test_a_marker_of_the_next_epoch_starts_them_again() -> None:
    producers = Producers()
    append(producers, sequence=0, count=3, transactional=True)
    end(producers, epoch=1)

    assert producers.check(header(P, epoch=1, sequence=0, transactional=True), Origin.CLIENT) is None
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(P, epoch=1, sequence=3, transactional=True), Origin.CLIENT)
    with pytest.raises(InvalidProducerEpoch):
        producers.check(header(P, epoch=0, sequence=3, transactional=True), Origin.CLIENT)


def test_an_emptied_control_batch_ends_nothing() -> None:
    producers = Producers()
    append(producers, transactional=True)

    append(producers, sequence=-1, transactional=True, more_attributes=CONTROL_BIT)

    assert producers.has_open_transaction(P, 0)
    assert producers.entries()[0].last_sequence == 0
    assert producers.end_offset == 2
    assert producers.check(header(P, sequence=-1, more_attributes=CONTROL_BIT), Origin.CLIENT) is None


# Markers


def test_a_marker_of_an_older_epoch_is_fenced() -> None:
    producers = Producers()
    append(producers, epoch=4, transactional=True)

    with pytest.raises(InvalidProducerEpoch):
        producers.check_marker(P, 3, 0, Origin.COORDINATOR)
    producers.check_marker(P, 3, 0, Origin.REPLICATION)
    producers.check_marker(P, 4, 0, Origin.COORDINATOR)


def test_with_an_epoch_per_transaction_a_marker_must_be_newer_than_the_records() -> None:
    producers = Producers()
    append(producers, epoch=4, transactional=True)

    with pytest.raises(InvalidProducerEpoch):
        producers.check_marker(P, 4, 0, Origin.COORDINATOR, 2)
    producers.check_marker(P, 5, 0, Origin.COORDINATOR, 2)
    producers.check_marker(P, 4, 0, Origin.COORDINATOR, 1)


def test_a_retried_marker_after_the_end_of_the_transaction_is_accepted() -> None:
    producers = Producers()
    append(producers, epoch=4, transactional=True)
    end(producers, epoch=5)

    producers.check_marker(P, 5, 0, Origin.COORDINATOR, 2)
    with pytest.raises(InvalidProducerEpoch):
        producers.check_marker(P, 4, 0, Origin.COORDINATOR, 2)


def test_a_transaction_of_the_last_epoch_can_only_be_ended_with_that_epoch() -> None:
    producers = Producers()
    append(producers, epoch=32_767, transactional=True)

    producers.check_marker(P, 32_767, 0, Origin.COORDINATOR, 2)


def test_a_marker_of_a_coordinator_that_was_replaced_is_fenced() -> None:
    producers = Producers()
    end(producers, coordinator_epoch=7)

    with pytest.raises(TransactionCoordinatorFenced) as refused:
        producers.check_marker(P, 0, 6, Origin.COORDINATOR)
    assert (refused.value.coordinator_epoch, refused.value.current) == (6, 7)
    producers.check_marker(P, 0, 6, Origin.REPLICATION)
    producers.check_marker(P, 0, 7, Origin.COORDINATOR)


# Verification


def test_a_transaction_begins_only_with_its_verification_token() -> None:
    producers = Producers()
    first = header(P, transactional=True)
    with pytest.raises(InvalidTxnState, match="verified"):
        producers.check(first, Origin.CLIENT, None, True)
    shown = producers.start_verification(P, sequence=0, epoch=0, now_ms=0, epoch_bump=True)

    assert producers.check(first, Origin.CLIENT, shown, True) is None
    other = Producers().start_verification(P, sequence=0, epoch=0, now_ms=0, epoch_bump=True)
    with pytest.raises(InvalidTxnState):
        producers.check(first, Origin.CLIENT, other, True)


def test_later_batches_of_an_open_transaction_need_no_verification() -> None:
    producers = Producers()
    append(producers, transactional=True)

    assert producers.start_verification(P, sequence=1, epoch=0, now_ms=0, epoch_bump=True) is None
    assert producers.check(header(P, sequence=1, transactional=True), Origin.CLIENT, None, True) is None


def test_an_open_transaction_of_an_older_epoch_does_not_verify_a_newer_one() -> None:
    producers = Producers()
    append(producers, epoch=0, transactional=True)

    with pytest.raises(InvalidTxnState, match="verified"):
        producers.check(header(P, epoch=1, transactional=True), Origin.CLIENT, None, True)


def test_a_marker_takes_back_a_verification() -> None:
    producers = Producers()
    shown = producers.start_verification(P, sequence=0, epoch=0, now_ms=0, epoch_bump=False)
    end(producers)

    with pytest.raises(InvalidTxnState):
        producers.check(header(P, transactional=True), Origin.CLIENT, shown, True)


def test_with_its_first_batch_a_verification_is_over_and_holds_nothing_up() -> None:
    producers = Producers()
    producers.start_verification(P, sequence=0, epoch=0, now_ms=0, epoch_bump=False)
    append(producers, sequence=0, transactional=True)

    assert producers.check(header(P, sequence=1, transactional=True), Origin.CLIENT, None, True) is None


def test_nontransactional_batches_need_no_verification() -> None:
    assert Producers().check(header(P), Origin.CLIENT, None, True) is None


def test_an_older_epoch_gets_no_verification() -> None:
    producers = Producers()
    append(producers, epoch=2)

    with pytest.raises(InvalidProducerEpoch):
        producers.start_verification(P, sequence=0, epoch=1, now_ms=0, epoch_bump=True)


def test_the_earliest_batch_under_verification_goes_first() -> None:
    producers = Producers()
    producers.start_verification(P, sequence=8, epoch=0, now_ms=0, epoch_bump=False)
    producers.start_verification(P, sequence=5, epoch=0, now_ms=0, epoch_bump=False)
    shown = producers.start_verification(P, sequence=8, epoch=0, now_ms=0, epoch_bump=False)

    with pytest.raises(OutOfOrderSequence, match="an earlier batch"):
        producers.check(header(P, sequence=8, transactional=True), Origin.CLIENT, shown, True)
    assert producers.check(header(P, sequence=5, transactional=True), Origin.CLIENT, shown, True) is None


def test_a_new_epoch_under_verification_replaces_the_old_ones_sequence() -> None:
    producers = Producers()
    producers.start_verification(P, sequence=2, epoch=0, now_ms=0, epoch_bump=False)
    shown = producers.start_verification(P, sequence=6, epoch=1, now_ms=0, epoch_bump=False)

    late = header(P, epoch=1, sequence=6, transactional=True)
    assert producers.check(late, Origin.CLIENT, shown, True) is None


def test_with_an_epoch_per_transaction_an_unknown_producer_must_start_at_0() -> None:
    producers = Producers()
    shown = producers.start_verification(P, sequence=6, epoch=0, now_ms=0, epoch_bump=True)

    with pytest.raises(OutOfOrderSequence, match="has expired"):
        producers.check(header(P, sequence=6, transactional=True), Origin.CLIENT, shown, True)
