"""Opening a log: which files are trusted, what is truncated, and what is refused."""

from random import Random

import pytest

from barnabas.sim.disk import SimDisk
from barnabas.storage.errors import CorruptLog
from barnabas.storage.log import Log
from barnabas.storage.recovery import Opened
from support.log.logs import (
    DIRECTORY,
    NOW,
    batch,
    files_of,
    fill,
    new_disk,
    new_log,
    offsets,
    open_again,
    path_of,
    put,
    read_all,
    shut,
    value_at,
)

pytestmark = pytest.mark.kernel

SIZE = 201  # of a batch that fill() writes
EPOCHS = f"{DIRECTORY}/leader-epoch-checkpoint"


def filled(count: int = 6, **values: int) -> tuple[SimDisk, int]:
    """A closed log of three segments with two batches each, and its end offset."""
    disk = new_disk()
    log = new_log(disk, **(values or {"segment_bytes": 500, "index_interval_bytes": 100}))
    fill(log, count, step=10)
    return disk, shut(log)


def reopened(disk: SimDisk, point: int | None = 0, *, clean: bool = False, start: int = 0) -> Opened:
    return open_again(
        disk, clean=clean, recovery_point=point, start=start, segment_bytes=500, index_interval_bytes=100
    )


def add(disk: SimDisk, path: str, data: bytes) -> None:
    """Append bytes to a file."""
    file = disk.open(path, create=True)
    file.write(file.size(), [data])
    file.sync()


def is_whole(log: Log, count: int) -> bool:
    return [record.value for record in read_all(log)] == [value_at(at) for at in range(count)]


# A new log


def test_an_empty_directory_becomes_an_empty_log() -> None:
    opened = open_again(new_disk(), start=0)

    assert (opened.log.start_offset, opened.log.end_offset, opened.log.bases) == (0, 0, [0])
    assert opened.findings == []


def test_a_new_log_starts_where_records_were_deleted_up_to() -> None:
    log = open_again(new_disk(), start=70).log

    assert (log.start_offset, log.end_offset, log.bases) == (70, 70, [70])
    assert put(log).base_offset == 70


# After a clean shutdown


def test_after_a_clean_shutdown_all_files_are_trusted_and_nothing_is_written() -> None:
    disk, end = filled()
    before, operations = files_of(disk), disk.operations

    opened = reopened(disk, end, clean=True)

    assert (files_of(disk), disk.operations, opened.findings) == (before, operations, [])
    assert is_whole(opened.log, 6)


@pytest.mark.parametrize("point", [0, 5])
def test_a_log_that_ends_after_its_clean_recovery_point_is_refused(point: int) -> None:
    disk, _ = filled()
    before = files_of(disk)

    with pytest.raises(CorruptLog, match=f"log was closed at offset {point}, but ends at 6"):
        reopened(disk, point, clean=True)

    assert files_of(disk) == before


def test_a_clean_log_without_a_recovery_point_is_recovered() -> None:
    disk, end = filled()
    before = disk.operations

    opened = reopened(disk, None, clean=True)

    assert disk.operations > before
    assert (opened.log.end_offset, opened.log.recovery_point) == (end, end)
    assert is_whole(opened.log, 6)


@pytest.mark.parametrize(
    "path",
    [
        path_of(0, ".index"),
        path_of(4, ".index"),
        path_of(2, ".timeindex"),
        path_of(4, ".timeindex"),
        path_of(6, ".snapshot"),
        path_of(2, ".snapshot"),
        EPOCHS,
    ],
)
@pytest.mark.parametrize(("clean", "point"), [(False, 0), (False, 6), (True, 6)])
def test_missing_files_are_rebuilt(path: str, clean: bool, point: int) -> None:
    disk, _ = filled()
    before = files_of(disk)
    disk.remove(path)

    opened = reopened(disk, point, clean=clean)

    assert is_whole(opened.log, 6)
    shut(opened.log)
    after = files_of(disk)
    if path == path_of(2, ".snapshot"):
        # A snapshot may be missing if a later one has its state.
        after.setdefault("00000000000000000002.snapshot", before["00000000000000000002.snapshot"])
    assert after == before


@pytest.mark.parametrize("size", [1, 7, 8 + 5])
@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_a_torn_index_is_rebuilt(kind: str, size: int) -> None:
    disk, end = filled()
    before = files_of(disk)
    disk.open(path_of(0, kind)).truncate(size)

    opened = reopened(disk, end, clean=True)

    assert is_whole(opened.log, 6)
    assert files_of(disk)[path_of(0, kind).rpartition("/")[2]] == before[path_of(0, kind).rpartition("/")[2]]


def test_a_large_segment_is_opened_by_its_index() -> None:
    disk, end = filled(400, segment_bytes=1 << 20, index_interval_bytes=4096)
    # Reading all batches would detect this damage.
    disk.rot(path_of(0, ".log"), 16, 0xFF)

    opened = open_again(disk, clean=True, recovery_point=end)

    assert (opened.findings, opened.log.end_offset) == ([], 400)
    assert opened.log.active.latest() == (NOW + 3990, 399)


