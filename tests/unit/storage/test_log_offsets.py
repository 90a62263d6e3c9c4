"""The offsets of a log: for producers, for read_committed consumers, and for flushes."""

import pytest

from barnabas.base.errors import Malformed
from barnabas.storage.epochs import EpochStart
from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.files import File
from barnabas.storage.producers.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from barnabas.storage.producers.table import Origin
from barnabas.storage.segment.aborted import write_aborted
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.logs import (
    NOW,
    batch,
    disk_of,
    end_txn,
    fill,
    flushed,
    marker,
    new_log,
    path_of,
    put,
    read_all,
    read_bytes,
    send,
)

pytestmark = pytest.mark.kernel

P, Q = 4000, 5000


# Producers


def test_a_duplicate_is_answered_with_where_it_is() -> None:
    log = new_log()
    put(log)
    first = send(log, P, 0, b"a", b"b")
    send(log, P, 2, b"c")

    again = send(log, P, 0, b"a", b"b")

    assert again.duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset) == (1, 2)
    assert log.end_offset == 4


def test_a_duplicate_in_a_topic_that_stamps_records_is_answered_with_its_time() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    data = batch(b"a", producer_id=P, producer_epoch=0, base_sequence=0)
    log.append_as_leader(data, leader_epoch=0, now_ms=NOW)

    again = log.append_as_leader(data, leader_epoch=0, now_ms=NOW + 99)

    assert (again.duplicate, again.log_append_time_ms) == (True, NOW)


def test_a_gap_in_the_sequence_is_refused() -> None:
    log = new_log()
    send(log, P, 0, b"a", b"b")

    with pytest.raises(OutOfOrderSequence) as refused:
        send(log, P, 3)

    assert refused.value.expected == 2
    assert log.end_offset == 2


def test_a_producer_that_was_replaced_is_refused() -> None:
    log = new_log()
    send(log, P, 0, epoch=1)

    with pytest.raises(InvalidProducerEpoch):
        send(log, P, 1, epoch=0)

    assert log.end_offset == 1


def test_a_plain_batch_within_a_transaction_is_refused() -> None:
    log = new_log()
    send(log, P, 0, txn=True)

    with pytest.raises(InvalidTxnState):
        send(log, P, 1)

    assert log.end_offset == 1


def test_a_marker_of_a_replaced_coordinator_is_refused() -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    end_txn(log, P, abort=False, coordinator=7)

    with pytest.raises(TransactionCoordinatorFenced):
        end_txn(log, P, abort=True, coordinator=6)

    assert log.end_offset == 2


def test_an_unknown_control_type_in_the_name_of_a_producer_is_refused() -> None:
    log = new_log()
    data = batch(
        b"\0\0\0\0\0\7",
        key=b"\0\0\0\2",
        producer_id=P,
        producer_epoch=0,
        transactional=True,
        control=True,
    )

    with pytest.raises(Malformed, match="is not allowed for a producer"):
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    with pytest.raises(Malformed):
        log.append_as_follower(data, NOW)

    assert log.end_offset == 0


# High watermark and last stable offset


def test_the_last_stable_offset_follows_transactions_and_high_watermark() -> None:
    log = new_log()
    put(log)
    send(log, P, 0, txn=True)
    send(log, Q, 0, txn=True)

    seen = [log.last_stable_offset]
    for to in (1, 3):
        log.advance_high_watermark(to)
        seen.append(log.last_stable_offset)
    end_txn(log, P, abort=True)
    seen.append(log.last_stable_offset)
    log.advance_high_watermark(4)
    seen.append(log.last_stable_offset)
    end_txn(log, Q, abort=False)
    seen.append(log.last_stable_offset)
    log.advance_high_watermark(5)
    seen.append(log.last_stable_offset)

    # High watermark at the start; at the record before the transactions; both open; P ended with an
    # unreplicated marker; only Q open; Q ended with an unreplicated marker; at the log end.
    assert seen == [0, 1, 1, 1, 2, 2, 5]


def test_readers_of_aborted_records_get_their_transactions() -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    send(log, Q, 0, txn=True)
    end_txn(log, Q, abort=True)
    end_txn(log, P, abort=True)
    send(log, P, 1, txn=True)
    end_txn(log, P, abort=False)

    first, second = AbortedTxn(Q, 1, 2, 0), AbortedTxn(P, 0, 3, 4)
    assert log.aborted_in(0, 6) == [first, second]
    assert log.aborted_in(0, 1) == [second]
    assert log.aborted_in(3, 6) == [second]
    assert log.aborted_in(4, 6) == []


def test_aborted_transactions_are_found_across_segments() -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    log.roll(NOW)
    put(log)
    log.roll(NOW)
    end_txn(log, P, abort=True)

    assert log.aborted_in(0, 1) == [AbortedTxn(P, 0, 2, 3)]
    assert log.aborted_in(1, 2) == [AbortedTxn(P, 0, 2, 3)]


