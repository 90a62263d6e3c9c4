"""Offsets by time, and the latest record."""

from struct import pack_into

import pytest
from crc32c import crc32c

from barnabas.records.builder import build_batch
from barnabas.records.header import ATTRIBUTES_AT, BATCH_LENGTH_AT, COUNT_AT, CRC_AT, Codec
from barnabas.storage.log import Log
from barnabas.storage.lookup import TimedOffset, latest_record, offset_for_time
from support.log.logs import NOW, end_txn, fill, new_log, put, send

pytestmark = pytest.mark.kernel


def put_times(log: Log, *times: int, epoch: int = 0, codec: Codec = Codec.NONE) -> None:
    """One batch of records with these timestamps."""
    data = build_batch([(time, b"k", b"v", ()) for time in times], codec=codec)
    log.append_as_leader(data, leader_epoch=epoch, now_ms=NOW)


def found_at(log: Log, timestamp: int) -> int | None:
    found = offset_for_time(log, timestamp)
    return None if found is None else found.offset


@pytest.mark.parametrize("segment_bytes", [1 << 20, 500], ids=["one segment", "several"])
@pytest.mark.parametrize("interval", [0, 300, 4096])
def test_every_time_leads_to_the_first_record_of_it_or_later(segment_bytes: int, interval: int) -> None:
    log = new_log(segment_bytes=segment_bytes, index_interval_bytes=interval)
    fill(log, 20, step=10)

    wanted = range(0, 191, 5)
    assert [found_at(log, NOW + ms) for ms in wanted] == [(ms + 9) // 10 for ms in wanted]
    assert (found_at(log, 0), found_at(log, NOW + 191)) == (0, None)


def test_the_lookup_returns_the_time_and_epoch_of_the_record() -> None:
    log = new_log()
    put_times(log, 100, epoch=3)
    put_times(log, 200, 300, epoch=5)

    assert offset_for_time(log, 50) == TimedOffset(0, 100, 3)
    assert offset_for_time(log, 250) == TimedOffset(2, 300, 5)


@pytest.mark.parametrize("codec", list(Codec))
def test_within_a_batch_the_first_matching_record_is_found(codec: Codec) -> None:
    log = new_log()
    put_times(log, 100, 400, 200, 300, codec=codec)

    assert [found_at(log, wanted) for wanted in (0, 100, 101, 250, 400, 401)] == [0, 0, 1, 1, 1, None]


def test_the_first_record_in_the_log_counts_not_the_earliest_time() -> None:
    log = new_log()
    put_times(log, 500)
    put_times(log, 100)
    put_times(log, 600)

    assert [found_at(log, wanted) for wanted in (50, 200, 501)] == [0, 0, 2]


def test_an_earlier_segment_with_a_later_time_is_found_first() -> None:
    log = new_log()
    put_times(log, 900)
    log.roll(NOW)
    put_times(log, 100)
    log.roll(NOW)
    put_times(log, 1000)

    assert [found_at(log, wanted) for wanted in (100, 900, 901)] == [0, 0, 2]


def test_an_empty_log_has_no_record_of_any_time() -> None:
    log = new_log()

    assert offset_for_time(log, 0) is None
    assert latest_record(log) is None


def test_deleted_records_are_not_found() -> None:
    log = new_log()
    put_times(log, 100, 200, 300)
    put_times(log, 50)
    put_times(log, 400)
    log.advance_high_watermark(5)
    log.advance_start(2)

    assert [found_at(log, wanted) for wanted in (0, 150, 301)] == [2, 2, 4]


def test_a_batch_with_deleted_late_records_is_skipped() -> None:
    log = new_log()
    put_times(log, 900, 100)
    put_times(log, 500)
    log.advance_high_watermark(3)
    log.advance_start(1)

    assert [found_at(log, wanted) for wanted in (100, 200, 600)] == [1, 2, None]


# The latest record


def test_the_latest_record_is_the_first_of_the_latest_time() -> None:
    log = new_log()
    put_times(log, 100, 700)
    put_times(log, 300, 700, 700, epoch=2)
    put_times(log, 600)

    assert latest_record(log) == TimedOffset(1, 700, 0)


def test_the_latest_record_is_found_over_all_segments() -> None:
    log = new_log()
    put_times(log, 100)
    log.roll(NOW)
    put_times(log, 900, 800, epoch=4)
    log.roll(NOW)
    put_times(log, 300)
    log.roll(NOW)

    assert latest_record(log) == TimedOffset(1, 900, 4)


def test_of_two_segments_with_one_latest_time_the_first_has_the_record() -> None:
    log = new_log()
    put_times(log, 900)
    log.roll(NOW)
    put_times(log, 900)

    assert latest_record(log) == TimedOffset(0, 900, 0)


def test_records_without_times_have_no_latest() -> None:
    log = new_log()
    put_times(log, -1, -1)

    assert latest_record(log) is None
    assert found_at(log, 0) is None


def test_a_deleted_segment_does_not_have_the_latest_record() -> None:
    log = new_log()
    put_times(log, 900)
    log.roll(NOW)
    put_times(log, 100)
    log.advance_high_watermark(2)
    log.advance_start(1)

    assert latest_record(log) == TimedOffset(1, 100, 0)


def test_deleted_batches_do_not_have_the_latest_record() -> None:
    log = new_log()
    put_times(log, 900)
    put_times(log, 200)
    put_times(log, 100)
    log.advance_high_watermark(3)
    log.advance_start(1)

    assert latest_record(log) == TimedOffset(1, 200, 0)


def test_a_batch_counts_with_its_remaining_records() -> None:
    log = new_log()
    put_times(log, 900, 100)
    put_times(log, 500)
    log.advance_high_watermark(3)
    log.advance_start(1)

    assert latest_record(log) == TimedOffset(2, 500, 0)


def test_with_everything_deleted_there_is_no_latest_record() -> None:
    log = new_log()
    put_times(log, 900, 100)
    log.advance_high_watermark(2)
    log.advance_start(2)

    assert latest_record(log) is None
    assert offset_for_time(log, 0) is None


def test_an_empty_compacted_batch_has_no_latest_record() -> None:
    log = new_log()
    put_times(log, 100)
    emptied = bytearray(build_batch([(900, b"k", b"v", ())], base_offset=1)[:61])
    pack_into(">i", emptied, BATCH_LENGTH_AT, 61 - 12)
    pack_into(">i", emptied, COUNT_AT, 0)
    pack_into(">I", emptied, CRC_AT, crc32c(bytes(emptied[ATTRIBUTES_AT:])))
    log.append_as_follower(bytes(emptied), NOW)

    assert latest_record(log) == TimedOffset(0, 100, 0)
    assert [found_at(log, wanted) for wanted in (100, 101)] == [0, None]


def test_markers_have_times_too() -> None:
    log = new_log()
    send(log, 5, 0, txn=True)
    end_txn(log, 5, abort=False)
    put(log, time=NOW - 5)

    assert found_at(log, NOW) == 0
    assert latest_record(log) == TimedOffset(0, NOW, 0)
