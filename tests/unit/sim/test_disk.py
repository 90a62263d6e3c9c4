"""The simulated disk injects faults: power loss, errors, full disk, bit rot and evicted pages."""

import errno
import io
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.sim.inodes import PAGE, SECTOR
from barnabas.storage.files import File, NotCached

SEEDS = range(300)


class StoppedClock:
    """A clock that stands still."""

    def now_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic_ms(self) -> int:
        return 0

    def ticks_ns(self) -> int:
        return 0

    def used_ns(self) -> int:
        return 0


def disk_with(name: str, content: bytes, seed: int = 1) -> tuple[SimDisk, File]:
    """A disk with one synced file."""
    disk = SimDisk(Random(seed))
    file = disk.open(name, create=True)
    file.write(0, [content])
    file.sync()
    disk.sync_directory("")
    return disk, file


def outcomes(prepare: Callable[[int], SimDisk]) -> list[dict[str, bytes]]:
    """The content after a power loss, for every seed."""
    found = []
    for seed in SEEDS:
        disk = prepare(seed)
        disk.crash()
        found.append({path: disk.read(path) for path in disk.tree()})
    return found


def test_a_synced_file_without_a_synced_name_can_be_lost() -> None:
    def prepare(seed: int) -> SimDisk:
        disk = SimDisk(Random(seed))
        file = disk.open("a", create=True)
        file.write(0, [b"content"])
        file.sync()
        return disk

    found = outcomes(prepare)

    assert {} in found
    assert {"a": b"content"} in found
    assert all(files in ({}, {"a": b"content"}) for files in found)


def test_unsynced_writes_are_kept_lost_or_torn_at_sectors() -> None:
    new = b"n" * (4 * SECTOR)

    def prepare(seed: int) -> SimDisk:
        disk, file = disk_with("a", b"o" * (4 * SECTOR), seed)
        file.write(0, [new])
        return disk

    kinds = {files["a"] for files in outcomes(prepare)}

    assert new in kinds
    assert b"o" * (4 * SECTOR) in kinds
    # Exactly the sixteen subsets of sectors.
    assert len(kinds) == 16
    for content in kinds:
        sectors = [content[at : at + SECTOR] for at in range(0, len(content), SECTOR)]
        assert all(sector in (b"n" * SECTOR, b"o" * SECTOR) for sector in sectors)


def test_an_appended_tail_can_be_there_in_size_alone() -> None:
    def prepare(seed: int) -> SimDisk:
        disk, file = disk_with("a", b"o" * 100, seed)
        file.write(100, [b"n" * 2000])
        return disk

    contents = [files["a"] for files in outcomes(prepare)]

    assert all(content[:100] == b"o" * 100 for content in contents)
    assert b"o" * 100 in contents
    assert b"o" * 100 + b"n" * 2000 in contents
    assert b"o" * 100 + bytes(2000) in contents
    assert any(0 < len(content) - 100 < 2000 for content in contents)


def test_later_writes_can_survive_earlier_ones() -> None:
    def prepare(seed: int) -> SimDisk:
        disk, file = disk_with("a", b"o" * 2 * SECTOR, seed)
        file.write(0, [b"1" * SECTOR])
        file.write(SECTOR, [b"2" * SECTOR])
        return disk

    contents = [files["a"] for files in outcomes(prepare)]

    assert b"o" * SECTOR + b"2" * SECTOR in contents
    assert b"1" * SECTOR + b"o" * SECTOR in contents


def test_a_truncation_that_was_not_synced_can_be_undone() -> None:
    def prepare(seed: int) -> SimDisk:
        disk, file = disk_with("a", b"o" * 1000, seed)
        file.truncate(10)
        return disk

    assert {len(files["a"]) for files in outcomes(prepare)} == {10, 1000}


def test_a_rename_that_was_not_synced_leaves_one_name_or_the_other() -> None:
    def prepare(seed: int) -> SimDisk:
        disk, file = disk_with("a", b"content", seed)
        file.rename("b")
        return disk

    found = outcomes(prepare)

    assert all(files in ({"a": b"content"}, {"b": b"content"}) for files in found)
    assert {"a": b"content"} in found
    assert {"b": b"content"} in found


