"""One partition's log: appends of leaders, coordinators and followers."""

import errno

import pytest

from barnabas.base.errors import Malformed
from barnabas.records.header import TimestampType, read_header
from barnabas.records.validate import check_batch
from barnabas.storage.epochs import EpochStart
from barnabas.storage.errors import BatchTooLarge, LogClosed, MissingKey, UnexpectedOffset
from barnabas.storage.producers.table import Origin
from barnabas.storage.segment.txn_index import AbortedTxn
from support.log.logs import (
    NOW,
    batch,
    disk_of,
    end_txn,
    follow,
    new_log,
    offsets,
    offsets_in,
    path_of,
    put,
    read_all,
    read_bytes,
    records_in,
    send,
    shut,
)

pytestmark = pytest.mark.kernel

P, Q = 4000, 5000


# Appends of a leader


def test_a_leader_assigns_offsets_and_its_epoch() -> None:
    log = new_log()
    put(log, b"a", b"b")

    done = put(log, b"c", b"d", b"e", epoch=7)

    assert (done.base_offset, done.last_offset, done.duplicate) == (2, 4, False)
    assert log.end_offset == 5
    header = read_header(read_bytes(log, 2))
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (2, 4, 7)
    assert [record.value for record in read_all(log)] == [b"a", b"b", b"c", b"d", b"e"]


def test_but_for_offset_and_epoch_the_bytes_are_the_producers() -> None:
    log = new_log()
    put(log)
    data = batch(b"a value", key=None)

    log.append_as_leader(data, leader_epoch=3, now_ms=NOW)

    stored = read_bytes(log, 1)
    assert stored[16:] == data[16:]
    assert stored[8:12] == data[8:12]
    check_batch(stored)


def test_a_refused_batch_changes_nothing() -> None:
    log = new_log(cleanup_policy=("compact",))
    put(log, b"a")
    before = read_bytes(log)

    with pytest.raises(MissingKey):
        put(log, b"b", key=None)
    with pytest.raises(Malformed):
        log.append_as_leader(batch(b"c")[:-1], leader_epoch=9, now_ms=NOW)

    assert (log.end_offset, read_bytes(log)) == (1, before)
    assert log.epochs.entries() == [EpochStart(0, 0)]


def test_with_log_append_time_records_get_the_brokers_timestamp() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")

    done = put(log, b"a", b"b", time=5, now=NOW + 77)

    assert done.log_append_time_ms == NOW + 77
    stored = read_bytes(log)
    header = check_batch(stored)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, NOW + 77)
    assert [record.timestamp for record in records_in(stored)] == [NOW + 77, NOW + 77]
    assert log.active.latest() == (NOW + 77, 1)


def test_stamping_leaves_the_senders_buffer_alone() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    data = bytearray(batch(b"a"))
    before = bytes(data)

    log.append_as_leader(data, leader_epoch=0, now_ms=NOW)

    assert bytes(data) == before


def test_with_create_time_no_append_time_is_returned() -> None:
    assert put(new_log(), time=5).log_append_time_ms == -1


def test_a_new_epoch_is_known_from_its_first_batch_on() -> None:
    log = new_log()
    put(log, b"a", b"b", epoch=1)
    put(log, epoch=1)
    put(log, epoch=4)

    assert log.epochs.entries() == [EpochStart(1, 0), EpochStart(4, 3)]
    assert log.epochs_changed


def test_an_append_that_fails_leaves_the_log_as_it_was() -> None:
    log = new_log()
    put(log, b"a")
    disk_of(log).fail(path_of(0, ".log"), ["write"], errno=errno.ENOSPC)

    with pytest.raises(OSError, match="No space left"):
        put(log, b"lost", epoch=5)

    assert (log.end_offset, log.epochs.latest) == (1, 0)
    assert put(log, b"b").base_offset == 1
    assert [record.value for record in read_all(log)] == [b"a", b"b"]


def test_a_closed_log_takes_and_gives_nothing() -> None:
    log = new_log()
    put(log)
    shut(log)

    with pytest.raises(LogClosed, match="t-0"):
        put(log)
    with pytest.raises(LogClosed):
        follow(log, 1)
    with pytest.raises(LogClosed):
        log.read(0, upto=1, bytes_max=100)


# Appends of coordinators


def test_a_coordinator_may_write_several_batches_at_once() -> None:
    log = new_log()
    put(log)
    data = batch(b"a", b"b") + batch(b"c") + batch(b"d", b"e")

    done = log.append_as_leader(data, leader_epoch=2, now_ms=NOW, origin=Origin.COORDINATOR)

    assert (done.base_offset, done.last_offset) == (1, 5)
    assert [record.value for record in read_all(log, 1)] == [b"a", b"b", b"c", b"d", b"e"]
    assert {read_header(read_bytes(log, at)).leader_epoch for at in (1, 3, 4)} == {2}


