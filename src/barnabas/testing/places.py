"""The directory of a broker inside a test, and its removal.

The files are always real ones, so that sendfile, mmap and Kafka's tools work with them. In /dev/shm, which is
memory, a start and stop take 7 ms; on a disk 30 ms and more, depending on other load. So memory is the
default if at least 1 GiB is free there: containers have 64 MB by default, and a broker fails when space runs
out.

Anonymous files (memfd) would need no directory, but a descriptor per file all the time: three per partition,
of the 1,024 that a process usually has.

A killed process cannot clean up. Every directory has a lock file, which the kernel unlocks when its process
ends; the next broker removes all unlocked directories.
"""

import fcntl
import os
import time
from contextlib import suppress
from typing import Final, Literal

from barnabas.testing.errors import NoMemoryFiles

Storage = Literal["auto", "memory", "disk"]

STORAGES: Final[tuple[Storage, ...]] = ("auto", "memory", "disk")
MEMORY_PLACE: Final = "/dev/shm"
# storage='auto' chooses memory only if this many bytes are free.
MEMORY_FREE_MIN: Final = 1 << 30
PREFIX: Final = "barnabas-test-"
# A directory is created shortly before its lock file. One of this age without lock file is abandoned.
LOCK_WITHIN_S: Final = 3_600.0

_OWNER: Final = "owner.lock"
_DATA: Final = "data"
_NAME_BYTES: Final = 6


class Place:
    """A directory for one broker. remove() deletes it unless the user chose it."""

    def __init__(self, data: str, root: str | None, lock: int | None) -> None:
        self.data: Final = data
        self._root = root
        self._lock = lock

    @property
    def is_temporary(self) -> bool:
        return self._root is not None

    def remove(self) -> None:
        root, self._root = self._root, None
        lock, self._lock = self._lock, None
        if root is not None:
            _remove_tree(root)
        if lock is not None:
            os.close(lock)


def given_place(directory: str) -> Place:
    return Place(os.path.abspath(directory), None, None)


def temporary_place(storage: Storage) -> Place:
    above = _above(storage)
    remove_abandoned(above)
    root = f"{above}/{PREFIX}{os.urandom(_NAME_BYTES).hex()}"
    os.mkdir(root, 0o700)
    lock = os.open(f"{root}/{_OWNER}", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return Place(f"{root}/{_DATA}", root, lock)


def _above(storage: Storage) -> str:
    if storage == "memory":
        if not os.access(MEMORY_PLACE, os.W_OK | os.X_OK):
            raise NoMemoryFiles(MEMORY_PLACE, "does not exist or is not writable")
        return MEMORY_PLACE
    if storage == "auto" and _free_bytes(MEMORY_PLACE) >= MEMORY_FREE_MIN:
        return MEMORY_PLACE
    # Imported late, here and below, because most sessions do not need it.
    import tempfile

    return tempfile.gettempdir()


def _free_bytes(place: str) -> int:
    if not os.access(place, os.W_OK | os.X_OK):
        return 0
    stat = os.statvfs(place)
    return stat.f_bavail * stat.f_frsize


def remove_abandoned(above: str) -> list[str]:
    """Remove the directories of killed processes of this user; return their paths."""
    removed = []
    with os.scandir(above) as entries:
        found = [one for one in entries if one.name.startswith(PREFIX)]
    for one in found:
        # Another process may remove the same directory.
        with suppress(OSError):
            if one.stat(follow_symlinks=False).st_uid == os.getuid() and _is_abandoned(one):
                _remove_tree(one.path)
                removed.append(one.path)
    return removed


def _is_abandoned(directory: "os.DirEntry[str]") -> bool:
    try:
        lock = os.open(f"{directory.path}/{_OWNER}", os.O_RDWR)
    except FileNotFoundError:
        return time.time() - directory.stat(follow_symlinks=False).st_mtime > LOCK_WITHIN_S
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _remove_tree(root: str) -> None:
    import shutil

    shutil.rmtree(root, ignore_errors=True)
