"""The file system interface of a log, with two implementations.

disk.py is the real one; sim/disk.py keeps files in memory and simulates power loss, torn pages and full
disks. Both raise OSError as the operating system does. Paths are plain strings with "/" between names.

Durability: bytes survive a power loss after File.sync(); a created, renamed or removed name does after
sync_directory() of its directory. Before that, any part may be lost.
"""

import errno
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.base.errors import BarnabasError

Buffer: TypeAlias = bytes | bytearray | memoryview

TEMPORARY_SUFFIX = ".tmp"


class File(Protocol):
    """An open file, read and written at positions.

    After its name was removed or given to another file, only close() is allowed; ranges that were pinned
    before stay readable. Renaming a directory moves its open files along.
    """

    @property
    def path(self) -> str:
        """The current path; rename() changes it."""

    def size(self) -> int: ...

    def read(self, at: int, size: int) -> bytes:
        """Read `size` bytes at `at`, fewer only at the end of the file. May block on the disk."""

    def read_cached(self, at: int, size: int) -> bytes:
        """Read like read(), but only from the page cache; raise NotCached for bytes that are not in it."""

    def need_cached(self, at: int, size: int) -> None:
        """Raise NotCached if sending these bytes would block on the disk, as far as a cheap probe tells."""

    def write(self, at: int, parts: Sequence[Buffer]) -> None:
        """Write the concatenated parts at `at`. After an OSError some bytes may be written."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Block until the bytes and the size are on the disk."""

    def rename(self, path: str) -> None:
        """Rename it within the file system, replacing a file of that name."""

    def fileno(self) -> int:
        """The descriptor for sendfile. Keep the FileRange until it is sent."""

    def close(self) -> None:
        """Release the file. A FileRange that is still held keeps its bytes readable."""


class FileRange(Protocol):
    """A part of a file to be sent. While it is held it stays readable, even if the file is removed."""

    @property
    def at(self) -> int: ...

    @property
    def size(self) -> int: ...

    def fileno(self) -> int: ...

    def read(self) -> bytes: ...


class Entry(NamedTuple):
    """One name in a directory."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int


class FileSystem(Protocol):
    """Names, and the files behind them."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, create an empty file if it does not exist."""

    def range(self, file: File, at: int, size: int) -> FileRange:
        """Pin a part of an open file of this file system."""

    def read(self, path: str) -> bytes:
        """Read a small file completely."""

    def entries(self, directory: str) -> list[Entry]:
        """The entries of a directory, ordered by name."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its missing parents."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def rename(self, old: str, new: str) -> None:
        """Rename a directory, or a file, which replaces one of that name."""

    def remove(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Block until the directory's entries are on the disk."""

    def lock(self, path: str) -> File:
        """Take an exclusive lock until the file is closed; BlockingIOError if another process holds it."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int:
        """The size of the file system that holds `path`."""


class NotCached(BarnabasError):
    """Some bytes are not in memory. Call warm() in the executor, then retry."""

    def __init__(self, file: File, *, at: int, size: int) -> None:
        super().__init__(f"bytes {at} to {at + size} of {file.path} are not in the page cache")
        self.file = file
        self.at = at
        self.size = size

    def warm(self) -> None:
        """Read the bytes from the disk into the page cache. For the executor."""
        at, end = self.at, self.at + self.size
        while at < end:
            try:
                got = len(self.file.read(at, min(WARM_STEP, end - at)))
            except OSError as error:
                # The file has since been removed or closed; the retry raises if that still matters.
                if error.errno in _GONE:
                    return
                raise
            if got == 0:
                return
            at += got


WARM_STEP = 1 << 20
_GONE = (errno.ENOENT, errno.EBADF, errno.ESTALE)


def write_atomically(fs: FileSystem, path: str, content: bytes) -> None:
    """Replace a small file so that a power loss leaves either the old or the new content."""
    temporary = path + TEMPORARY_SUFFIX
    file = fs.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write(0, [content])
        file.sync()
    finally:
        file.close()
    fs.rename(temporary, path)
    fs.sync_directory(path.rpartition("/")[0])
