"""Helpers of the file system interface, on the real and the simulated disk."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.files import WARM_STEP, File, FileSystem, NotCached, write_atomically

Side = tuple[FileSystem, str]


@pytest.fixture(params=["real", "simulated"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Side:
    """A file system and a directory in it."""
    fs: FileSystem = DiskFileSystem() if request.param == "real" else SimDisk(Random(1))
    fs.make_directory(str(tmp_path))
    return fs, str(tmp_path)


def with_content(fs: FileSystem, path: str, content: bytes) -> File:
    file = fs.open(path, create=True)
    file.write(0, [content])
    return file


def test_a_small_file_is_put_in_place_and_replaced(side: Side) -> None:
    fs, directory = side

    write_atomically(fs, f"{directory}/a", b"a long first version")
    write_atomically(fs, f"{directory}/a", b"second")

    assert fs.read(f"{directory}/a") == b"second"
    assert [entry.name for entry in fs.entries(directory)] == ["a"]


def test_leftovers_of_an_interrupted_write_are_ignored(side: Side) -> None:
    fs, directory = side
    with_content(fs, f"{directory}/a.tmp", b"the longer rest of an attempt").close()

    write_atomically(fs, f"{directory}/a", b"short")

    assert fs.read(f"{directory}/a") == b"short"


@pytest.mark.parametrize("seed", range(40))
def test_a_power_loss_at_any_operation_leaves_the_old_or_the_new_file(seed: int) -> None:
    disk = SimDisk(Random(seed))
    write_atomically(disk, "a", b"old" * 1000)
    before = disk.operations
    write_atomically(disk.branch(Random(seed)), "a", b"new" * 1000)
    counting = disk.branch(Random(seed))
    write_atomically(counting, "a", b"new" * 1000)
    assert before > 0
    assert counting.operations == 6

    for operation in range(1, counting.operations + 1):
        other = disk.branch(Random(seed * 100 + operation))
        other.crash_after(operation)
        with pytest.raises(PowerLoss):
            write_atomically(other, "a", b"new" * 1000)
        lost = other.crash()

        assert other.read("a") in (b"old" * 1000, b"new" * 1000), lost


def test_a_file_is_safe_once_it_is_in_place() -> None:
    for seed in range(50):
        disk = SimDisk(Random(seed))
        write_atomically(disk, "a", b"new")
        lost = disk.crash()

        assert disk.read("a") == b"new", lost


def test_warming_reads_all_of_it_in_steps_and_stops_at_the_end() -> None:
    disk = SimDisk(Random(1))
    content = bytes(range(256)) * (WARM_STEP // 100)
    file = with_content(disk, "a", content)
    disk.cool()

    with pytest.raises(NotCached) as cold:
        file.read_cached(10, 10 * WARM_STEP)
    cold.value.warm()

    assert file.read_cached(10, 10 * WARM_STEP) == content[10:]


@pytest.mark.parametrize("gone", ["removed", "renamed", "replaced", "closed"])
def test_warming_ignores_a_removed_file(side: Side, gone: str) -> None:
    fs, directory = side
    file = with_content(fs, f"{directory}/a", b"content")
    cold = NotCached(file, at=0, size=7)
    with_content(fs, f"{directory}/b", b"other")
    ways: dict[str, Callable[[], None]] = {
        "removed": lambda: fs.remove(f"{directory}/a"),
        "renamed": lambda: fs.rename(f"{directory}/a", f"{directory}/c"),
        "replaced": lambda: fs.rename(f"{directory}/b", f"{directory}/a"),
        "closed": file.close,
    }

    ways[gone]()

    cold.warm()


def test_warming_raises_disk_errors() -> None:
    disk = SimDisk(Random(1))
    file = with_content(disk, "a", b"content")
    disk.fail("a", {"read"})

    with pytest.raises(OSError, match=os.strerror(5)):
        NotCached(file, at=0, size=7).warm()


def test_an_error_says_which_bytes_of_which_file_are_cold() -> None:
    file = with_content(SimDisk(Random(1)), "a", b"content")

    assert str(NotCached(file, at=2, size=3)) == "bytes 2 to 5 of a are not in the page cache"