def test_aborted_transactions_are_found_before_and_after_they_are_written() -> None:
    log = new_log()
    for number in range(3):
        send(log, P, number, txn=True)
        end_txn(log, P, abort=True)
        told = [AbortedTxn(P, 2 * at, 2 * at + 1, 2 * at + 2) for at in range(number + 1)]
        assert log.aborted_in(0, log.end_offset) == told
        flushed(log)
        assert log.aborted_in(0, log.end_offset) == told


def test_segments_without_aborted_transactions_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log()
    for _ in range(10):
        put(log)
        log.roll(NOW)
    assert log.aborted_in(0, 10) == []
    asked: list[str] = []
    disk = disk_of(log)
    look = disk.open

    def noted(path: str, *, create: bool = False) -> File:
        asked.append(path)
        return look(path, create=create)

    monkeypatch.setattr(disk, "open", noted)

    assert log.aborted_in(0, 10) == []

    assert asked == []


def test_a_replaced_segment_keeps_its_aborted_transactions() -> None:
    # As after two segments were merged, of which the second had some.
    log = new_log()
    put(log)
    assert log.aborted_in(0, 1) == []
    txn = AbortedTxn(P, 0, 1, 2)

    write_aborted(log.fs, log.active, [txn])
    log.aborted.forget(log.active)

    assert log.aborted_in(0, 1) == [txn]


def test_a_marker_for_nothing_makes_no_entry() -> None:
    log = new_log()

    end_txn(log, P, abort=True)

    assert (log.end_offset, log.aborted_in(0, 1)) == (1, [])


def test_a_high_watermark_from_a_checkpoint_stays_within_the_log() -> None:
    log = new_log()
    fill(log, 5)
    log.advance_high_watermark(4)
    log.advance_start(2)

    for asked, given in [(100, 5), (0, 2), (3, 3)]:
        log.set_high_watermark(asked)
        assert log.high_watermark == given


def test_records_before_the_start_cannot_be_read_any_more() -> None:
    log = new_log()
    put(log, b"a", b"b", b"c", epoch=1)
    put(log, b"d", epoch=2)
    log.advance_high_watermark(4)

    assert log.advance_start(2)

    assert log.start_offset == 2
    assert log.epochs.entries() == [EpochStart(1, 2), EpochStart(2, 3)]
    with pytest.raises(OffsetOutOfRange) as refused:
        read_bytes(log, 1)
    assert (refused.value.requested, refused.value.start, refused.value.end) == (1, 2, 4)
    assert [record.value for record in read_all(log)] == [b"c", b"d"]


def test_the_start_does_not_go_back() -> None:
    log = new_log()
    fill(log, 5)
    log.advance_high_watermark(5)
    log.advance_start(3)

    assert not log.advance_start(3)
    assert not log.advance_start(1)
    assert log.start_offset == 3


def test_unreplicated_records_cannot_be_deleted() -> None:
    log = new_log()
    fill(log, 5)
    log.advance_high_watermark(3)

    with pytest.raises(OffsetOutOfRange):
        log.advance_start(4)

    assert log.start_offset == 0
    assert log.advance_start(3)


def test_the_last_stable_offset_is_never_before_the_start() -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    put(log)
    log.advance_high_watermark(2)

    log.advance_start(1)

    assert log.last_stable_offset == 1


def test_the_size_is_that_of_all_segments() -> None:
    log = new_log(segment_bytes=500)
    fill(log, 5)

    assert len(log.segments) > 1
    assert log.size == sum(disk_of(log).tree()[path_of(base, ".log")] for base in log.bases)


# When to flush


def test_a_flush_is_due_when_there_are_enough_messages() -> None:
    log = new_log(flush_messages=3)
    due: list[int] = []
    log.on_flush_due = lambda log: due.append(log.end_offset)

    put(log, b"a", b"b")
    assert due == []
    put(log, b"c")
    assert due == [3]
    flushed(log)
    put(log, b"d", b"e")
    assert due == [3]


def test_a_flush_is_due_when_a_segment_is_finished() -> None:
    log = new_log()
    put(log)
    due: list[int] = []
    log.on_flush_due = lambda log: due.append(log.end_offset)

    log.roll(NOW)

    assert due == [1]


def test_several_markers_of_a_coordinator_may_be_appended_at_once() -> None:
    log = new_log()
    send(log, P, 0, txn=True)
    send(log, Q, 0, txn=True)
    data = marker(P, abort=True) + marker(Q, abort=False)

    log.append_as_leader(data, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    log.advance_high_watermark(4)

    assert log.last_stable_offset == 4
    assert log.aborted_in(0, 4) == [AbortedTxn(P, 0, 2, 1)]
