import pytest

from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType
from barnabas.records.header import Codec
from barnabas.sim.disk import SimDisk
from barnabas.storage.cleaner.facts import CleanedTooLarge, CleaningStopped
from barnabas.storage.cleaner.job import Cleaning, clean
from barnabas.storage.cleaner.key_map import SLOT_SIZE
from barnabas.storage.cleaner.pieces import PIECE_BYTES
from barnabas.storage.errors import CorruptLog
from barnabas.storage.names import CLEANED, LOG, TXN_INDEX, file_name
from barnabas.storage.producers.table import LastRecord
from barnabas.storage.segment.txn_index import AbortedTxn, read_entries
from support.log.compaction import (
    DIRECTORY,
    Setup,
    bases,
    clean_and_swap,
    marker,
    new_disk,
    pairs,
    read_headers,
    read_records,
    records,
    simple_batch,
    write_segment,
)

pytestmark = pytest.mark.kernel


def path(base_offset: int, kind: str = LOG) -> str:
    return f"{DIRECTORY}/{file_name(base_offset, kind)}"


def three_segments() -> SimDisk:
    disk = new_disk()
    write_segment(disk, 0, [simple_batch(0, (b"a", b"0"), (b"b", b"1"))])
    write_segment(disk, 2, [simple_batch(2, (b"a", b"2")), simple_batch(3, (b"c", b"3"))])
    write_segment(disk, 4, [simple_batch(4, (b"b", b"4"), (b"d", b"5"))])
    return disk


def cleaned_files(disk: SimDisk) -> list[str]:
    return [entry.name for entry in disk.entries(DIRECTORY) if entry.name.endswith(CLEANED)]


def test_the_last_value_of_every_key_is_left_in_one_segment() -> None:
    disk = three_segments()

    cleaning = clean_and_swap(disk, Setup(upper_bound=6))

    assert bases(disk) == [0]
    assert pairs(disk) == [(2, b"a", b"2"), (3, b"c", b"3"), (4, b"b", b"4"), (5, b"d", b"5")]
    assert cleaning.next_dirty_offset == 6
    stats = cleaning.stats
    assert (stats.records_read, stats.records_kept, stats.map_records_read) == (6, 4, 6)
    assert stats.bytes_read == stats.map_bytes_read > stats.bytes_kept == len(disk.read(path(0)))
    assert not stats.map_was_full


def test_the_result_of_a_group_has_its_sizes_and_offsets() -> None:
    disk = three_segments()

    _, groups = clean(disk, Setup(upper_bound=6).facts(disk))

    (group,) = groups
    assert (group.base_offset, group.replaces, group.aborted) == (0, (0, 2, 4), ())
    assert group.size == len(disk.read(path(0) + CLEANED))
    assert group.index_size == len(disk.read(path(0, ".index") + CLEANED))
    assert group.time_index_size == len(disk.read(path(0, ".timeindex") + CLEANED)) > 0
    assert (group.max_timestamp, group.max_timestamp_offset) == (1000, 2)


def test_nothing_from_the_upper_bound_on_is_touched() -> None:
    disk = three_segments()
    before = disk.read(path(4))

    cleaning = clean_and_swap(disk, Setup(upper_bound=4))

    assert bases(disk) == [0, 4]
    assert disk.read(path(4)) == before
    assert pairs(disk)[:3] == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"3")]
    assert cleaning.next_dirty_offset == 4


def test_groups_are_bounded_by_the_size_of_a_segment() -> None:
    disk = three_segments()

    cleaning = clean_and_swap(disk, Setup(upper_bound=6, group_bytes=200))

    assert bases(disk) == [0, 2, 4]
    assert cleaning.stats.bytes_kept == sum(len(disk.read(path(base))) for base in (0, 2, 4))
    assert pairs(disk) == [(2, b"a", b"2"), (3, b"c", b"3"), (4, b"b", b"4"), (5, b"d", b"5")]


def test_a_segment_without_remaining_records_becomes_empty() -> None:
    disk = three_segments()
    write_segment(disk, 6, [simple_batch(6, (b"a", b"6"), (b"b", b"7"))])

    clean_and_swap(disk, Setup(upper_bound=8, group_bytes=1))

    assert bases(disk) == [0, 2, 4, 6]
    assert disk.read(path(0)) == b""
    clean_and_swap(disk, Setup(upper_bound=8, dirty_start=8))
    assert bases(disk) == [0, 2, 4, 6]


def test_something_is_left_of_the_last_segment_of_a_group() -> None:
    disk = new_disk()
    write_segment(disk, 0, [simple_batch(0, (b"a", b"0"))])
    write_segment(disk, 1, [simple_batch(1, (b"b", b"1"))])
    write_segment(disk, 2, [simple_batch(2, (b"c", b"2")), simple_batch(3, (b"d", b"3"))])
    write_segment(disk, 4, [])
    write_segment(disk, 5, [simple_batch(5, (b"b", b"5"), (b"c", b"6"), (b"d", b"7"))])

    cleaning = Cleaning(disk, Setup(upper_bound=8, group_bytes=4 * 70).facts(disk))
    cleaning.fill_map()
    group = cleaning.clean_group(0)

    # Otherwise recovery after a power loss would keep segments 1 and 2.
    assert group.replaces == (0, 1, 2, 4)
    left = disk.read(path(0) + CLEANED)
    assert left == disk.read(path(0)) + left[-61:]


