"""The real file system, and the only module of this package that talks to the operating system.

Ten thousand partitions have thirty thousand files, far more than a process may open. So a DiskFile is a path
with a descriptor that may be evicted and reopened: at most `open_files_max` files have one, and the least
recently used lose it first (open_files.py).

Everything here may be called from the loop and from executor threads at once. A call holds the Descriptor
while it uses its number, so one thread may evict, close or remove a file while another reads it.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from barnabas.records.buffers import FRESH_BYTES_MIN, fresh_bytes
from barnabas.storage.files import Buffer, Entry, File, NotCached
from barnabas.storage.open_files import Directory, OpenFiles
from barnabas.storage.shortage import is_shortage

OPEN_FILES_MAX: Final = 4096

# How many files lose their descriptor when the process or the system has none left.
RELEASED_AT_ONCE: Final = 16

_MODE: Final = 0o644

# struct flock of 64-bit Linux: an exclusive lock of the whole file.
_WHOLE_FILE: Final = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

# A longer read is first limited to the file's size: the length may come from damaged bytes.
UNCHECKED_READ_MAX: Final = 1 << 20

# The kernel reads ahead, and usually evicts, in pieces of this size, so probing one byte of each is enough:
# 5 calls and 4 microseconds a megabyte, also right about pages whose read is still in progress. cachestat()
# checks every page in 2 microseconds, but counts pages in progress as present, and on overlayfs (containers)
# it reports none.
PROBE_STEP: Final = 256 << 10

# Zero where the platform lacks the flag. A file system without support, such as tmpfs, returns EOPNOTSUPP.
_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_NO_NOWAIT: Final = (errno.EOPNOTSUPP, errno.ENOSYS)
# A dummy buffer for all threads; its content is never read.
_PROBE: Final = [bytearray(1)]

_IOV_MAX: Final = os.sysconf("SC_IOV_MAX")

_pread: Final = os.pread
_preadv: Final = os.preadv
_pwrite: Final = os.pwrite
_pwritev: Final = os.pwritev


class Descriptor:
    """A descriptor that is closed when its last reference is dropped.

    A finalizer, not a close(): a range that is being sent and a job in a thread keep using the number after
    the file was evicted, removed or closed. If it were closed too early, the system would reuse the number
    for another file, and the wrong bytes would be sent.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        # Write errors were reported by sync() already.
        with suppress(OSError):
            os.close(self.number)


