"""One segment: finding its batches, its indexes, and damaged indexes."""

from itertools import product
from random import Random

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.sim.disk import SimDisk
from barnabas.storage.files import NotCached
from barnabas.storage.lookup import offset_for_time
from barnabas.storage.segment.index import IndexDamaged
from barnabas.storage.segment.segment import HOT_BYTES, Segment
from barnabas.storage.warming import warmed
from support.log.logs import (
    DIRECTORY,
    NOW,
    batch,
    fill,
    new_disk,
    new_log,
    open_again,
    path_of,
    read_all,
    shut,
    wait,
)

pytestmark = pytest.mark.kernel

INTERVAL = 300


def filled(disk: SimDisk, count: int = 10, base: int = 100) -> Segment:
    """Batches of ten offsets each: 100 to 109, 110 to 119, ...; each is 10 ms later than the one before."""
    segment = Segment(disk, DIRECTORY, base)
    segment.make_files()
    for number in range(count):
        first = base + 10 * number
        values = [b"%03d" % offset for offset in range(first, first + 10)]
        data = batch(*values, base_offset=first, time=NOW + 10 * number)
        segment.append([data[:20], data[20:]], len(data), first + 9, NOW + 10 * number, INTERVAL)
    return segment


def left_on_disk(disk: SimDisk) -> Segment:
    """The same segment as a restarted broker finds it."""
    segment = filled(disk)
    segment.finish()
    segment.close()
    sizes = disk.tree()
    return Segment(
        disk,
        DIRECTORY,
        100,
        size=sizes[path_of(100, ".log")],
        index_size=sizes[path_of(100, ".index")],
        time_index_size=sizes[path_of(100, ".timeindex")],
    )


BOTH = pytest.mark.parametrize("make", [filled, left_on_disk], ids=["being written", "left on the disk"])


@BOTH
def test_every_offset_leads_to_the_batch_that_holds_it(make: type) -> None:
    segment = make(new_disk())

    for offset in range(100, 200):
        found = segment.find(offset)
        assert found is not None
        first = offset - offset % 10
        assert (found.base_offset, found.last_offset) == (first, first + 9)
        assert found.position == (first - 100) // 10 * found.size


@BOTH
def test_an_offset_before_all_batches_leads_to_the_first(make: type) -> None:
    found = make(new_disk()).find(3)

    assert found is not None
    assert (found.position, found.base_offset) == (0, 100)


@BOTH
def test_an_offset_after_all_batches_is_not_found(make: type) -> None:
    assert make(new_disk()).find(200) is None


@BOTH
def test_the_latest_timestamp_is_known(make: type) -> None:
    segment = make(new_disk())

    assert segment.latest() == (NOW + 90, 199)


def test_the_earliest_timestamp_is_that_of_the_first_batch() -> None:
    assert filled(new_disk()).earliest() == NOW
    assert Segment(new_disk(), DIRECTORY, 0).earliest() == -1


@BOTH
def test_times_lead_to_the_first_batch_that_is_late_enough(make: type) -> None:
    segment = make(new_disk())

    for wanted in range(91):
        found = segment.find_time(NOW + wanted, 0)
        assert found is not None
        assert found.base_offset == 100 + (wanted + 9) // 10 * 10
    assert segment.find_time(NOW + 91, 0) is None


def test_times_are_looked_for_from_the_floor_on() -> None:
    segment = filled(new_disk())

    assert [
        found and found.base_offset for found in (segment.find_time(NOW, at) for at in (110, 119, 120))
    ] == [
        110,
        110,
        120,
    ]
    assert segment.find_time(NOW, 200) is None


def test_indexes_get_an_entry_when_enough_bytes_have_passed() -> None:
    disk = new_disk()

    segment = filled(disk)
    segment.spill()

    # A batch has 168 bytes, so every second one is further from the last entry than the index interval.
    size = segment.size // 10
    entries = disk.read(path_of(100, ".index"))
    found = [
        (int.from_bytes(entries[at : at + 4], "big"), int.from_bytes(entries[at + 4 : at + 8], "big"))
        for at in range(0, len(entries), 8)
    ]
    assert found == [(29, 2 * size), (49, 4 * size), (69, 6 * size), (89, 8 * size)]


def test_a_time_that_is_not_later_makes_no_entry() -> None:
    disk = new_disk()
    segment = Segment(disk, DIRECTORY, 0)
    segment.make_files()

    for offset, time in enumerate([50, 40, 50, 60, 10]):
        data = batch(b"v", base_offset=offset, time=time)
        segment.append([data], len(data), offset, time, 0)
    segment.finish()

    entries = disk.read(path_of(0, ".timeindex"))
    pairs = [
        (int.from_bytes(entries[at : at + 8], "big"), entries[at + 11]) for at in range(0, len(entries), 12)
    ]
    assert pairs == [(50, 0), (60, 3)]


def test_a_segment_is_written_under_its_suffix() -> None:
    disk = new_disk()
    segment = Segment(disk, DIRECTORY, 5, suffix=".cleaned")
    segment.make_files()

    segment.append([batch(b"a", base_offset=5)], len(batch(b"a")), 5, NOW, 0)
    segment.append([batch(b"b", base_offset=9)], len(batch(b"b")), 9, NOW + 1, 0)
    segment.finish()
    segment.close()

    assert disk.tree() == {
        path_of(5, ".index.cleaned"): 8,
        path_of(5, ".log.cleaned"): 2 * len(batch(b"a")),
        path_of(5, ".timeindex.cleaned"): 12,
    }


