"""The result of a read: its first batch, its end, and its maximum size."""

import pytest

from barnabas.storage.errors import OffsetOutOfRange
from barnabas.storage.files import NotCached
from barnabas.storage.log import Log
from support.log.logs import (
    NOW,
    disk_of,
    fill,
    follow,
    new_log,
    offsets_in,
    path_of,
    put,
    read_all,
    read_bytes,
)

pytestmark = pytest.mark.kernel


def batches_of_three(segment_bytes: int = 1 << 20) -> Log:
    """Offsets 0 to 11 in batches of three records."""
    log = new_log(segment_bytes=segment_bytes, index_interval_bytes=100)
    for first in range(0, 12, 3):
        put(log, *(b"%d" % offset for offset in range(first, first + 3)))
    return log


def size_of_batch(log: Log) -> int:
    return log.size // 4


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    log = batches_of_three()

    for offset in range(12):
        first = offset - offset % 3
        assert offsets_in(read_bytes(log, offset))[0] == (first, first + 2)


def test_a_read_at_the_end_gives_nothing() -> None:
    assert read_bytes(batches_of_three(), 12) == b""


@pytest.mark.parametrize("offset", [-1, 13, 1 << 62])
def test_a_read_outside_of_the_log_is_refused(offset: int) -> None:
    log = batches_of_three()

    with pytest.raises(OffsetOutOfRange) as refused:
        read_bytes(log, offset)

    assert (refused.value.requested, refused.value.start, refused.value.end) == (offset, 0, 12)


def test_an_empty_log_can_be_read_at_its_only_offset() -> None:
    log = new_log()

    assert read_bytes(log, 0) == b""
    with pytest.raises(OffsetOutOfRange):
        read_bytes(log, 1)


# Limits by offset


@pytest.mark.parametrize(("upto", "last"), [(3, 2), (6, 5), (9, 8), (12, 11), (100, 11)])
def test_a_read_stops_in_front_of_upto(upto: int, last: int) -> None:
    assert offsets_in(read_bytes(batches_of_three(), 0, upto))[-1][1] == last


@pytest.mark.parametrize("upto", [4, 5])
def test_a_batch_that_goes_beyond_upto_is_not_given(upto: int) -> None:
    log = batches_of_three()

    assert offsets_in(read_bytes(log, 0, upto)) == [(0, 2)]
    assert read_bytes(log, 3, upto) == b""


@pytest.mark.parametrize("upto", [0, 3])
def test_nothing_is_read_from_upto_on(upto: int) -> None:
    assert read_bytes(batches_of_three(), 3, upto) == b""


# Limits by size


def test_a_read_gives_no_more_bytes_than_it_may_and_cuts_the_last_batch() -> None:
    log = batches_of_three()
    size = size_of_batch(log)

    data = read_bytes(log, bytes_max=2 * size + 5)

    assert len(data) == 2 * size + 5
    assert offsets_in(data) == [(0, 2), (3, 5)]


@pytest.mark.parametrize("bytes_max", [0, 1, 50])
def test_the_first_batch_is_returned_whole_whatever_the_limit(bytes_max: int) -> None:
    log = batches_of_three()

    data = read_bytes(log, 4, bytes_max=bytes_max)

    assert len(data) == size_of_batch(log)
    assert offsets_in(data) == [(3, 5)]


def test_a_first_batch_above_the_limit_is_omitted_if_allowed() -> None:
    log = batches_of_three()
    size = size_of_batch(log)

    assert read_bytes(log, bytes_max=size - 1, whole_batch=False) == b""
    assert offsets_in(read_bytes(log, bytes_max=size, whole_batch=False)) == [(0, 2)]


# Across segments


def test_a_read_continues_in_the_next_segments() -> None:
    log = batches_of_three(segment_bytes=200)
    assert log.bases == [0, 6]

    read = log.read(3, upto=12, bytes_max=1 << 20)

    assert [part.at for part in read.ranges] == [size_of_batch(log), 0]
    assert offsets_in(read.read()) == [(3, 5), (6, 8), (9, 11)]


def test_the_bound_holds_for_all_segments_together() -> None:
    log = batches_of_three(segment_bytes=200)
    size = size_of_batch(log)

    data = read_bytes(log, bytes_max=3 * size + 1)

    assert len(data) == 3 * size + 1
    assert offsets_in(data) == [(0, 2), (3, 5), (6, 8)]


def test_a_batch_of_a_further_segment_is_read_only_if_it_fits() -> None:
    log = batches_of_three(segment_bytes=200)
    size = size_of_batch(log)

    assert len(read_bytes(log, bytes_max=3 * size - 1)) == 2 * size


def test_a_read_is_bounded_in_the_number_of_segments() -> None:
    log = new_log(segment_bytes=201)
    fill(log, 40)
    assert len(log.segments) == 40

    read = log.read(0, upto=40, bytes_max=1 << 20)

    assert 1 < len(read.ranges) <= 16
    assert [record.offset for record in read_all(log)] == list(range(40))


def test_a_hole_at_the_end_of_a_segment_leads_to_the_next_one() -> None:
    log = new_log()
    follow(log, 0, b"a", b"b")
    log.roll(NOW)
    follow(log, 10, b"c")
    log.roll(NOW)
    follow(log, 20, b"d")

    for offset, expected in [(1, 0), (2, 10), (9, 10), (10, 10), (11, 20), (20, 20)]:
        assert offsets_in(read_bytes(log, offset))[0][0] == expected


def test_a_gap_within_a_segment_is_skipped() -> None:
    log = new_log()
    follow(log, 0, b"a")
    follow(log, 50, b"b")

    assert offsets_in(read_bytes(log, 7)) == [(50, 50)]
    assert offsets_in(read_bytes(log, 0, 7)) == [(0, 0)]
    assert read_bytes(log, 7, 30) == b""


def test_a_range_stays_readable_when_its_segment_is_gone() -> None:
    log = batches_of_three(segment_bytes=200)
    read = log.read(0, upto=6, bytes_max=1 << 20)
    before = read.read()

    for segment in log.drop_first(1):
        segment.remove_files()

    assert path_of(0, ".log") not in disk_of(log).tree()
    assert read.read() == before


# Cold pages


def test_a_read_of_recent_bytes_skips_the_cache_probe() -> None:
    log = batches_of_three()

    assert len(read_bytes(log)) == log.size


def test_a_cold_read_reports_the_missing_bytes() -> None:
    log = batches_of_three()
    disk_of(log).cool(path_of(0, ".log"))

    with pytest.raises(NotCached) as cold:
        read_bytes(log)

    assert cold.value.file.path == path_of(0, ".log")


def test_a_read_gives_the_warm_part_in_front_of_a_cold_segment() -> None:
    log = batches_of_three(segment_bytes=200)
    disk_of(log).cool(path_of(6, ".log"))

    assert offsets_in(read_bytes(log)) == [(0, 2), (3, 5)]
    with pytest.raises(NotCached):
        read_bytes(log, 6)