def test_a_large_segment_with_a_wrong_index_is_recovered() -> None:
    disk, end = filled(400, segment_bytes=1 << 20, index_interval_bytes=4096)
    before = files_of(disk)
    disk.rot(path_of(0, ".index"), disk.tree()[path_of(0, ".index")] - 1, 0x01)

    opened = open_again(disk, clean=True, recovery_point=end)

    assert "after a clean shutdown" in opened.findings[0]
    assert is_whole(opened.log, 400)
    shut(opened.log)
    assert files_of(disk) == before


def test_a_large_segment_without_its_latest_timestamp_in_the_index_is_recovered() -> None:
    disk, end = filled(400, segment_bytes=1 << 20, index_interval_bytes=4096)
    before = files_of(disk)
    disk.open(path_of(0, ".timeindex")).truncate(len(before["00000000000000000000.timeindex"]) - 12)

    opened = open_again(disk, clean=True, recovery_point=end)

    assert opened.log.active.latest() == (NOW + 3990, 399)
    shut(opened.log)
    assert files_of(disk) == before


def test_bytes_after_the_last_batch_of_a_clean_log_are_truncated() -> None:
    disk, end = filled()
    add(disk, path_of(4, ".log"), b"more")

    opened = reopened(disk, end, clean=True)

    assert is_whole(opened.log, 6)
    assert disk.tree()[path_of(4, ".log")] == 2 * SIZE
    assert any("truncated the last 4 bytes" in finding for finding in opened.findings)


# Torn tails


@pytest.mark.parametrize("left", [1, 11, 12, 60, 61, 62, 100, SIZE - 1])
def test_a_torn_tail_is_truncated(left: int) -> None:
    disk, _ = filled()
    disk.open(path_of(4, ".log")).truncate(SIZE + left)

    opened = reopened(disk, 5)

    assert is_whole(opened.log, 5)
    assert disk.tree()[path_of(4, ".log")] == SIZE
    assert f"truncated the last {left} bytes" in opened.findings[0]
    assert put(opened.log).base_offset == 5
    assert opened.log.recovery_point == 5


@pytest.mark.parametrize("more", [bytes(10), bytes(5000), b"\xff" * 100, Random(5).randbytes(3000)])
def test_zeros_and_garbage_after_the_end_are_truncated(more: bytes) -> None:
    disk, end = filled()
    add(disk, path_of(4, ".log"), more)

    opened = reopened(disk, end)

    assert is_whole(opened.log, 6)
    assert disk.tree()[path_of(4, ".log")] == 2 * SIZE


@pytest.mark.parametrize("at", [16, 17, 20, 30, 61, 150, SIZE - 1])
def test_unflushed_batches_are_checked_and_truncated_from_the_first_bad_one(at: int) -> None:
    disk, _ = filled()
    disk.rot(path_of(2, ".log"), at, 0x01)

    opened = reopened(disk, 2)

    assert is_whole(opened.log, 2)
    assert opened.log.bases == [0, 2]
    assert path_of(4, ".log") not in disk.tree()
    assert any("removed, segment follows a truncated one" in finding for finding in opened.findings)
    assert put(opened.log).base_offset == 2


def test_an_old_batch_after_the_end_is_truncated() -> None:
    disk, end = filled()
    # A valid batch from another position: the CRC does not cover offsets.
    add(disk, path_of(4, ".log"), batch(b"old", base_offset=1))

    opened = reopened(disk, end)

    assert opened.log.end_offset == 6
    assert any("batch starts at offset 1, expected 6" in finding for finding in opened.findings)


def test_a_segment_after_a_gap_is_removed() -> None:
    disk, _ = filled()
    disk.open(path_of(2, ".log")).truncate(SIZE)

    opened = reopened(disk, 3)

    assert is_whole(opened.log, 3)
    assert opened.log.bases == [0, 2]
    assert any(
        "removed, segment starts at 4, but the log ends at 3" in finding for finding in opened.findings
    )


def test_a_flushed_gap_is_accepted_as_left_by_compaction() -> None:
    disk, end = filled()
    disk.open(path_of(2, ".log")).truncate(SIZE)
    disk.remove(path_of(2, ".index"))

    opened = reopened(disk, end)

    assert opened.log.bases == [0, 2, 4]
    assert offsets(opened.log) == [0, 1, 2, 4, 5]


def test_the_log_continues_in_an_empty_last_segment() -> None:
    disk = new_disk()
    log = new_log(disk)
    fill(log, 3)
    log.roll(NOW)
    end = shut(log)

    for clean in (True, False):
        again = open_again(disk, clean=clean, recovery_point=end).log
        assert (again.bases, again.end_offset, again.active.size) == ([0, 3], 3, 0)
        assert is_whole(again, 3)


def test_opening_twice_is_opening_once() -> None:
    disk, _ = filled()
    disk.rot(path_of(2, ".log"), 100, 0x01)
    first = reopened(disk, 2)
    before = files_of(disk)

    second = reopened(disk, first.log.recovery_point)

    assert files_of(disk) == before
    assert second.findings == []
    assert second.log.end_offset == first.log.end_offset


# Refused logs


