"""The files of disk.py that have a descriptor, and the current paths of their directories.

The loop and executor threads use this at once, without locks: the ring is a dictionary with atomic
operations, and a file that is between two of them does no harm. At worst two threads open a file twice, which
costs a descriptor until one of them is done.

The ring holds weak references: an unreferenced file closes its descriptor even without close().
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import ReferenceType, WeakValueDictionary, ref


class Evictable(Protocol):
    """A file that can give up its descriptor."""

    def evict(self) -> bool:
        """Give up the descriptor, unless it was used since the last call."""


class Directory:
    """A directory's path, shared by all its files so that they follow a rename.

    During the rename it has two paths, because the files may be in either.
    """

    __slots__ = ("__weakref__", "places")

    def __init__(self, place: str) -> None:
        self.places: tuple[str, ...] = (place,)


class OpenFiles:
    """A bounded ring of the files that have a descriptor, and the directories of all files."""

    def __init__(self, files_max: int) -> None:
        assert files_max > 0, files_max
        self._max = files_max
        # By the id of the file.
        self._files: OrderedDict[int, ReferenceType[Evictable]] = OrderedDict()
        self._directories: WeakValueDictionary[str, Directory] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._files)

    def admit(self, file: Evictable) -> None:
        """Add a file that was opened, and evict others if there are too many.

        This is the second-chance algorithm: the oldest file is evicted, or, if it was used, loses its mark
        and moves to the other end. So a use costs one assignment instead of a reordering.
        """
        files = self._files
        while len(files) >= self._max:
            try:
                key, known = files.popitem(last=False)
            except KeyError:  # Another thread was faster.
                break
            candidate = known()
            if candidate is not None and not candidate.evict():
                files[key] = known
        own = id(file)
        # Called before the file's memory is freed, so no other file has this id yet.
        files[own] = ref(file, lambda _: files.pop(own, None))

    def release(self, count: int) -> int:
        """Evict up to `count` files; return how many were evicted."""
        files, released = self._files, 0
        # Each file is visited at most twice: once to lose its mark, and once to lose its descriptor.
        for _ in range(2 * len(files)):
            if released == count:
                break
            try:
                key, known = files.popitem(last=False)
            except KeyError:  # Another thread was faster.
                break
            candidate = known()
            if candidate is None:
                continue
            if candidate.evict():
                released += 1
            else:
                files[key] = known
        return released

    def drop(self, file: Evictable) -> None:
        self._files.pop(id(file), None)

    def directory_of(self, path: str) -> tuple[Directory, str]:
        """The directory of a path, shared by all files in it, and the name in it."""
        above, slash, name = path.rpartition("/")
        place = above + slash
        directory = self._directories.get(place)
        if directory is None:
            directory = self._directories[place] = Directory(place)
        return directory, name

    @contextmanager
    def moving(self, old: str, new: str) -> Iterator[None]:
        """Update the paths of all files below a directory that is renamed inside the `with`."""
        old, new = old.rstrip("/") + "/", new.rstrip("/") + "/"
        known = [directory for ref in self._directories.valuerefs() if (directory := ref()) is not None]
        moved = [directory for directory in known if directory.places[0].startswith(old)]
        for directory in moved:
            place = directory.places[0]
            directory.places = (place, new + place[len(old) :])
        try:
            yield
        except OSError:
            for directory in moved:
                directory.places = directory.places[:1]
            raise
        for directory in moved:
            self._directories.pop(directory.places[0], None)
            directory.places = directory.places[1:]
            self._directories[directory.places[0]] = directory