def test_renames_reach_the_disk_in_any_order_and_lose_no_file() -> None:
    def prepare(seed: int) -> SimDisk:
        disk = SimDisk(Random(seed))
        for name in ("1", "2"):
            file = disk.open(name, create=True)
            file.write(0, [name.encode()])
            file.sync()
        disk.sync_directory("")
        disk.rename("1", "1.old")
        disk.rename("2", "1")
        return disk

    found = outcomes(prepare)

    assert all(sorted(files.values()) == [b"1", b"2"] for files in found)
    assert {tuple(sorted(files)) for files in found} == {("1", "2"), ("1.old", "2"), ("1", "1.old")}


def test_a_synced_rename_is_not_undone_by_earlier_changes() -> None:
    def prepare(seed: int) -> SimDisk:
        disk = SimDisk(Random(seed))
        disk.make_directory("d")
        disk.make_directory("e")
        disk.sync_directory("")
        disk.open("e/a", create=True).rename("d/a")
        disk.sync_directory("d")
        return disk

    assert all(files == {"d/a": b""} for files in outcomes(prepare))


def test_a_removed_file_can_reappear_until_the_directory_is_synced() -> None:
    def prepare(seed: int) -> SimDisk:
        disk, _ = disk_with("a", b"content", seed)
        disk.remove("a")
        return disk

    def prepare_synced(seed: int) -> SimDisk:
        disk = prepare(seed)
        disk.sync_directory("")
        return disk

    assert {"a": b"content"} in outcomes(prepare)
    assert {} in outcomes(prepare)
    assert all(files == {} for files in outcomes(prepare_synced))


def test_a_file_moved_to_a_directory_that_is_not_synced_is_not_lost() -> None:
    def prepare(seed: int) -> SimDisk:
        disk, file = disk_with("a", b"content", seed)
        disk.make_directory("new/inner")
        file.rename("new/inner/a")
        if seed % 2:
            disk.sync_directory("new/inner")
        return disk

    found = outcomes(prepare)

    assert all(list(files.values()) == [b"content"] for files in found)
    assert {"a": b"content"} in found
    assert all(files == {"new/inner/a": b"content"} for files in found[1::2])


def test_a_file_moved_out_of_a_directory_that_was_removed_is_not_lost() -> None:
    def prepare(seed: int) -> SimDisk:
        disk = SimDisk(Random(seed))
        disk.make_directory("old")
        disk.make_directory("new")
        disk.open("old/a", create=True)
        for directory in ("old", "new", ""):
            disk.sync_directory(directory)
        disk.rename("old/a", "new/a")
        disk.remove_directory("old")
        return disk

    found = outcomes(prepare)

    assert {tuple(files) for files in found} == {("old/a",), ("new/a",)}


def test_a_crash_kills_open_files_and_releases_locks() -> None:
    disk, file = disk_with("a", b"content")
    pinned = disk.range(file, 0, 3)
    lock = disk.lock("a")

    disk.crash()

    with pytest.raises(OSError, match="power was lost"):
        file.read(0, 1)
    with pytest.raises(OSError, match="power was lost"):
        pinned.read()
    held = disk.lock("a")
    lock.close()
    with pytest.raises(BlockingIOError):
        disk.lock("a")
    held.close()
    disk.lock("a")


def test_a_crash_reports_losses_and_is_deterministic_per_seed() -> None:
    def story(seed: int) -> list[object]:
        disk, file = disk_with("a", b"o" * 3000, seed)
        file.write(1000, [b"n" * 5000])
        disk.open("b", create=True)
        return [disk.crash(), disk.tree(), disk.read("a")]

    assert [story(seed) for seed in range(20)] == [story(seed) for seed in range(20)]
    said = {str(story(seed)[0]) for seed in SEEDS}
    assert "nothing was lost" in said
    assert any("nothing -> b" in words and "a: 6000 bytes became" in words for words in said)


def test_power_is_lost_at_the_chosen_operation_until_the_crash() -> None:
    shares = set()
    for seed in range(50):
        disk, file = disk_with("a", b"", seed)
        disk.crash_after(2)
        file.write(0, [b"first"])

        with pytest.raises(PowerLoss):
            file.write(5, [b"second"])

        for attempt in (file.size, file.sync, lambda: disk.open("a"), lambda: disk.entries("")):  # noqa: B023
            with pytest.raises(PowerLoss):
                attempt()
        file.close()
        shares.add(disk.tree()["a"])
        disk.crash()
        disk.open("a").sync()
    # Before, after, and during the write.
    assert {5, 11} < shares


def test_power_loss_is_not_swallowed_by_handlers_of_errors() -> None:
    disk = SimDisk(Random(1))
    disk.crash_after(1)

    with pytest.raises(PowerLoss), suppress(Exception):
        disk.make_directory("a")