@pytest.mark.parametrize("at", [16, 8])
def test_damage_in_flushed_data_is_an_error_and_changes_no_log(at: int) -> None:
    disk, end = filled()
    disk.rot(path_of(4, ".log"), at, 0x7F)
    before = {name: data for name, data in files_of(disk).items() if name.endswith(".log")}

    with pytest.raises(CorruptLog) as refused:
        reopened(disk, end)

    assert (refused.value.path, refused.value.position) == (path_of(4, ".log"), 0)
    assert {name: data for name, data in files_of(disk).items() if name.endswith(".log")} == before


def test_damage_in_flushed_data_is_an_error_and_changes_no_file() -> None:
    disk, end = filled()
    disk.rot(path_of(4, ".log"), 16, 0x7F)
    before = files_of(disk)

    with pytest.raises(CorruptLog):
        reopened(disk, end)

    assert files_of(disk) == before


def test_a_refused_log_is_refused_again_and_opens_after_a_repair() -> None:
    disk, end = filled()
    disk.rot(path_of(4, ".log"), 16, 0x7F)
    for _ in range(2):
        with pytest.raises(CorruptLog):
            reopened(disk, end)

    disk.rot(path_of(4, ".log"), 16, 0x7F)

    assert is_whole(reopened(disk, end).log, 6)


def test_a_log_that_ends_before_its_recovery_point_is_refused() -> None:
    disk, _ = filled()

    with pytest.raises(CorruptLog, match="log ends at offset 6, but was flushed up to 7"):
        reopened(disk, 7)


@pytest.mark.parametrize("clean", [False, True])
def test_a_last_segment_that_is_missing_is_refused(clean: bool) -> None:
    disk, end = filled()
    disk.remove(path_of(4, ".log"))

    with pytest.raises(CorruptLog, match=r"04\.log is damaged at byte 0: file is missing"):
        reopened(disk, end, clean=clean)


@pytest.mark.parametrize("clean", [False, True])
def test_a_last_segment_that_is_missing_with_all_its_files_is_refused(clean: bool) -> None:
    disk, end = filled()
    for kind in (".log", ".index", ".timeindex"):
        disk.remove(path_of(4, kind))

    with pytest.raises(CorruptLog, match="log ends at offset 4, but was flushed up to 6"):
        reopened(disk, end, clean=clean)


def test_a_log_without_any_of_its_segments_is_refused() -> None:
    disk, end = filled()
    for base in (0, 2, 4):
        disk.remove(path_of(base, ".log"))

    with pytest.raises(CorruptLog):
        reopened(disk, end)


def test_a_first_segment_that_is_missing_moves_the_start() -> None:
    disk, end = filled()
    for kind in (".log", ".index", ".timeindex"):
        disk.remove(path_of(0, kind))

    opened = reopened(disk, end)

    assert (opened.log.start_offset, offsets(opened.log)) == (2, [2, 3, 4, 5])


# Without a recovery point


def test_without_a_recovery_point_a_torn_tail_is_truncated() -> None:
    disk, _ = filled()
    disk.open(path_of(4, ".log")).truncate(SIZE + 50)

    assert is_whole(reopened(disk, None).log, 5)


@pytest.mark.parametrize("base", [0, 4])
def test_without_a_recovery_point_damage_before_valid_batches_is_refused(base: int) -> None:
    disk, _ = filled()
    disk.rot(path_of(base, ".log"), 100, 0x01)

    with pytest.raises(CorruptLog) as refused:
        reopened(disk, None)

    assert refused.value.path == path_of(base, ".log")


# Other files


def test_an_index_without_a_log_is_removed() -> None:
    disk, end = filled()
    add(disk, path_of(50, ".index"), bytes(8))

    opened = reopened(disk, end, clean=True)

    assert path_of(50, ".index") not in disk.tree()
    assert opened.findings == [f"{path_of(50, '.index')}: removed, no segment has this index"]


def test_an_unknown_file_is_left_untouched() -> None:
    disk, end = filled()
    add(disk, f"{DIRECTORY}/notes.txt", b"mine")
    add(disk, path_of(2, ".log.bak"), b"mine too")

    for clean, point in [(True, end), (False, end), (False, 0)]:
        opened = reopened(disk, point, clean=clean)
        assert is_whole(opened.log, 6)
        assert disk.read(f"{DIRECTORY}/notes.txt") == b"mine"
        assert disk.read(path_of(2, ".log.bak")) == b"mine too"


def test_deleted_files_are_removed() -> None:
    disk, end = filled()
    add(disk, path_of(0, ".log.deleted"), b"old")

    opened = reopened(disk, end)

    assert path_of(0, ".log.deleted") not in disk.tree()
    assert is_whole(opened.log, 6)


@pytest.mark.parametrize("clean", [False, True])
def test_partly_written_files_are_removed_at_the_start(clean: bool) -> None:
    disk, end = filled()
    names = ["leader-epoch-checkpoint.tmp", "00000000000000000002.index.rebuilt"]
    for name in names:
        disk.open(f"/d/t-0/{name}", create=True)

    opened = reopened(disk, end, clean=clean)

    assert is_whole(opened.log, 6)
    assert not set(names) & set(files_of(disk))
