"""Sequences, epochs and the state of producers, with the decisions of Kafka's brokers."""

import pytest

from barnabas.storage.producers.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
)
from barnabas.storage.producers.table import Duplicate, LastRecord, Origin, Producers
from support.log.producer_logs import P, Q, append, end, header

pytestmark = pytest.mark.kernel

SEQUENCE_MAX = 2**31 - 1


def test_batches_without_a_producer_only_move_the_end() -> None:
    producers = Producers()

    assert producers.check(header(-1, epoch=-1, sequence=-1), Origin.CLIENT) is None
    append(producers, -1, epoch=-1, sequence=-1, count=3)

    assert producers.end_offset == 3
    assert producers.is_empty
    assert len(producers) == 0


def test_checking_changes_nothing() -> None:
    producers = Producers()

    producers.check(header(P, transactional=True), Origin.CLIENT)

    assert producers.entries() == []
    assert producers.first_open_offset() is None


def test_a_producer_continues_where_its_last_batch_ended() -> None:
    producers = Producers()
    append(producers, sequence=0, count=10)

    assert producers.check(header(P, sequence=10, count=5), Origin.CLIENT) is None


@pytest.mark.parametrize("sequence", [9, 11, 0, 1, SEQUENCE_MAX])
def test_any_other_sequence_is_out_of_order(sequence: int) -> None:
    producers = Producers()
    append(producers, sequence=0, count=10)

    with pytest.raises(OutOfOrderSequence) as refused:
        producers.check(header(P, sequence=sequence, count=5), Origin.CLIENT)

    assert (refused.value.sequence, refused.value.expected) == (sequence, 10)


def test_a_producer_that_is_not_known_may_start_anywhere() -> None:
    assert Producers().check(header(P, sequence=77), Origin.CLIENT) is None


def test_the_largest_sequence_is_followed_by_0() -> None:
    producers = Producers()
    append(producers, sequence=SEQUENCE_MAX - 1, count=2)

    assert producers.check(header(P, sequence=0), Origin.CLIENT) is None


def test_a_batch_may_go_over_the_largest_sequence() -> None:
    producers = Producers()
    append(producers, sequence=SEQUENCE_MAX - 1, count=5, timestamp=9)

    assert producers.entries()[0].last_sequence == 2
    assert producers.check(header(P, sequence=3), Origin.CLIENT) is None
    again = producers.check(header(P, sequence=SEQUENCE_MAX - 1, count=5), Origin.CLIENT)
    assert again == Duplicate(base_offset=0, last_offset=4, timestamp=9)


def test_each_of_the_last_five_batches_is_known_again() -> None:
    producers = Producers()
    for number in range(7):
        append(producers, sequence=number * 2, count=2, timestamp=100 + number)

    for number in range(2, 7):
        again = producers.check(header(P, sequence=number * 2, count=2), Origin.CLIENT)
        assert again == Duplicate(number * 2, number * 2 + 1, 100 + number)
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(P, sequence=2, count=2), Origin.CLIENT)


def test_a_part_of_a_batch_is_no_duplicate_of_it() -> None:
    producers = Producers()
    append(producers, sequence=0, count=10)

    for sequence, count in [(0, 9), (1, 9), (0, 11)]:
        with pytest.raises(OutOfOrderSequence):
            producers.check(header(P, sequence=sequence, count=count), Origin.CLIENT)


def test_only_batches_of_clients_are_checked_for_sequences() -> None:
    producers = Producers()
    append(producers, sequence=0, count=10)

    for origin in (Origin.COORDINATOR, Origin.REPLICATION, Origin.RAFT_LEADER):
        assert producers.check(header(P, sequence=0, count=10), origin) is None
        assert producers.check(header(P, sequence=50), origin) is None


def test_a_new_epoch_starts_at_0() -> None:
    producers = Producers()
    append(producers, epoch=1, sequence=0, count=10)

    assert producers.check(header(P, epoch=2, sequence=0), Origin.CLIENT) is None
    with pytest.raises(OutOfOrderSequence, match="epoch 2 is new"):
        producers.check(header(P, epoch=2, sequence=10), Origin.CLIENT)


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    producers = Producers()
    append(producers, epoch=1, sequence=0, count=10)
    append(producers, epoch=2, sequence=0, count=3)

    assert producers.check(header(P, epoch=2, sequence=0, count=3), Origin.CLIENT) == Duplicate(10, 12, 1)
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(P, epoch=2, sequence=0, count=10), Origin.CLIENT)