def test_operations_that_change_something_are_counted() -> None:
    disk = SimDisk(Random(1))

    disk.make_directory("d/e")
    file = disk.open("d/a", create=True)
    disk.open("d/a", create=True)
    file.write(0, [b"x"])
    file.read(0, 1)
    file.sync()
    file.truncate(0)
    file.rename("d/b")
    disk.rename("d/b", "d/c")
    disk.sync_directory("d")
    disk.remove("d/c")
    disk.remove_directory("d/e")

    assert disk.operations == 11


def test_a_full_disk_writes_the_bytes_that_fit() -> None:
    disk = SimDisk(Random(1), capacity=100)
    file = disk.open("a", create=True)
    file.write(0, [b"x" * 60])

    with pytest.raises(OSError, match="No space left") as raised:
        file.write(60, [b"y" * 30, b"z" * 30])

    assert raised.value.errno == errno.ENOSPC
    assert file.read(0, 200) == b"x" * 60 + b"y" * 30 + b"z" * 10
    assert disk.free_bytes("") == 0
    file.write(0, [b"w" * 100])
    with pytest.raises(OSError, match="No space left"):
        disk.open("b", create=True)
    with pytest.raises(OSError, match="No space left"):
        disk.make_directory("d")
    with pytest.raises(OSError, match="No space left"):
        file.truncate(101)


def test_space_is_freed_when_files_are_truncated_removed_or_replaced() -> None:
    disk = SimDisk(Random(1), capacity=100)
    for name in ("a", "b", "c"):
        disk.open(name, create=True).write(0, [b"x" * 30])

    disk.open("a").truncate(10)
    assert disk.free_bytes("") == 30
    disk.remove("b")
    assert disk.free_bytes("") == 60
    disk.rename("a", "c")
    assert disk.free_bytes("") == 90
    disk.sync_directory("")
    disk.open("c").sync()
    disk.crash()
    assert disk.free_bytes("") == 90


def test_injected_errors_occur_once() -> None:
    disk, file = disk_with("d-a", b"content")
    disk.fail("d-", {"read", "rename"}, count=2, errno=errno.ENXIO)

    for attempt in (lambda: file.read(0, 1), lambda: disk.rename("d-a", "d-b")):
        with pytest.raises(OSError, match="No such device or address"):
            attempt()

    assert file.read(0, 1) == b"c"
    assert disk.tree() == {"d-a": 7}
    disk.fail("other", {"read"})
    assert file.read(0, 1) == b"c"


@pytest.mark.parametrize("prefix", ["/data/t", "data/t"])
def test_a_slash_in_front_makes_no_difference(prefix: str) -> None:
    disk = SimDisk(Random(1))
    disk.make_directory("/data")
    file = disk.open("data/t", create=True)
    disk.fail(prefix, {"sync"})

    with pytest.raises(OSError, match="Input/output error"):
        file.sync()

    assert disk.open("/data/t").path == "/data/t"


def test_a_failed_write_may_have_written_a_part() -> None:
    sizes = set()
    for seed in range(50):
        disk, file = disk_with("a", b"", seed)
        disk.fail("a", {"write"})
        with pytest.raises(OSError, match="Input/output error"):
            file.write(0, [b"x" * 100])
        sizes.add(file.size())

    assert min(sizes) < 20
    assert max(sizes) > 80


def test_a_failed_sync_leaves_pages_that_the_next_sync_does_not_write() -> None:
    disk, file = disk_with("a", b"o" * PAGE)
    file.write(0, [b"n" * 10])
    disk.fail("a", {"sync"})
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()

    file.write(PAGE, [b"later"])
    file.sync()

    assert file.read(0, 11) == b"n" * 10 + b"o"
    disk.crash()
    assert disk.read("a") == b"o" * PAGE + b"later"


def test_an_evicted_page_after_a_failed_sync_has_its_old_bytes_again() -> None:
    disk, file = disk_with("a", b"o" * 10)
    file.write(0, [b"n" * 10])
    disk.fail("a", {"sync"})
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()
    assert file.read(0, 10) == b"n" * 10

    disk.cool("a")

    assert file.read(0, 10) == b"o" * 10