def test_nothing_is_left_for_the_end_of_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = new_disk()
    batches = [simple_batch(at, (b"a", b"%d" % at)) for at in range(1, 5)]
    write_segment(disk, 0, [simple_batch(0, (b"z", b"0"))])
    write_segment(disk, 1, batches)
    monkeypatch.setattr("barnabas.storage.cleaner.pieces.PIECE_BYTES", len(batches[0]))

    clean_and_swap(disk, Setup(upper_bound=5))

    assert [header.base_offset for header in read_headers(disk)] == [0, 4]


def test_offsets_missing_at_the_end_of_a_segment_are_clean() -> None:
    disk = new_disk()
    write_segment(disk, 0, [simple_batch(0, (b"a", b"0"))])
    write_segment(disk, 5, [simple_batch(5, (b"b", b"5"))])

    assert clean_and_swap(disk, Setup(upper_bound=9)).next_dirty_offset == 9


def test_clean_segments_lose_keys_overwritten_in_dirty_ones() -> None:
    disk = three_segments()
    clean_and_swap(disk, Setup(upper_bound=4, group_bytes=1))

    clean_and_swap(disk, Setup(upper_bound=6, dirty_start=4))

    assert pairs(disk) == [(2, b"a", b"2"), (3, b"c", b"3"), (4, b"b", b"4"), (5, b"d", b"5")]


def test_a_full_key_map_cleans_up_to_its_last_offset() -> None:
    disk = three_segments()
    setup = Setup(upper_bound=6, map_bytes=4 * SLOT_SIZE)

    cleaning = clean_and_swap(disk, setup)

    assert cleaning.stats.map_was_full
    assert cleaning.next_dirty_offset == 4
    assert pairs(disk) == [(2, b"a", b"2"), (3, b"c", b"3"), (4, b"b", b"4"), (5, b"d", b"5")]
    again = clean_and_swap(disk, Setup(upper_bound=6, map_bytes=4 * SLOT_SIZE, dirty_start=4))
    assert again.next_dirty_offset == 6


def test_nothing_dirty_is_nothing_to_do() -> None:
    disk = three_segments()
    cleaning = clean_and_swap(disk, Setup(upper_bound=4, dirty_start=4))
    assert (cleaning.groups, cleaning.next_dirty_offset) == ([], 4)


def test_aborted_data_is_removed_and_the_new_index_has_the_rest() -> None:
    disk = new_disk()
    txn = AbortedTxn(7, 0, 2, 3)
    write_segment(disk, 0, [transactional(0, (b"a", b"0"), (b"b", b"1"))])
    write_segment(disk, 2, [marker(ControlType.ABORT, base_offset=2, producer_id=7)], [txn])

    setup = Setup(upper_bound=3, aborted=[txn], producers={7: LastRecord(1, 0)})
    clean_and_swap(disk, setup)

    assert read_records(disk) == []
    # The producer's last batch is still there, and so are its marker and the entry.
    assert [(one.base_offset, one.count, one.is_control) for one in read_headers(disk)] == [
        (0, 0, False),
        (2, 1, True),
    ]
    file = disk.open(path(0, TXN_INDEX))
    assert read_entries(file, 0) == [txn]


def test_an_aborted_transaction_without_data_leaves_the_index() -> None:
    disk = new_disk()
    txn = AbortedTxn(7, 0, 2, 3)
    write_segment(disk, 0, [transactional(0, (b"a", b"0"), (b"b", b"1"))])
    write_segment(disk, 2, [marker(ControlType.ABORT, base_offset=2, producer_id=7)], [txn])
    clean_and_swap(disk, Setup(upper_bound=3, aborted=[txn]))
    assert path(0, TXN_INDEX) in disk.tree()

    write_segment(disk, 3, [simple_batch(3, (b"c", b"3"))])
    clean_and_swap(disk, Setup(upper_bound=4, dirty_start=3, aborted=[txn]))

    assert path(0, TXN_INDEX) not in disk.tree()
    assert [one.delete_horizon_ms is None for one in read_headers(disk)] == [False, True]


def test_an_aborted_transaction_of_the_clean_part_does_not_hide_later_ones() -> None:
    disk = new_disk()
    txn = AbortedTxn(7, 0, 2, 3)
    write_segment(disk, 0, [transactional(0, (b"a", b"0"), (b"b", b"1"))])
    write_segment(disk, 2, [marker(ControlType.ABORT, base_offset=2, producer_id=7)], [txn])
    commit = marker(ControlType.COMMIT, base_offset=5, producer_id=7)
    write_segment(disk, 3, [simple_batch(3, (b"a", b"3")), transactional(4, (b"a", b"4")), commit])

    clean_and_swap(disk, Setup(upper_bound=6, dirty_start=3, aborted=[txn]))

    assert pairs(disk) == [(4, b"a", b"4")]


