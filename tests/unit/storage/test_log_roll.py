"""When a log rolls its segment, and the files of the finished one."""

import errno
from errno import ENOSPC

import pytest
from crc32c import crc32c

from barnabas.records.header import ATTRIBUTES_AT, BASE_TIMESTAMP_AT, CRC_AT, MAX_TIMESTAMP_AT
from barnabas.storage.flush import begin_flush
from barnabas.storage.log import OFFSET_SPAN_MAX, Log
from support.log.logs import (
    NOW,
    batch,
    disk_of,
    end_txn,
    files_of,
    fill,
    follow,
    new_log,
    offsets,
    open_again,
    path_of,
    put,
    send,
    shut,
)

pytestmark = pytest.mark.kernel

P = 4000
BATCH = 70  # what put() writes


def size_of(log: Log, base: int, kind: str) -> int:
    return disk_of(log).tree()[path_of(base, kind)]


# By size


def test_a_segment_takes_batches_up_to_segment_bytes_exactly() -> None:
    log = new_log(segment_bytes=3 * BATCH)

    for _ in range(3):
        put(log)
    assert log.bases == [0]
    put(log)

    assert log.bases == [0, 3]
    assert size_of(log, 0, ".log") == 3 * BATCH


def test_a_batch_that_does_not_fit_goes_into_the_next_segment() -> None:
    log = new_log(segment_bytes=3 * BATCH - 1)

    for _ in range(3):
        put(log)

    assert log.bases == [0, 2]
    assert offsets(log) == [0, 1, 2]


# By age


def test_age_is_measured_by_record_timestamps() -> None:
    log = new_log(segment_ms=1000)

    put(log, time=5000, now=NOW)
    put(log, time=6000, now=NOW + 9_000_000)
    assert log.bases == [0]
    put(log, time=6001, now=NOW)

    assert log.bases == [0, 2]


def test_age_counts_from_the_first_batch_of_the_segment() -> None:
    log = new_log(segment_ms=1000)

    for time in (5000, 5900, 6001, 6500, 7001, 7002):
        put(log, time=time)

    assert log.bases == [0, 2, 5]


def test_older_records_do_not_roll() -> None:
    log = new_log(segment_ms=1000)

    put(log, time=5000)
    put(log, time=1)

    assert log.bases == [0]


def test_without_timestamps_age_is_measured_by_the_clock() -> None:
    log = new_log(segment_ms=1000)

    put(log, time=-1, now=NOW)
    put(log, time=-1, now=NOW + 1000)
    assert log.bases == [0]
    put(log, time=-1, now=NOW + 1001)

    assert log.bases == [0, 2]
    put(log, time=-1, now=NOW + 2001)
    assert log.bases == [0, 2]


def test_an_empty_segment_is_never_too_old() -> None:
    log = new_log(segment_ms=1000)

    put(log, time=-1, now=NOW + 1_000_000)

    assert log.bases == [0]


def test_age_is_known_after_a_restart() -> None:
    log = new_log(segment_ms=1000)
    put(log, time=5000)
    put(log, time=5500)
    end = shut(log)

    again = open_again(disk_of(log), clean=True, recovery_point=end, segment_ms=1000).log
    put(again, time=6000)
    assert again.bases == [0]
    put(again, time=6001)

    assert again.bases == [0, 3]


def test_a_compacted_topic_rolls_in_time_for_its_compaction_lag() -> None:
    log = new_log(cleanup_policy=("compact",), segment_ms=10_000, max_compaction_lag_ms=1000)

    put(log, time=5000)
    put(log, time=6001)

    assert log.bases == [0, 1]


def test_jitter_lets_logs_roll_at_different_times_and_never_later() -> None:
    log = new_log(segment_ms=1_000_000, segment_jitter_ms=900_000)
    first, lengths = 5000, []

    for time in range(first, 10_000_000, 10_000):
        if put(log, time=time).base_offset == log.bases[-1] and time > first:
            lengths.append(time - first)
            first = time

    assert len(set(lengths)) > 3
    assert max(lengths) <= 1_010_000
    assert min(lengths) >= 100_000


# By a full index, by the span of offsets


def test_a_full_offset_index_rolls() -> None:
    # Records without timestamps, so that the time index, which has larger entries, stays empty.
    log = new_log(index_interval_bytes=0, segment_index_bytes=24)

    for _ in range(6):
        put(log, time=-1)

    # The first batch of a segment has no entry.
    assert log.bases == [0, 4]
    assert size_of(log, 0, ".index") == 24


def test_a_full_time_index_rolls_and_keeps_room_for_one_last_entry() -> None:
    log = new_log(index_interval_bytes=0, segment_index_bytes=36)

    for number in range(6):
        put(log, time=NOW + number)

    # Three entries fit: those of the second and third batch, and one that is written at the roll.
    assert log.bases == [0, 3]
    assert size_of(log, 0, ".timeindex") <= 36


def test_offsets_of_a_segment_fit_into_32_bits() -> None:
    log = new_log()
    follow(log, 0)
    follow(log, OFFSET_SPAN_MAX)
    assert log.bases == [0]

    follow(log, OFFSET_SPAN_MAX + 1)

    assert log.bases == [0, OFFSET_SPAN_MAX + 1]
    assert offsets(log) == [0, OFFSET_SPAN_MAX, OFFSET_SPAN_MAX + 1]