# Truncation


@pytest.mark.parametrize("batches", range(10))
def test_a_truncated_segment_continues_as_if_the_rest_had_never_existed(batches: int) -> None:
    disk = new_disk()
    segment = filled(disk)
    size = segment.size // 10

    segment.cut(batches * size, 100 + 10 * batches)

    assert segment.size == disk.tree()[path_of(100, ".log")] == batches * size
    assert segment.find(100 + 10 * batches) is None
    expected = (NOW + 10 * (batches - 1), 99 + 10 * batches) if batches else (-1, 100)
    assert segment.latest() == expected
    again = batch(b"new", base_offset=300)
    segment.append([again], len(again), 300, NOW + 5000, 0)
    assert (segment.latest(), segment.earliest()) == ((NOW + 5000, 300), NOW if batches else NOW + 5000)
    found = segment.find(250)
    assert found is not None
    assert found.base_offset == 300


def test_cutting_a_segment_that_was_left_on_the_disk_finds_its_latest_time() -> None:
    segment = left_on_disk(new_disk())
    size = segment.size // 10

    # Batch 7 has no entry in any index: it is found by a walk from the one before.
    segment.cut(8 * size, 180)

    assert segment.latest() == (NOW + 70, 179)


# Cold


def test_recently_written_data_is_assumed_to_be_cached() -> None:
    disk = new_disk()
    segment = filled(disk)
    disk.cool()

    segment.need_cached(0, segment.size)

    assert segment.size < HOT_BYTES


def test_uncached_data_is_requested_from_the_disk() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.cool()

    with pytest.raises(NotCached):
        segment.need_cached(0, segment.size)
    with pytest.raises(NotCached):
        segment.find(150)


# Damage


def test_a_position_that_is_no_batch_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.rot(path_of(100, ".index"), 7, 0x01)

    with pytest.raises(IndexDamaged) as damage:
        segment.find(135)

    assert damage.value.base_offset == 100


def test_an_entry_that_leads_too_far_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    # Offset 149 becomes 117: the search for 120 would start after it.
    disk.rot(path_of(100, ".index"), 11, 0x20)

    with pytest.raises(IndexDamaged, match="lies before byte"):
        segment.find(125)


def test_a_position_after_the_end_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.rot(path_of(100, ".index"), 4, 0x10)

    with pytest.raises(IndexDamaged):
        segment.find(135)


def test_a_position_at_the_very_end_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    index = disk.open(path_of(100, ".index"))
    index.write(4, [int(segment.size).to_bytes(4, "big")])

    with pytest.raises(IndexDamaged):
        segment.find(135)


def test_a_negative_position_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.rot(path_of(100, ".index"), 4, 0x80)

    with pytest.raises(IndexDamaged):
        segment.find(135)


@pytest.mark.parametrize(("at", "mask"), [(7, 0x01), (11, 0x10)], ids=["timestamp", "offset"])
def test_a_time_that_its_batch_does_not_have_is_damage(at: int, mask: int) -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.rot(path_of(100, ".timeindex"), at, mask)

    with pytest.raises(IndexDamaged, match="has no timestamp"):
        segment.find_time(NOW + 25, 0)


def test_a_latest_time_that_its_batch_does_not_have_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.rot(path_of(100, ".timeindex"), disk.tree()[path_of(100, ".timeindex")] - 5, 0x10)

    with pytest.raises(IndexDamaged):
        segment.latest()


def test_a_negative_time_is_damage() -> None:
    disk = new_disk()
    segment = left_on_disk(disk)
    disk.rot(path_of(100, ".timeindex"), 0, 0x80)

    with pytest.raises(IndexDamaged):
        segment.find_time(NOW, 0)


@pytest.mark.parametrize("at", range(8))
def test_any_flipped_bit_of_an_offset_index_loses_no_record(at: int) -> None:
    log = new_log(disk := new_disk(), index_interval_bytes=INTERVAL)
    fill(log, 12)
    log.roll(NOW)
    fill(log, 2)
    end = shut(log)
    entries = disk.tree()[path_of(0, ".index")] // 8
    assert entries == 5

    for entry, bit in product(range(entries), range(8)):
        other = disk.branch(Random(1))
        other.rot(path_of(0, ".index"), 8 * entry + at, 1 << bit)
        again = open_again(other, clean=True, recovery_point=end, index_interval_bytes=INTERVAL).log
        for offset in range(14):
            assert [record.offset for record in read_all(again, offset)] == list(range(offset, 14))


@pytest.mark.parametrize("at", range(12))
def test_any_flipped_bit_of_a_time_index_finds_the_right_record(at: int) -> None:
    log = new_log(disk := new_disk(), index_interval_bytes=INTERVAL)
    fill(log, 12, step=10)
    log.roll(NOW)
    fill(log, 2, time=NOW + 120)
    end = shut(log)
    entries = disk.tree()[path_of(0, ".timeindex")] // 12
    assert entries == 6

    for entry, bit in product(range(entries), range(8)):
        other = disk.branch(Random(1))
        other.rot(path_of(0, ".timeindex"), 12 * entry + at, 1 << bit)
        again = open_again(other, clean=True, recovery_point=end, index_interval_bytes=INTERVAL).log
        for wanted in range(0, 120, 5):
            found = wait(
                warmed(again, InlineExecutor(), lambda log=again, at=wanted: offset_for_time(log, NOW + at))  # type: ignore[misc]
            )
            assert found is not None
            assert found.offset == (wanted + 9) // 10