class DiskFile:
    """Reads and writes at positions; reopens itself after an eviction."""

    __slots__ = ("__weakref__", "_closed", "_held", "_identity", "_nowait", "_open_files", "_used", "_where")

    def __init__(self, open_files: OpenFiles, path: str, held: Descriptor) -> None:
        self._open_files = open_files
        # Directory and name. Both the old and the new ones during a rename.
        self._where: tuple[tuple[Directory, str], ...] = (open_files.directory_of(path),)
        self._held: Descriptor | None = held
        self._identity = _identity(held)
        self._used = False
        self._closed = False
        self._nowait = bool(_NOWAIT)

    @property
    def path(self) -> str:
        return self._paths()[0]

    def size(self) -> int:
        return _size(self._descriptor())

    def read(self, at: int, size: int) -> bytes:
        return _read(self._descriptor(), at, size)

    def read_cached(self, at: int, size: int) -> bytes:
        # Every fetch runs this, so _descriptor() is inlined.
        held = self._held
        if held is None:
            held = self._reopen()
        self._used = True
        if not self._nowait:
            return _read(held, at, size)
        if at < 0:
            _need_position(at)
        if size > UNCHECKED_READ_MAX:
            size = _bounded(held, at, size)
        data: bytes | bytearray
        target: bytearray | memoryview
        if size >= FRESH_BYTES_MIN:
            data, target = fresh_bytes(size)
        else:
            data = target = bytearray(size)
        try:
            got = _preadv(held.number, [target], at, _NOWAIT)
        except BlockingIOError:
            raise NotCached(self, at=at, size=size) from None
        except OSError as error:
            self._do_without_nowait(error)
            return _read(held, at, size)
        # A short read ends at the end of the file or at the first page that is not in memory.
        if got < size and at + got < _size(held):
            raise NotCached(self, at=at + got, size=size - got)
        # bytes() does not copy a bytes object.
        return bytes(data if got == size else data[:got])

    def need_cached(self, at: int, size: int) -> None:
        if not self._nowait or size <= 0:
            return
        _need_position(at)
        held = self._descriptor()
        last = at + size - 1
        try:
            for position in range(at, last, PROBE_STEP):
                _preadv(held.number, _PROBE, position, _NOWAIT)
            _preadv(held.number, _PROBE, last, _NOWAIT)
        except BlockingIOError:
            raise NotCached(self, at=at, size=size) from None
        except OSError as error:
            self._do_without_nowait(error)

    def write(self, at: int, parts: Sequence[Buffer]) -> None:
        # Every produce runs this, so _descriptor() is inlined. A batch has one part or two.
        held = self._held
        if held is None:
            held = self._reopen()
        self._used = True
        if at < 0:
            _need_position(at)
        done, count = 0, len(parts)
        # Python itself retries after a signal.
        if count == 1:
            done = _pwrite(held.number, parts[0], at)
            if done == len(parts[0]):
                return
        elif count <= _IOV_MAX:
            done = _pwritev(held.number, parts, at)
            if done == (len(parts[0]) + len(parts[1]) if count == 2 else sum(map(len, parts))):
                return
        _write_rest(held, at, parts, done)

    def truncate(self, size: int) -> None:
        held = self._descriptor()
        os.ftruncate(held.number, size)

    def sync(self) -> None:
        # fdatasync writes the bytes and the size, but not the modification time, which often saves a second
        # write. It syncs the file, not the descriptor: this includes data written through a descriptor that
        # was evicted since, and errors that were not reported yet (Linux 4.16 and later).
        held = self._descriptor()
        os.fdatasync(held.number)

    def rename(self, path: str) -> None:
        self._need_open()
        old, new = self._where[0], self._open_files.directory_of(path)
        # A thread that reopens the file during the rename tries both names.
        self._where = (old, new)
        try:
            os.rename(self.path, path)
        except OSError:
            self._where = (old,)
            raise
        self._where = (new,)

    def fileno(self) -> int:
        return self._descriptor().number

    def close(self) -> None:
        self._closed = True
        self._held = None
        self._open_files.drop(self)

    def pin(self, at: int, size: int) -> "DiskRange":
        return DiskRange(self._descriptor(), at, size)

    def evict(self) -> bool:
        if self._used:
            self._used = False
            return False
        self._held = None
        return True

    def _descriptor(self) -> Descriptor:
        held = self._held
        if held is None:
            held = self._reopen()
        self._used = True
        return held

    def _reopen(self) -> Descriptor:
        self._need_open()
        while True:
            paths = self._paths()
            for path in paths:
                try:
                    held = _opened(self._open_files, path, os.O_RDWR)
                except FileNotFoundError as error:
                    missing = error
                    continue
                self._need_same(held, path)
                self._held = held
                self._open_files.admit(self)
                return held
            if paths == self._paths():
                raise missing

    def _need_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)

    def _need_same(self, held: Descriptor, path: str) -> None:
        """Raise ESTALE if another file has taken this path.

        A file created after the removal may have the same inode number; File forbids use after a removal.
        """
        if _identity(held) != self._identity:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)

    def _paths(self) -> list[str]:
        return [place + name for directory, name in self._where for place in directory.places]

    def _do_without_nowait(self, error: OSError) -> None:
        if error.errno not in _NO_NOWAIT:
            raise error
        self._nowait = False


class DiskRange:
    """A part of a file, and the descriptor to send it from."""

    __slots__ = ("_held", "at", "size")

    def __init__(self, held: Descriptor, at: int, size: int) -> None:
        self._held = held
        self.at = at
        self.size = size

    def fileno(self) -> int:
        return self._held.number

    def read(self) -> bytes:
        return _read(self._held, self.at, self.size)