def test_a_write_to_a_page_after_a_failed_sync_writes_the_whole_page() -> None:
    disk, file = disk_with("a", b"o" * 10)
    file.write(0, [b"n" * 5])
    disk.fail("a", {"sync"})
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()

    file.write(9, [b"x"])
    file.sync()
    disk.crash()

    assert disk.read("a") == b"nnnnnoooox"


def test_rot_is_in_memory_and_on_the_disk() -> None:
    disk, file = disk_with("a.log", b"\0" * 10)
    file.write(10, [b"\0" * 10])

    disk.rot("a.log", 5, 0x81)
    disk.rot("a.log", 15, 1)

    assert file.read(0, 20) == b"\0" * 5 + b"\x81" + b"\0" * 9 + b"\1" + b"\0" * 4
    file.sync()
    disk.crash()
    assert disk.read("a.log") == b"\0" * 5 + b"\x81" + b"\0" * 9 + b"\1" + b"\0" * 4


def test_random_rot_flips_one_bit_of_a_file_of_the_kind() -> None:
    disk, _ = disk_with("a.log", bytes(100))
    disk.open("b.index", create=True).write(0, [bytes(100)])

    path, at = disk.rot_randomly(Random(3))

    assert path == "a.log"
    content = disk.read("a.log")
    assert [position for position in range(100) if content[position]] == [at]
    assert content[at].bit_count() == 1
    assert disk.read("b.index") == bytes(100)


def test_cold_pages_are_reported_and_loaded_one_by_one() -> None:
    disk, file = disk_with("a", bytes(4 * PAGE))
    disk.cool("a")

    file.read(PAGE, 10)

    assert file.read_cached(PAGE, PAGE) == bytes(PAGE)
    with pytest.raises(NotCached) as cold:
        file.need_cached(PAGE + 5, 2 * PAGE)
    assert (cold.value.at, cold.value.size) == (2 * PAGE, PAGE + 5)
    cold.value.warm()
    file.need_cached(PAGE, 3 * PAGE)
    with pytest.raises(NotCached):
        file.read_cached(0, 1)
    assert file.read_cached(4 * PAGE, 10) == b""


def test_written_pages_are_warm() -> None:
    disk, file = disk_with("a", bytes(2 * PAGE))
    disk.cool()

    file.write(2 * PAGE, [b"new"])

    assert file.read_cached(2 * PAGE, 10) == b"new"
    with pytest.raises(NotCached):
        file.read_cached(2 * PAGE - 1, 10)


def test_a_range_reads_the_same_file_after_its_removal() -> None:
    disk, file = disk_with("a", b"0123456789")
    pinned = disk.range(file, 2, 3)

    disk.remove("a")
    disk.open("a", create=True).write(0, [b"abcdefghij"])

    assert pinned.read() == b"234"
    with pytest.raises(io.UnsupportedOperation):
        pinned.fileno()
    with pytest.raises(io.UnsupportedOperation):
        file.fileno()


def test_a_file_without_its_name_is_not_to_be_used() -> None:
    disk, file = disk_with("a", b"content")
    _, other = disk, disk.open("b", create=True)

    disk.remove("a")
    with pytest.raises(FileNotFoundError):
        file.read(0, 1)
    other.rename("a")
    with pytest.raises(OSError, match="Stale"):
        file.write(0, [b"x"])
    assert other.read(0, 10) == b""
    assert other.path == "a"


def test_files_follow_their_directory() -> None:
    disk = SimDisk(Random(1))
    disk.make_directory("/data/t-0")
    file = disk.open("/data/t-0/a", create=True)

    disk.rename("/data/t-0", "/data/t-0-delete")
    file.write(0, [b"x"])

    assert disk.tree() == {"/data/t-0-delete/a": 1}
    assert file.path == "/data/t-0-delete/a"


def test_a_branch_goes_its_own_way() -> None:
    disk, file = disk_with("a", b"safe")
    file.write(4, [b" not safe"])
    disk.lock("lock")

    contents = set()
    for seed in range(50):
        other = disk.branch(Random(seed))
        other.lock("lock").close()
        other.crash()
        contents.add(other.read("a"))

    assert b"safe" in contents
    assert b"safe not safe" in contents
    assert file.read(0, 100) == b"safe not safe"


def test_times_come_from_the_clock() -> None:
    disk = SimDisk(Random(1), clock=StoppedClock())
    disk.open("a", create=True).write(0, [b"x"])

    assert disk.entries("")[0].modified_ms == 1_700_000_000_000
    assert disk.branch(Random(1)).entries("")[0].modified_ms == 1_700_000_000_000
