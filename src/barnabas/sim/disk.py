"""A disk in memory with seeded faults: power loss, torn writes, full disk, bit rot, evicted pages.

SimDisk implements storage/files.py. Without faults it behaves like a real file system; a property test
compares the two. It is stricter in one point: a file whose name was removed or given to another file cannot
be used any more, which happens on a real disk only after its descriptor was evicted.

Names are in names.py, bytes in inodes.py, fault injection in faults.py.
"""

import copy
import errno
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from random import Random

from barnabas.base.clock import Clock
from barnabas.sim.disk_faults import DEFAULT_ERRNO, Faults, Kind, PowerLoss
from barnabas.sim.disk_file import SimFile, SimRange
from barnabas.sim.inodes import FileNode
from barnabas.sim.names import DirectoryNode, Names, Node, Place, fail
from barnabas.storage.files import Entry, File

__all__ = ["PowerLoss", "SimDisk"]

# The free space of an unlimited disk.
PLENTY = 1 << 50
# Changes that a job of a killed process may still make; most jobs make fewer.
CALLS_UNDER_WAY_MAX = 8


class SimDisk:
    """A file system for tests. All randomness comes from `rng`."""

    def __init__(self, rng: Random, *, clock: Clock | None = None, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.used = 0
        self.faults = Faults(rng)
        # Counts power losses, which invalidate open files.
        self.generation = 0
        self._rng = rng
        self._clock = clock
        self._names = Names()

    # FileSystem

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self.faults.looking("open", path)
        place = self._names.place(path)
        node = place.node()
        if node is None and create:
            node = self._create(place)
        if not isinstance(node, FileNode):
            fail(errno.ENOENT if node is None else errno.EISDIR, path)
        return SimFile(self, place, node)

    def range(self, file: File, at: int, size: int) -> SimRange:
        assert isinstance(file, SimFile), f"{file.path} belongs to another file system"
        return file.pin(at, size)

    def read(self, path: str) -> bytes:
        self.faults.looking("read", path)
        node = self._file(path)
        return node.read(0, len(node.content))

    def entries(self, directory: str) -> list[Entry]:
        self.faults.looking("entries", directory)
        found = self._names.directory(directory).names
        return [_entry(name, node) for name, node in sorted(found.items())]

    def make_directory(self, path: str) -> None:
        directory = self._names.root
        parts = self._names.parts(path)
        for position, part in enumerate(parts):
            place = Place(directory, part)
            node = place.node() or self._make_one(place)
            if not isinstance(node, DirectoryNode):
                fail(errno.EEXIST if position == len(parts) - 1 else errno.ENOTDIR, path)
            directory = node

    def remove_directory(self, path: str) -> None:
        fate = self.faults.changing("remove_directory", path)
        directory, place = self._names.directory(path), self._names.place(path)
        if directory.names:
            fail(errno.ENOTEMPTY, path)
        if fate.share:
            self._names.remove(place)
        fate.end()

    def rename(self, old: str, new: str) -> None:
        fate = self.faults.changing("rename", old)
        if fate.share:
            self.rename_place(self._names.place(old), self._names.place(new))
        fate.end()

    def remove(self, path: str) -> None:
        fate = self.faults.changing("remove", path)
        node = self._file(path)
        if fate.share:
            self._names.remove(self._names.place(path))
            self.used -= len(node.content)
        fate.end()

    def sync_directory(self, path: str) -> None:
        fate = self.faults.changing("sync_directory", path)
        directory = self._names.directory(path)
        if fate.share:
            self._names.sync(directory)
        fate.end()

    def lock(self, path: str) -> SimFile:
        self.faults.looking("lock", path)
        file = self.open(path, create=True)
        file.lock()
        return file

    def free_bytes(self, path: str) -> int:
        self.faults.need_power()
        self._names.find(path)
        return PLENTY if self.capacity is None else max(0, self.capacity - self.used)

    def total_bytes(self, path: str) -> int:
        self.faults.need_power()
        self._names.find(path)
        return PLENTY if self.capacity is None else self.capacity

    # Controls for tests

    @property
    def operations(self) -> int:
        """The number of operations that have changed something, or tried to."""
        return self.faults.operations

    def crash_after(self, operations: int) -> None:
        """Lose power at the nth further change: before, during or right after it."""
        self.faults.lose_power_after(operations)

    def crash(self, rng: Random | None = None) -> str:
        """Lose power, if not yet lost, and restart with the durable state. Describe what was lost."""
        rng = rng or self._rng
        lost = self._names.lose_power(rng)
        for path, node in self._files():
            said = node.lose_power(rng)
            if said:
                lost.append(f"{path}: {said}")
        self.used = sum(len(node.content) for _, node in self._files())
        self.generation += 1
        self.faults.restore_power()
        return "; ".join(lost) or "nothing was lost"

    def process_ended(
        self, under_way: Iterable[Callable[[], object]] = (), rng: Random | None = None
    ) -> None:
        """Close the files of a process that was killed. The page cache, and so every write, stays.

        Of each job under way the kernel does some of the calls: none, all, or the first few.
        """
        rng = rng or self._rng
        for job in under_way:
            self.faults.lose_power_after(rng.randint(1, CALLS_UNDER_WAY_MAX))
            if rng.random() < 0.5:
                with suppress(BaseException):
                    job()
            self.faults.restore_power()
        for _, node in self._files():
            node.locked = False
        self.generation += 1

    def fail(
        self, path_prefix: str, kinds: Collection[Kind], *, count: int = 1, errno: int = DEFAULT_ERRNO
    ) -> None:
        """Make the next `count` operations of these kinds under this prefix fail."""
        self.faults.fail(path_prefix, kinds, count, errno)

    def heal(self) -> None:
        """End planned errors, and give the disk room."""
        self.faults.forget()
        self.capacity = None

    def rot(self, path: str, at: int, mask: int) -> None:
        """Flip the bits of `mask` in one byte, in memory and on the disk."""
        self._file(path).rot(at, mask)

    def rot_randomly(self, rng: Random, suffix: str = ".log") -> tuple[str, int]:
        """Flip one bit of some file of this kind. Return the path and the position of the byte."""
        candidates = [(path, node) for path, node in self._files() if path.endswith(suffix) and node.content]
        assert candidates, f"no {suffix} file has any bytes"
        path, node = rng.choice(candidates)
        at = rng.randrange(len(node.content))
        node.rot(at, 1 << rng.randrange(8))
        return path, at

    def cool(self, path: str | None = None) -> None:
        """Drop a file, or all of them, from the page cache."""
        for node in [self._file(path)] if path is not None else [node for _, node in self._files()]:
            node.cool()

    def tree(self) -> dict[str, int]:
        """Every file with its size, for messages."""
        return {path: len(node.content) for path, node in self._files()}

    def content(self, path: str) -> bytes:
        """The current content of a file, without faults and without a change of the page cache."""
        return bytes(self._file(path).content)

    def durable(self, path: str) -> bytes | None:
        """The content that a file has after the worst power loss; None if the file is lost."""
        node: Node | None = self._names.root
        for part in self._names.parts(path):
            node = node.durable_names.get(part) if isinstance(node, DirectoryNode) else None
        return bytes(node.durable) if isinstance(node, FileNode) else None

    def branch(self, rng: Random) -> "SimDisk":
        """A copy of the disk with its unsynced state, so that both can be crashed differently.

        Open files and planned faults are not copied.
        """
        other = SimDisk(rng, clock=self._clock, capacity=self.capacity)
        other.used = self.used
        other._names = copy.deepcopy(self._names)
        for _, node in other._files():
            node.locked = False
        return other

    # For SimFile

    def now_ms(self) -> int:
        return self._clock.now_ms() if self._clock is not None else 0

    def room_for(self, wanted: int) -> int:
        """How many of `wanted` further bytes fit on the disk."""
        return wanted if self.capacity is None else max(0, min(wanted, self.capacity - self.used))

    def rename_place(self, old: Place, new: Place) -> None:
        replaced = new.node()
        self._names.rename(old, new)
        if isinstance(replaced, FileNode) and replaced.place is None:
            self.used -= len(replaced.content)

    def place(self, path: str) -> Place:
        return self._names.place(path)

    def _create(self, place: Place) -> FileNode:
        fate = self.faults.changing("create", place.path())
        node = FileNode(modified_ms=self.now_ms())
        self._add(place, node, fate.share)
        fate.end()
        return node

    def _make_one(self, place: Place) -> DirectoryNode:
        fate = self.faults.changing("make_directory", place.path())
        node = DirectoryNode(modified_ms=self.now_ms())
        self._add(place, node, fate.share)
        fate.end()
        return node

    def _add(self, place: Place, node: Node, share: float) -> None:
        if not self.room_for(1):
            fail(errno.ENOSPC, place.path())
        if share:
            self._names.add(place, node)

    def _file(self, path: str) -> FileNode:
        node = self._names.find(path)
        if not isinstance(node, FileNode):
            fail(errno.EISDIR, path)
        return node

    def _files(self) -> list[tuple[str, FileNode]]:
        return [(path, node) for path, node in self._names.nodes() if isinstance(node, FileNode)]


def _entry(name: str, node: Node) -> Entry:
    size = len(node.content) if isinstance(node, FileNode) else 0
    return Entry(name, isinstance(node, DirectoryNode), size, node.modified_ms)