class DiskFileSystem:
    """The machine's files. One object serves all directories of a broker, since descriptors are scarce."""

    def __init__(self, *, open_files_max: int = OPEN_FILES_MAX) -> None:
        self._open_files = OpenFiles(open_files_max)

    @property
    def open_files(self) -> int:
        """How many files have a descriptor now, not counting locks and ranges that are being sent."""
        return len(self._open_files)

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        file = self._file(path, os.O_RDWR | os.O_CREAT if create else os.O_RDWR)
        self._open_files.admit(file)
        return file

    def range(self, file: File, at: int, size: int) -> DiskRange:
        assert isinstance(file, DiskFile), f"{file.path} belongs to another file system"
        return file.pin(at, size)

    def read(self, path: str) -> bytes:
        held = _opened(self._open_files, path, os.O_RDONLY)
        try:
            return DiskRange(held, 0, os.fstat(held.number).st_size).read()
        except OSError as error:
            # A read from a descriptor fails without a file name; error messages need one.
            error.filename = path
            raise

    def entries(self, directory: str) -> list[Entry]:
        try:
            return self._entries(directory)
        except OSError as error:
            if not is_shortage(error) or not self._open_files.release(RELEASED_AT_ONCE):
                raise
        return self._entries(directory)

    def _entries(self, directory: str) -> list[Entry]:
        found = []
        with os.scandir(directory) as names:
            for name in names:
                try:
                    stat, is_directory = name.stat(), name.is_dir()
                except FileNotFoundError:
                    # Removed since the directory was read.
                    continue
                size = 0 if is_directory else stat.st_size
                found.append(Entry(name.name, is_directory, size, stat.st_mtime_ns // 1_000_000))
        found.sort()
        return found

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        if not os.path.isdir(old):
            os.rename(old, new)
            return
        with self._open_files.moving(old, new):
            os.rename(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        held = _opened(self._open_files, path or ".", os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(held.number)

    def lock(self, path: str) -> DiskFile:
        # Not admitted to the open files: evicting the descriptor would release the lock.
        file = self._file(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A JVM locks with fcntl(), which does not see flock(). It does see an open file description lock, so
        # Kafka and Barnabas never use one directory at the same time.
        if hasattr(fcntl, "F_OFD_SETLK"):
            fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, _WHOLE_FILE)
        return file

    def free_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize

    def total_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize

    def _file(self, path: str, flags: int) -> DiskFile:
        return DiskFile(self._open_files, path, _opened(self._open_files, path, flags))


def _opened(open_files: OpenFiles, path: str, flags: int) -> Descriptor:
    """Open a file. If no descriptor is left, evict files that are not in use and retry."""
    try:
        return Descriptor(os.open(path, flags, _MODE))
    except OSError as error:
        if not is_shortage(error) or not open_files.release(RELEASED_AT_ONCE):
            raise
    return Descriptor(os.open(path, flags, _MODE))


def _identity(held: Descriptor) -> tuple[int, int]:
    stat = os.fstat(held.number)
    return stat.st_dev, stat.st_ino


def _size(held: Descriptor) -> int:
    # A third of the cost of fstat. It moves the descriptor's position, which is never used.
    return os.lseek(held.number, 0, os.SEEK_END)


def _need_position(at: int) -> None:
    # preadv() and pwritev() take -1 for the descriptor's current position, which is undefined here.
    if at < 0:
        raise OSError(errno.EINVAL, f"file position {at} is negative")


def _bounded(held: Descriptor, at: int, size: int) -> int:
    """The size to read: a large one is limited to the bytes in the file before memory is allocated."""
    return size if size <= UNCHECKED_READ_MAX else min(size, max(0, _size(held) - at))


def _read(held: Descriptor, at: int, size: int) -> bytes:
    size = _bounded(held, at, size)
    data = _pread(held.number, size, at)
    if len(data) == size:
        return data
    parts, got = [data], len(data)
    while data and got < size:
        data = _pread(held.number, size - got, at + got)
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def _write_rest(held: Descriptor, at: int, parts: Sequence[Buffer], done: int) -> None:
    """Write everything after the first `done` bytes: one call wrote fewer or cannot take all parts."""
    views = [memoryview(part).cast("B") for part in parts]
    first = 0
    while True:
        while first < len(views) and done >= len(views[first]):
            done -= len(views[first])
            at += len(views[first])
            first += 1
        if first == len(views):
            return
        views[first] = views[first][done:]
        at += done
        done = _pwritev(held.number, views[first : first + _IOV_MAX], at)
        if done == 0:
            raise OSError(errno.EIO, "write() wrote no bytes")