def transactional(base_offset: int, *new: tuple[bytes, bytes]) -> bytes:
    return build_batch(
        records(*new),
        base_offset=base_offset,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_batches_larger_than_a_piece_are_read_whole(codec: Codec) -> None:
    disk = new_disk()
    noise = bytes((7 * at * at + at // 3) & 0xFF for at in range(PIECE_BYTES))
    big = build_batch(records((b"a", noise), (b"b", noise * 2), (b"a", b"2")), codec=codec)
    write_segment(disk, 0, [big, simple_batch(3, (b"c", b"3"))])

    clean_and_swap(disk, Setup(upper_bound=4))

    assert pairs(disk) == [(1, b"b", noise * 2), (2, b"a", b"2"), (3, b"c", b"3")]


def test_many_batches_make_no_difference() -> None:
    disk = new_disk()
    count = 3 * PIECE_BYTES // 1000
    batches = [simple_batch(at, (b"%d" % (at % 400), b"v" * 1000)) for at in range(count)]
    write_segment(disk, 0, batches)

    clean_and_swap(disk, Setup(upper_bound=count))

    assert [record.offset for record in read_records(disk)] == list(range(count - 400, count))


@pytest.mark.parametrize("damaged", [0, 2, 4])
@pytest.mark.parametrize("dirty_start", [0, 6])
def test_damage_is_reported_and_nothing_is_changed(damaged: int, dirty_start: int) -> None:
    disk = three_segments()
    write_segment(disk, 6, [simple_batch(6, (b"a", b"6"))])
    size = len(disk.read(path(damaged)))
    disk.rot(path(damaged), size - 1, 4)
    before = {name: disk.read(name) for name in disk.tree()}

    with pytest.raises(CorruptLog, match=rf"{file_name(damaged, LOG)} is damaged at byte \d+: CRC is"):
        clean_and_swap(disk, Setup(upper_bound=7, dirty_start=dirty_start))

    assert {name: disk.read(name) for name in disk.tree()} == before


@pytest.mark.parametrize("cut", [1, 40, 65])
def test_a_source_that_ends_in_the_middle_of_a_batch_is_damaged(cut: int) -> None:
    disk = three_segments()
    file = disk.open(path(2))
    file.truncate(file.size() - cut)
    file.close()

    with pytest.raises(CorruptLog, match="batch is truncated after"):
        clean_and_swap(disk, Setup(upper_bound=6))


def test_a_source_that_is_shorter_than_it_should_be_is_damaged() -> None:
    disk = three_segments()
    facts = Setup(upper_bound=6).facts(disk)
    file = disk.open(path(2))
    file.truncate(0)
    file.close()

    with pytest.raises(CorruptLog, match=r"damaged at byte 0: file ends before byte \d+"):
        clean(disk, facts)


def test_a_wrong_batch_length_allocates_nothing() -> None:
    disk = three_segments()
    file = disk.open(path(2))
    file.write(8, [b"\x7f\xff\xff\xff"])
    file.close()

    with pytest.raises(CorruptLog, match="batch is truncated"):
        clean_and_swap(disk, Setup(upper_bound=6))


def test_a_run_can_be_stopped_and_leaves_nothing_behind() -> None:
    disk = three_segments()
    before = disk.tree()
    for stop_at in range(1, 7):
        asked = 0

        def should_stop() -> bool:
            nonlocal asked
            asked += 1
            return asked == stop_at  # noqa: B023

        with pytest.raises(CleaningStopped):
            clean(disk, Setup(upper_bound=6).facts(disk), should_stop)

        assert disk.tree() == before


def test_files_of_an_interrupted_run_are_not_used() -> None:
    disk = three_segments()
    clean(disk, Setup(upper_bound=6).facts(disk))
    assert cleaned_files(disk)

    clean_and_swap(disk, Setup(upper_bound=4))

    assert pairs(disk)[:3] == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"3")]
    assert cleaned_files(disk) == []


def test_groups_are_cleaned_in_their_order() -> None:
    disk = three_segments()
    cleaning = Cleaning(disk, Setup(upper_bound=6, group_bytes=1).facts(disk))
    cleaning.fill_map()

    with pytest.raises(AssertionError, match="group 1 instead of 0"):
        cleaning.clean_group(1)


def test_a_group_that_grows_too_large_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = three_segments()
    monkeypatch.setattr("barnabas.storage.cleaner.job.CLEANED_BYTES_MAX", 100)

    with pytest.raises(CleanedTooLarge, match="retry with smaller groups"):
        clean_and_swap(disk, Setup(upper_bound=6))

    assert cleaned_files(disk) == []
