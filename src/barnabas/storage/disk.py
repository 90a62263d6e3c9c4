"""The real side of the file-system port, and the only module of this room that talks to the operating system.

Ten thousand partitions have thirty thousand files, far more than a process may have open. So a file is a
path that has a descriptor while it is in use: at most `open_files_max` have one, and those not used for a
while lose it first; open_files.py keeps count.

All of it may be called from the loop and from executor threads at once. A call holds the Descriptor while it
works with its number, so that a file may be evicted, closed or removed by one thread while another reads it.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from barnabas.records.fresh_bytes import FRESH_BYTES_MIN, fresh_bytes
from barnabas.storage.errors import is_shortage
from barnabas.storage.files import Buffer, Entry, File, NotCached
from barnabas.storage.open_files import Directory, OpenFiles

OPEN_FILES_MAX: Final = 4096

# How many files lose their descriptor, where they can, when there is none for another.
RELEASED_AT_ONCE: Final = 16

_MODE: Final = 0o644

# struct flock of 64-bit Linux: an exclusive lock of the whole file.
_WHOLE_FILE: Final = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

# A longer read is first cut to what the file holds: the length may come from damaged bytes.
UNCHECKED_READ_MAX: Final = 1 << 20

# The kernel reads ahead, and as a rule forgets, in pieces of this size, and one byte tells about all of it:
# 5 calls and 4 microseconds a megabyte, and right also about pages that are still on their way. cachestat()
# looks at every page in 2 microseconds, but takes pages on their way for present, and on overlayfs, where
# containers live, it never finds any.
PROBE_STEP: Final = 256 << 10

# Zero where the platform has no such flag. A file system without it says EOPNOTSUPP; tmpfs, which has nothing
# but memory, is one of these.
_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_NO_NOWAIT: Final = (errno.EOPNOTSUPP, errno.ENOSYS)
# Whatever threads write in here, nobody reads it.
_PROBE: Final = [bytearray(1)]

_IOV_MAX: Final = os.sysconf("SC_IOV_MAX")

_pread: Final = os.pread
_preadv: Final = os.preadv
_pwrite: Final = os.pwrite
_pwritev: Final = os.pwritev


class Descriptor:
    """A descriptor that is closed when nobody holds it any more.

    This is a finalizer and not a close(), because who is last cannot be known otherwise: a range on its way
    to a socket and a job in a thread go on using the number when the file has been evicted, removed or
    closed. A number closed too early would be given to another file, and the wrong bytes would be sent.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        # What close() could complain about, sync() has said already.
        with suppress(OSError):
            os.close(self.number)


class DiskFile:
    """Reads and writes at positions; opens again by itself what was evicted."""

    __slots__ = ("__weakref__", "_closed", "_held", "_identity", "_nowait", "_open_files", "_used", "_where")

    def __init__(self, open_files: OpenFiles, path: str, held: Descriptor) -> None:
        self._open_files = open_files
        # Its directory and its name in it; the old ones and the new ones while it is renamed.
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
        # Every fetch comes by here, so what others call is written out.
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
        # Fewer bytes are the end of the file, or the first page that is not in memory.
        if got < size and at + got < _size(held):
            raise NotCached(self, at=at + got, size=size - got)
        # Bytes that are whole are not copied by this.
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
        # Every produce comes by here, so _descriptor() is written out. A batch has one part or two.
        held = self._held
        if held is None:
            held = self._reopen()
        self._used = True
        if at < 0:
            _need_position(at)
        done, count = 0, len(parts)
        # Python itself calls again when a signal came in between.
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
        # fdatasync writes all that is needed to find the bytes again, the size among it; it leaves out the
        # modification time, and with it often a second write. It is the file that is synced, not the
        # descriptor: what was written through one that was evicted since is included, and so is an error
        # that nobody has been told of (Linux 4.16 and later).
        held = self._descriptor()
        os.fdatasync(held.number)

    def rename(self, path: str) -> None:
        self._need_open()
        old, new = self._where[0], self._open_files.directory_of(path)
        # Who reopens it meanwhile tries both names.
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
        """A file that was put in its place by somebody else must not pass for it.

        One that was made after the removal may still have its number; File says that it is not to be used.
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
        """How many files have a descriptor now. Locks, and ranges that are being sent, come on top."""
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
            # A descriptor has no name, and whoever reports this needs one.
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
                    # Removed since the directory was read, so it is not in it.
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
        # Not admitted to the open files: an evicted descriptor would give up the lock.
        file = self._file(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A JVM locks with fcntl(), which does not see flock(). It does see the lock of an open file
        # description, so that Kafka and Barnabas are never at work in one directory.
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
    """Open a file. If no descriptor is left, others that are not in use give up theirs."""
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
    # A third of the price of fstat. It moves the descriptor's position, which nobody uses.
    return os.lseek(held.number, 0, os.SEEK_END)


def _need_position(at: int) -> None:
    # preadv() and pwritev() take -1 for "wherever the descriptor is", and that is nowhere in particular.
    if at < 0:
        raise OSError(errno.EINVAL, f"there is no byte {at}")


def _bounded(held: Descriptor, at: int, size: int) -> int:
    """The size to read: a big one is cut to what there is before memory is taken for it."""
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
    """Go on after the first `done` bytes: there were too many parts for one call, or it wrote fewer."""
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
            raise OSError(errno.EIO, "the file takes no more bytes")
