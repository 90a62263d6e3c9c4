"""The indexes of one segment: lookups in memory and in the file, and truncation."""

from random import Random

import pytest

from barnabas.sim.disk import SimDisk
from barnabas.storage.files import NotCached
from barnabas.storage.segment.index import SPILL_BYTES, IndexDamaged, OffsetIndex, TimeIndex

pytestmark = pytest.mark.kernel

BASE = 1000
PATH = "/d/i"
# More entries than are read at once, so that a search takes several steps.
MANY = 2000


def new_disk() -> SimDisk:
    disk = SimDisk(Random(1))
    disk.make_directory("/d")
    return disk


def offset_index(count: int, disk: SimDisk | None = None, *, spilled: int = 0) -> OffsetIndex:
    """Batches that end at offsets 1010, 1020 and so on, every 100 bytes; the first ones are in the file."""
    index = OffsetIndex(disk or new_disk(), PATH, BASE, 0)
    for number in range(1, count + 1):
        index.append(BASE + 10 * number, 100 * number)
        if number == spilled:
            index.spill()
    return index


def time_index(count: int, disk: SimDisk | None = None, *, spilled: int = 0) -> TimeIndex:
    index = TimeIndex(disk or new_disk(), PATH, BASE, 0)
    for number in range(1, count + 1):
        index.append(5000 + 100 * number, BASE + 10 * number)
        if number == spilled:
            index.spill()
    return index


WHERE = pytest.mark.parametrize("spilled", [0, 7, 10], ids=["in memory", "in both", "on file"])


# The offset index


@WHERE
@pytest.mark.parametrize(
    ("offset", "position"),
    [(1000, 0), (1009, 0), (1010, 100), (1011, 100), (1070, 700), (1079, 700), (1080, 800), (1100, 1000)],
)
def test_a_lookup_answers_with_the_last_batch_at_or_before_the_offset(
    offset: int, position: int, spilled: int
) -> None:
    assert offset_index(10, spilled=spilled).lookup(offset) == position


@WHERE
def test_a_lookup_after_the_last_entry_returns_it(spilled: int) -> None:
    assert offset_index(10, spilled=spilled).lookup(1_000_000) == 1000


def test_an_empty_index_maps_every_offset_to_the_start() -> None:
    index = offset_index(0)

    assert index.lookup(1500) == 0
    assert index.last() == (BASE, 0)


@pytest.mark.parametrize("spilled", [0, 1100, MANY], ids=["in memory", "in both", "on file"])
def test_every_entry_of_a_long_index_is_found(spilled: int) -> None:
    index = offset_index(MANY, spilled=spilled)

    assert [index.lookup(BASE + 10 * number + 3) for number in range(1, MANY + 1)] == [
        100 * number for number in range(1, MANY + 1)
    ]


@WHERE
def test_the_last_entry_is_the_newest(spilled: int) -> None:
    assert offset_index(10, spilled=spilled).last() == (1100, 1000)


def test_entries_are_written_as_kafka_writes_them() -> None:
    disk = new_disk()

    offset_index(2, disk).spill()

    assert disk.read(PATH) == bytes.fromhex("0000000a 00000064 00000014 000000c8")