@pytest.mark.parametrize(("base", "epoch"), [(1, 2), (0, 2), (1, 1), (2, 2)])
def test_a_batch_is_numbered_unless_it_was_built_for_its_place(base: int, epoch: int) -> None:
    log = new_log()
    put(log)
    data = batch(b"a", b"b", base_offset=base, leader_epoch=epoch)

    done = log.append_as_leader(data, leader_epoch=2, now_ms=NOW, origin=Origin.COORDINATOR)

    assert (done.base_offset, done.last_offset) == (1, 2)
    assert read_bytes(log, 1) == batch(b"a", b"b", base_offset=1, leader_epoch=2)


def test_of_several_batches_none_is_written_if_one_is_broken() -> None:
    log = new_log()
    data = batch(b"a") + batch(b"b")[:-2]

    with pytest.raises(Malformed):
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)

    assert log.end_offset == 0


def test_a_marker_keeps_its_own_time_in_a_topic_that_stamps_records() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    send(log, P, 0, txn=True)

    end_txn(log, P, abort=False)

    header = check_batch(read_bytes(log, 1))
    assert (header.is_control, header.timestamp_type) == (True, TimestampType.CREATE_TIME)


# Appends of a follower


def test_a_follower_appends_batches_as_they_are() -> None:
    log = new_log(cleanup_policy=("compact",), max_message_bytes=10, message_timestamp_type="LogAppendTime")
    data = batch(b"a", base_offset=0, leader_epoch=2, key=None) + batch(b"b", base_offset=1, leader_epoch=3)

    log.append_as_follower(data, NOW)

    assert read_bytes(log) == data
    assert log.epochs.entries() == [EpochStart(2, 0), EpochStart(3, 1)]


def test_a_follower_takes_over_the_holes_of_a_compacted_leader() -> None:
    log = new_log()
    follow(log, 5, b"a")
    follow(log, 90, b"b")

    assert log.end_offset == 91
    assert offsets(log) == [5, 90]


@pytest.mark.parametrize("base", [0, 1, 2])
def test_a_follower_does_not_go_back(base: int) -> None:
    log = new_log()
    follow(log, 0, b"a", b"b", b"c")

    with pytest.raises(UnexpectedOffset) as refused:
        follow(log, base)

    assert (refused.value.expected, refused.value.found) == (3, base)
    assert log.end_offset == 3


def test_a_follower_keeps_the_good_batches_in_front_of_a_bad_one() -> None:
    log = new_log()
    data = bytearray(batch(b"a", base_offset=0) + batch(b"b", base_offset=1))
    data[-2] ^= 1

    with pytest.raises(Malformed):
        log.append_as_follower(bytes(data), NOW)

    assert offsets(log) == [0]


def test_a_follower_knows_the_producers_and_transactions_of_its_leader() -> None:
    leader, log = new_log(), new_log()
    send(leader, P, 0, b"a", txn=True)
    send(leader, Q, 0, b"b", txn=True)
    end_txn(leader, P, abort=True)

    log.append_as_follower(read_bytes(leader), NOW)

    assert log.producers.entries() == leader.producers.entries()
    assert log.aborted_in(0, 3) == leader.aborted_in(0, 3) == [AbortedTxn(P, 0, 2, 1)]
    assert log.producers.first_open_offset() == 0


@pytest.mark.parametrize("bytes_max", [1, 700, 3_000])
def test_a_read_gets_the_aborted_transactions_in_its_range_and_few_others(bytes_max: int) -> None:
    log = new_log(segment_bytes=20_000, index_interval_bytes=500)
    for number in range(200):
        # The transaction of every other producer spans those of two others.
        producer = P + number % 3
        send(log, producer, number // 3, b"x" * 50, txn=True)
        if number >= 2:
            end_txn(log, P + (number - 2) % 3, abort=number % 4 != 0)
    log.advance_high_watermark(log.end_offset)
    assert len(log.segments) > 1
    all_aborted = log.aborted_in(0, log.end_offset)
    offset = 0
    while offset < log.last_stable_offset:
        read = log.read(offset, upto=log.last_stable_offset, bytes_max=bytes_max)
        last = offsets_in(read.read())[-1][1]
        told = log.aborted_within(offset, read, log.last_stable_offset)

        needed = [one for one in all_aborted if one.first_offset <= last and one.last_offset >= offset]
        assert set(needed) <= set(told)
        assert len(told) <= len(needed) + 8, "what is behind the read costs every reader"
        offset = last + 1


def test_a_batch_larger_than_a_segment_fits_nowhere() -> None:
    log = new_log(segment_bytes=150)

    with pytest.raises(BatchTooLarge, match=r"limit of 150 bytes \(segment\.bytes\)"):
        put(log, b"v" * 100)
    with pytest.raises(BatchTooLarge):
        follow(log, 0, b"v" * 100)

    assert (log.end_offset, log.bases) == (0, [0])
