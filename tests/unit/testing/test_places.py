"""Directories of brokers: where they are, their removal, and cleanup after killed processes."""

import fcntl
import os
from pathlib import Path

import pytest

from barnabas.testing import places
from barnabas.testing.errors import NoMemoryFiles
from barnabas.testing.places import PREFIX, given_place, remove_abandoned, temporary_place


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that stands for /dev/shm, beside one for temporary files."""
    here, disk = tmp_path / "shm", tmp_path / "tmp"
    here.mkdir()
    disk.mkdir()
    monkeypatch.setattr(places, "MEMORY_PLACE", str(here))
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    return here


def where(data: str) -> Path:
    return Path(data).parents[1]


def test_auto_uses_memory_if_enough_is_free(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MEMORY_FREE_MIN", 1)

    place = temporary_place("auto")

    assert where(place.data) == memory
    place.remove()
    assert list(memory.iterdir()) == []


def test_auto_uses_the_disk_if_memory_is_scarce(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MEMORY_FREE_MIN", 1 << 62)

    place = temporary_place("auto")

    assert where(place.data) == memory.parent / "tmp"
    place.remove()


def test_auto_uses_the_disk_without_a_memory_file_system(memory: Path) -> None:
    memory.rmdir()

    place = temporary_place("auto")

    assert where(place.data) == memory.parent / "tmp"
    place.remove()


def test_memory_fails_without_a_memory_file_system(memory: Path) -> None:
    memory.rmdir()

    with pytest.raises(NoMemoryFiles, match=r"shm does not exist or is not writable"):
        temporary_place("memory")


def test_disk_uses_the_disk(memory: Path) -> None:
    place = temporary_place("disk")

    assert where(place.data) == memory.parent / "tmp"
    place.remove()


def test_a_given_directory_is_not_removed(tmp_path: Path) -> None:
    place = given_place(str(tmp_path))

    place.remove()

    assert tmp_path.exists()
    assert not place.is_temporary


def test_unlocked_directories_are_removed_and_locked_ones_are_not(tmp_path: Path) -> None:
    left, held, begun, other = (tmp_path / f"{PREFIX}{name}" for name in ("left", "held", "begun", "other"))
    for directory in (left, held, begun):
        (directory / "data").mkdir(parents=True)
    for directory in (left, held):
        (directory / "owner.lock").touch()
    other.symlink_to(held)
    with (held / "owner.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert remove_abandoned(str(tmp_path)) == [str(left)]

    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        f"{PREFIX}{name}" for name in ("held", "begun", "other")
    )


def test_an_old_directory_without_lock_file_is_removed(tmp_path: Path) -> None:
    old = tmp_path / f"{PREFIX}old"
    old.mkdir()
    os.utime(old, (0, 0))

    assert remove_abandoned(str(tmp_path)) == [str(old)]


def test_a_place_holds_its_lock_until_it_is_removed(memory: Path) -> None:
    place = temporary_place("memory")

    assert remove_abandoned(str(memory)) == []

    place.remove()
    assert list(memory.iterdir()) == []
