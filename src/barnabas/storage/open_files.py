"""Which files of disk.py have a descriptor, and where their directories are now.

Used by the loop and by executor threads at once, without locks: the ring is a dictionary whose single
operations are atomic, and a file between two of them is in nobody's way. What two threads can do to each
other at worst is to open a file twice, which costs a descriptor until one of them is done.

The ring does not keep files alive: a file that nobody refers to closes its descriptor, closed or not.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import ReferenceType, WeakValueDictionary, ref


class Evictable(Protocol):
    """A file that can do without its descriptor."""

    def evict(self) -> bool:
        """Give up the descriptor, unless it was used since the last time this was asked."""


class Directory:
    """Where some files are. All files of one directory share it, so that they follow when it is renamed.

    It has two places while the rename is going on, since nobody can say in which of them the files are.
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
        """Count a file that was opened, and take the descriptor of another one if there are too many.

        The second chance: the file that comes off one end is evicted, or, if it was used, it loses its mark
        and joins at the other end. A use costs one assignment that way, and no order has to be kept.
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
        """Take the descriptors of so many files that can do without; how many there were."""
        files, released = self._files, 0
        # Everybody comes by twice at most: once to lose its mark, and once to lose its descriptor.
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
        """Take the files in a directory, and in those below it, along while it is renamed in the `with`."""
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
