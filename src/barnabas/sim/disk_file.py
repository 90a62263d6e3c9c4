"""Open files and file ranges of the simulated disk."""

import errno
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from barnabas.sim.disk_faults import PowerLoss
from barnabas.sim.inodes import FileNode
from barnabas.sim.names import Place, fail
from barnabas.storage.files import Buffer, NotCached

if TYPE_CHECKING:
    from barnabas.sim.disk import SimDisk


class SimFile:
    """An open file, created by SimDisk."""

    __slots__ = ("_closed", "_disk", "_generation", "_holds_lock", "_node", "_place")

    def __init__(self, disk: "SimDisk", place: Place, node: FileNode) -> None:
        self._disk = disk
        self._place = place
        self._node = node
        self._generation = disk.generation
        self._closed = False
        self._holds_lock = False

    @property
    def path(self) -> str:
        return self._place.path()

    def size(self) -> int:
        return len(self._looking().content)

    def read(self, at: int, size: int) -> bytes:
        return self._looking().read(at, size)

    def read_cached(self, at: int, size: int) -> bytes:
        node = self._looking()
        self._need_cached(node, at, size)
        return node.read(at, size)

    def need_cached(self, at: int, size: int) -> None:
        self._need_cached(self._looking(), at, size)

    def write(self, at: int, parts: Sequence[Buffer]) -> None:
        disk, node = self._disk, self._usable()
        data = b"".join(parts)
        fate = disk.faults.changing("write", self.path)
        grown = max(0, at + len(data) - len(node.content)) if data else 0
        missing = grown - disk.room_for(grown)
        fits = data[: max(0, len(data) - missing)] if missing else data
        self._write(at, fits[: round(len(fits) * fate.share)] if fate.share < 1 else fits)
        fate.end()
        if missing:
            fail(errno.ENOSPC, self.path)

    def truncate(self, size: int) -> None:
        disk, node = self._disk, self._usable()
        fate = disk.faults.changing("truncate", self.path)
        grown = size - len(node.content)
        if disk.room_for(grown) < grown:
            fail(errno.ENOSPC, self.path)
        if fate.share:
            node.truncate(size)
            node.modified_ms = disk.now_ms()
            disk.used += grown
        fate.end()

    def sync(self) -> None:
        node = self._usable()
        fate = self._disk.faults.changing("sync", self.path)
        if fate.share:
            node.sync()
        elif not isinstance(fate.error, PowerLoss):
            node.forget_unsynced()
        fate.end()

    def rename(self, path: str) -> None:
        self._usable()
        fate = self._disk.faults.changing("rename", self.path)
        if fate.share:
            new = self._disk.place(path)
            self._disk.rename_place(self._place, new)
            self._place = new
        fate.end()

    def fileno(self) -> NoReturn:
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def close(self) -> None:
        self._closed = True
        if self._holds_lock and self._generation == self._disk.generation:
            self._node.locked = False
        self._holds_lock = False

    def lock(self) -> None:
        node = self._usable()
        if node.locked:
            fail(errno.EAGAIN, self.path)
        node.locked = self._holds_lock = True

    def pin(self, at: int, size: int) -> "SimRange":
        return SimRange(self._disk, self._looking(), at, size)

    def _write(self, at: int, data: bytes) -> None:
        disk, node = self._disk, self._node
        before = len(node.content)
        node.write(at, data)
        node.modified_ms = disk.now_ms()
        disk.used += len(node.content) - before

    def _need_cached(self, node: FileNode, at: int, size: int) -> None:
        cold = node.first_cold(at, size)
        if cold is not None:
            raise NotCached(self, at=cold, size=at + size - cold)

    def _looking(self) -> FileNode:
        node = self._usable()
        self._disk.faults.looking("read", self.path)
        return node

    def _usable(self) -> FileNode:
        """The file's node, if the file's name still leads to it."""
        self._disk.faults.need_power()
        if self._closed:
            fail(errno.EBADF, self.path)
        if self._generation != self._disk.generation:
            raise OSError(errno.EIO, "power was lost since the file was opened", self.path)
        found = self._place.node()
        if found is not self._node:
            fail(errno.ENOENT if found is None else errno.ESTALE, self.path)
        return self._node


class SimRange:
    """A part of a file, which stays readable after the file was renamed or removed."""

    __slots__ = ("_disk", "_generation", "_node", "at", "size")

    def __init__(self, disk: "SimDisk", node: FileNode, at: int, size: int) -> None:
        self._disk = disk
        self._node = node
        self._generation = disk.generation
        self.at = at
        self.size = size

    def fileno(self) -> NoReturn:
        raise io.UnsupportedOperation("a range in memory has no descriptor")

    def read(self) -> bytes:
        self._disk.faults.need_power()
        if self._generation != self._disk.generation:
            raise OSError(errno.EIO, "power was lost since the range was pinned")
        return self._node.read(self.at, self.size)