def test_the_same_sequences_in_another_epoch_are_no_duplicate() -> None:
    producers = Producers()
    append(producers, epoch=1, sequence=0, count=10)

    assert producers.check(header(P, epoch=2, sequence=0, count=10), Origin.CLIENT) is None
    with pytest.raises(InvalidProducerEpoch):
        producers.check(header(P, epoch=0, sequence=0, count=10), Origin.CLIENT)


@pytest.mark.parametrize("origin", [Origin.CLIENT, Origin.COORDINATOR, Origin.RAFT_LEADER])
def test_an_older_epoch_is_fenced(origin: Origin) -> None:
    producers = Producers()
    append(producers, epoch=3, sequence=0)

    with pytest.raises(InvalidProducerEpoch) as refused:
        producers.check(header(P, epoch=2, sequence=1), origin)

    assert (refused.value.producer_id, refused.value.epoch, refused.value.current) == (P, 2, 3)


def test_a_follower_takes_an_older_epoch_as_its_leader_did() -> None:
    producers = Producers()
    append(producers, epoch=3, sequence=0)

    assert producers.check(header(P, epoch=2, sequence=1), Origin.REPLICATION) is None


def test_coordinators_write_without_sequences() -> None:
    producers = Producers()

    assert producers.check(header(P, sequence=-1, transactional=True), Origin.COORDINATOR) is None
    append(producers, sequence=-1, count=3, transactional=True)

    assert producers.entries()[0].last_sequence == -1
    assert producers.entries()[0].last_offset == 2


def test_appending_below_the_known_sequences_is_an_assertion_error() -> None:
    producers = Producers()
    append(producers, count=10)

    with pytest.raises(AssertionError):
        producers.appended(header(P, sequence=10, count=2), 3)
    with pytest.raises(AssertionError):
        producers.marker_appended(
            producer_id=P, producer_epoch=0, coordinator_epoch=0, aborted=True, offset=9, timestamp=1
        )


# Expiry


def test_inactive_producers_are_forgotten() -> None:
    producers = Producers()
    append(producers, P, timestamp=1000)
    append(producers, Q, timestamp=1001)

    assert producers.expire(2000, after_ms=1000) == 1
    assert [entry.producer_id for entry in producers.entries()] == [Q]
    assert producers.check(header(P, sequence=55), Origin.CLIENT) is None
    assert producers.expire(2001, after_ms=1000) == 1
    assert producers.is_empty


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    producers = Producers()
    append(producers, transactional=True, timestamp=1)

    assert producers.expire(10**12, after_ms=1) == 0
    assert producers.first_open_offset() == 0


def test_a_timestamp_that_cannot_be_is_simply_old() -> None:
    producers = Producers()
    append(producers, timestamp=-(2**63))

    assert producers.expire(10**12, after_ms=1000) == 1


def test_an_unused_verification_expires() -> None:
    producers = Producers()
    shown = producers.start_verification(P, sequence=0, epoch=0, now_ms=100, epoch_bump=True)
    first = header(P, transactional=True)

    producers.expire(199, after_ms=100)
    assert producers.check(first, Origin.CLIENT, shown, True) is None
    producers.expire(200, after_ms=100)
    with pytest.raises(InvalidTxnState):
        producers.check(first, Origin.CLIENT, shown, True)


def test_an_emptied_log_has_no_producers_and_continues_at_the_given_offset() -> None:
    producers = Producers()
    append(producers, transactional=True)
    shown = producers.start_verification(Q, sequence=0, epoch=0, now_ms=0, epoch_bump=True)

    producers.start_at(500)

    assert producers.is_empty
    assert producers.end_offset == 500
    assert producers.first_open_offset() is None
    with pytest.raises(InvalidTxnState):
        producers.check(header(Q, transactional=True), Origin.CLIENT, shown, True)
    assert append(producers) == 500


# Descriptions


def test_compaction_learns_which_batch_has_a_producers_last_sequence() -> None:
    producers = Producers()
    append(producers, P, sequence=0, count=4)
    append(producers, P, sequence=4, count=2)
    end(producers, Q, epoch=3)

    assert producers.last_written() == {P: LastRecord(5, 0), Q: LastRecord(None, 3)}


def test_producers_are_described_with_their_open_transaction() -> None:
    producers = Producers()
    append(producers, P, sequence=7, count=4, transactional=True, timestamp=33)

    (entry,) = producers.entries()

    assert (entry.producer_id, entry.epoch, entry.last_sequence) == (P, 0, 10)
    assert (entry.timestamp, entry.coordinator_epoch, entry.txn_first_offset) == (33, -1, 0)
