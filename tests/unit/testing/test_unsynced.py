"""The unsynced file system behaves like the one on disk, without fsync."""

import os
from pathlib import Path

import pytest

from barnabas.storage.files import write_atomically
from barnabas.testing.node import UnsyncedFileSystem


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that were synced."""
    seen: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, seen.append)
    return seen


def test_a_write_does_not_sync(tmp_path: Path, syncs: list[int]) -> None:
    fs = UnsyncedFileSystem()

    write_atomically(fs, f"{tmp_path}/some", b"content")

    assert fs.read(f"{tmp_path}/some") == b"content"
    assert syncs == []


def test_a_file_that_was_evicted_and_reopened_does_not_sync(tmp_path: Path, syncs: list[int]) -> None:
    fs = UnsyncedFileSystem(open_files_max=1)
    first = fs.open(f"{tmp_path}/first", create=True)
    fs.open(f"{tmp_path}/second", create=True)

    first.write(0, [b"x"])
    first.sync()

    assert syncs == []


def test_a_closed_file_cannot_be_synced(tmp_path: Path) -> None:
    file = UnsyncedFileSystem().open(f"{tmp_path}/some", create=True)
    file.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        file.sync()


def test_a_missing_directory_cannot_be_synced(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        UnsyncedFileSystem().sync_directory(f"{tmp_path}/nowhere")