def test_a_batch_that_would_only_end_too_far_away_rolls_as_well() -> None:
    log = new_log()
    follow(log, 0)

    follow(log, OFFSET_SPAN_MAX, b"a", b"b")

    assert log.bases == [0, 1]
    assert offsets(log) == [0, OFFSET_SPAN_MAX, OFFSET_SPAN_MAX + 1]


# The finished segment


def test_a_rolled_segment_has_complete_indexes_and_a_producer_snapshot() -> None:
    log = new_log(index_interval_bytes=100)
    send(log, P, 0, txn=True)
    end_txn(log, P, abort=True)
    fill(log, 3, time=NOW + 10)

    log.roll(NOW)

    assert log.snapshots == [5]
    assert size_of(log, 0, ".index") == 8 * 3
    assert files_of(disk_of(log))["00000000000000000000.timeindex"][-12:] == (
        (NOW + 12).to_bytes(8, "big") + (4).to_bytes(4, "big")
    )
    assert size_of(log, 0, ".txnindex") == 34
    assert {name for name in files_of(disk_of(log)) if name.startswith("00000000000000000005")} == {
        "00000000000000000005.log",
        "00000000000000000005.index",
        "00000000000000000005.timeindex",
        "00000000000000000005.snapshot",
    }


def test_rolling_an_empty_segment_does_nothing() -> None:
    log = new_log()
    put(log)
    log.roll(NOW)

    log.roll(NOW)

    assert log.bases == [0, 1]


def test_jobs_keep_the_lists_that_they_were_given() -> None:
    log = new_log()
    put(log)
    segments, job = log.segments, begin_flush(log)

    log.roll(NOW)

    assert len(segments) == 1
    assert (len(log.segments), job.upto) == (2, 1)


def test_a_segment_is_preallocated_if_configured_and_truncated_at_the_roll() -> None:
    log = new_log(preallocate=True, segment_bytes=5000)
    fill(log, 3)
    size = log.size
    assert (size_of(log, 0, ".log"), size) == (5000, 603)

    log.roll(NOW)

    assert (size_of(log, 0, ".log"), size_of(log, 3, ".log")) == (size, 5000)
    fill(log, 1)
    end = shut(log)
    assert size_of(log, 3, ".log") == 201
    assert offsets(open_again(disk_of(log), clean=True, recovery_point=end).log) == [0, 1, 2, 3]


def test_a_roll_that_fails_can_be_done_again() -> None:
    log = new_log()
    put(log)
    disk_of(log).fail(path_of(1, ".log"), ["create"], errno=errno.ENOSPC)

    with pytest.raises(OSError, match="No space left"):
        log.roll(NOW)
    assert log.bases == [0]
    put(log)
    log.roll(NOW)

    assert log.bases == [0, 2]
    assert offsets(log) == [0, 1]


def test_a_write_that_failed_leaves_nothing_in_a_finished_segment() -> None:
    log = new_log()
    fill(log, 3)
    size = log.size
    disk_of(log).fail(path_of(0, ".log"), ["write"], errno=errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        fill(log, 1)

    log.roll(NOW)

    assert size_of(log, 0, ".log") == size


def test_batches_flushed_after_a_failed_write_survive_a_crash() -> None:
    log = new_log()
    fill(log, 3)
    disk_of(log).fail(path_of(0, ".log"), ["write"], errno=errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        fill(log, 1)
    log.roll(NOW)
    fill(log, 2)
    shut(log)

    # The recovery point on disk may be older, because it is written only periodically.
    again = open_again(disk_of(log), recovery_point=0).log

    assert offsets(again) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["log", "index", "timeindex"])
def test_a_roll_that_fails_leaves_no_files_behind(kind: str) -> None:
    log = new_log()
    put(log)
    before = set(files_of(disk_of(log)))
    disk_of(log).fail(f"/d/t-0/{1:020d}.{kind}", {"create"}, errno=ENOSPC)

    with pytest.raises(OSError, match="No space"):
        log.roll(NOW)

    assert set(files_of(disk_of(log))) - before == {"00000000000000000001.snapshot"}
    log.roll(NOW)
    assert log.bases == [0, 1]


# Times before 1970


def test_timestamps_before_1970_do_not_roll_a_segment() -> None:
    log = new_log(segment_ms=P)
    put_old = batch(b"v", time=0)
    log.append_as_leader(at_time(put_old, -P), leader_epoch=0, now_ms=NOW)

    put(log, time=NOW)
    assert log.bases == [0]

    put(log, time=NOW, now=NOW + P + 1)
    assert log.bases == [0, 2]


def test_a_segment_with_nothing_but_times_before_1970_has_no_latest_time() -> None:
    log = new_log()
    for time in (-2, -5 * P):
        log.append_as_leader(at_time(batch(b"v", time=0), time), leader_epoch=0, now_ms=NOW)

    assert log.active.latest() == (-1, 0)
    reopened = open_again(disk_of(log)).log
    assert reopened.active.latest() == (-1, 0)
    assert reopened.active.earliest() == -1


def at_time(data: bytes, time: int) -> bytes:
    changed = bytearray(data)
    for place in (BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT):
        changed[place : place + 8] = time.to_bytes(8, "big", signed=True)
    changed[CRC_AT:ATTRIBUTES_AT] = crc32c(bytes(changed[ATTRIBUTES_AT:])).to_bytes(4, "big")
    return bytes(changed)