def test_entries_stay_in_memory_until_a_page_is_worth_writing() -> None:
    disk = new_disk()
    index = offset_index(SPILL_BYTES // 8, disk)

    index.make_room()
    assert PATH not in disk.tree()

    index.append(BASE + 100_000, 1_000_000)
    index.make_room()
    assert disk.tree() == {PATH: SPILL_BYTES // 8 * 8 + 8}


@WHERE
@pytest.mark.parametrize(
    ("below", "left"), [(1000, 0), (1010, 0), (1011, 1), (1070, 6), (1071, 7), (1080, 7), (1101, 10)]
)
def test_entries_from_an_offset_on_are_forgotten(below: int, left: int, spilled: int) -> None:
    disk = new_disk()
    index = offset_index(10, disk, spilled=spilled)

    index.keep_below(below)

    assert index.count == left
    assert index.last() == (BASE + 10 * left, 100 * left)
    assert index.lookup(2000) == 100 * left
    index.append(BASE + 500, 7777)
    index.spill()
    assert disk.tree() == {PATH: 8 * (left + 1)}
    assert OffsetIndex(disk, PATH, BASE, 8 * (left + 1)).lookup(2000) == 7777


def test_an_index_continues_its_existing_file() -> None:
    disk = new_disk()
    offset_index(10, disk, spilled=10).close()

    again = OffsetIndex(disk, PATH, BASE, 80)
    again.append(1110, 1100)

    assert (again.count, again.last()) == (11, (1110, 1100))
    assert [again.lookup(offset) for offset in (1005, 1010, 1105, 1110)] == [0, 100, 1000, 1100]


def test_a_cold_index_is_requested_completely() -> None:
    disk = new_disk()
    index = offset_index(MANY, disk, spilled=MANY)
    disk.cool()

    with pytest.raises(NotCached) as cold:
        index.lookup(1500)

    assert (cold.value.at, cold.value.size) == (0, MANY * 8)
    cold.value.warm()
    assert index.lookup(1505) == 5000


def test_a_search_in_memory_needs_no_file() -> None:
    disk = new_disk()
    index = offset_index(MANY, disk, spilled=MANY - 10)
    disk.cool()

    assert index.lookup(BASE + 10 * MANY) == 100 * MANY
    with pytest.raises(NotCached):
        index.lookup(BASE + 10)


def test_a_file_shorter_than_its_entries_is_damage() -> None:
    disk = new_disk()
    index = offset_index(10, disk, spilled=10)
    disk.open(PATH).truncate(77)

    with pytest.raises(IndexDamaged, match="shorter than its 10 entries") as damage:
        index.lookup(1100)

    assert damage.value.base_offset == BASE


def test_a_half_entry_at_the_end_of_a_file_does_not_count() -> None:
    disk = new_disk()
    offset_index(10, disk, spilled=10).close()

    assert OffsetIndex(disk, PATH, BASE, 79).count == 9


# The time index


@WHERE
@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (-1, 1000)),
        (5100, (-1, 1000)),
        (5101, (5100, 1010)),
        (5200, (5100, 1010)),
        (5701, (5700, 1070)),
        (5801, (5800, 1080)),
        (9999, (6000, 1100)),
    ],
)
def test_a_lookup_answers_with_the_last_entry_before_the_timestamp(
    timestamp: int, found: tuple[int, int], spilled: int
) -> None:
    assert time_index(10, spilled=spilled).lookup(timestamp) == found


@WHERE
def test_the_latest_timestamp_is_the_newest_entry(spilled: int) -> None:
    assert time_index(10, spilled=spilled).last() == (6000, 1100)
    assert time_index(0).last() == (-1, BASE)


def test_times_are_written_as_kafka_writes_them() -> None:
    disk = new_disk()

    time_index(1, disk).spill()

    assert disk.read(PATH) == bytes.fromhex("00000000000013ec 0000000a")


@WHERE
@pytest.mark.parametrize(
    ("below", "left"), [(1000, 0), (1010, 0), (1011, 1), (1070, 6), (1071, 7), (1080, 7), (1101, 10)]
)
def test_times_of_an_offset_and_later_are_forgotten(below: int, left: int, spilled: int) -> None:
    index = time_index(10, spilled=spilled)

    index.keep_below(below)

    assert index.count == left
    assert index.last() == ((5000 + 100 * left, BASE + 10 * left) if left else (-1, BASE))


def test_timestamps_beyond_32_bits_are_kept() -> None:
    index = TimeIndex(new_disk(), PATH, BASE, 0)

    index.append(1_700_000_000_123, BASE + 5)
    index.spill()

    assert index.last() == (1_700_000_000_123, BASE + 5)
    assert index.lookup(1_700_000_000_124) == (1_700_000_000_123, BASE + 5)
