"""The file system as a log sees it: a port with two sides.

disk.py is the real side; sim/disk.py keeps files in memory and loses power, tears pages and fills up on
demand. Both raise OSError as the operating system does. Paths are plain strings with "/" between names.

What is promised about power loss: bytes are safe after File.sync(); a name (created, renamed, removed) is
safe after sync_directory() of the directory it is in. Without these, anything may be left of it.
"""

import errno
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.base.errors import BarnabasError

Buffer: TypeAlias = bytes | bytearray | memoryview

TEMPORARY_SUFFIX = ".tmp"


class File(Protocol):
    """An open file, read and written at positions.

    It is used under its name. Once that was removed, or given to another file by somebody else, only close()
    is left to do; ranges that were pinned before stay good. A directory takes its files along.
    """

    @property
    def path(self) -> str:
        """Where it is now: rename() changes it."""

    def size(self) -> int: ...

    def read(self, at: int, size: int) -> bytes:
        """Read `size` bytes at `at`, fewer only where the file ends. It may wait for the disk."""

    def read_cached(self, at: int, size: int) -> bytes:
        """Read like read(), but only what is in memory: NotCached says what is not."""

    def need_cached(self, at: int, size: int) -> None:
        """NotCached if sending these bytes would wait for the disk, as far as can be told cheaply."""

    def write(self, at: int, parts: Sequence[Buffer]) -> None:
        """Write all parts, one after another, at `at`. After an OSError some of them may be written."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Wait until the bytes and the size are on the disk."""

    def rename(self, path: str) -> None:
        """Give it another name in the same file system, in the place of what has that name."""

    def fileno(self) -> int:
        """The descriptor to sendfile from. Keep the FileRange that it is for until it is sent."""

    def close(self) -> None:
        """Let go of it. A FileRange that is still held keeps its bytes readable."""


class FileRange(Protocol):
    """A part of a file to be sent: it stays readable while it is held, also when the file is removed."""

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
        """Open for reading and writing; with `create` an empty file is made if there is none."""

    def range(self, file: File, at: int, size: int) -> FileRange:
        """Pin a part of an open file of this file system."""

    def read(self, path: str) -> bytes:
        """The whole of a small file."""

    def entries(self, directory: str) -> list[Entry]:
        """What is in a directory, in the order of the names."""

    def make_directory(self, path: str) -> None:
        """Make it and those above it, unless they are there."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file (in the place of what has the name) or a directory."""

    def remove(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Wait until the names in it are on the disk."""

    def lock(self, path: str) -> File:
        """Hold an exclusive lock until the file is closed; BlockingIOError if somebody else has it."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int:
        """How large the disk is that a path is on, free or not."""


class NotCached(BarnabasError):
    """Some bytes are not in memory. Warm them up where waiting is allowed, and ask again."""

    def __init__(self, file: File, *, at: int, size: int) -> None:
        super().__init__(f"bytes {at} to {at + size} of {file.path} are not in the page cache")
        self.file = file
        self.at = at
        self.size = size

    def warm(self) -> None:
        """Read the bytes, waiting for the disk, so that they are in memory. For the executor."""
        at, end = self.at, self.at + self.size
        while at < end:
            try:
                got = len(self.file.read(at, min(WARM_STEP, end - at)))
            except OSError as error:
                # The file was removed or closed meanwhile. Who asks again is told so, if it still matters.
                if error.errno in _GONE:
                    return
                raise
            if got == 0:
                return
            at += got


WARM_STEP = 1 << 20
_GONE = (errno.ENOENT, errno.EBADF, errno.ESTALE)


def write_atomically(fs: FileSystem, path: str, content: bytes) -> None:
    """Put a small file in place so that after a power loss either the old or the new one is there."""
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
