"""The names on a simulated disk: the current and the durable ones.

A change of a name (created, renamed, removed) is visible at once and durable after a sync of its directory.
After a power loss any subset of the unsynced changes is kept, because a file system may write them in any
order. But a rename never loses the file; NameChange.settle() ensures that.

The content of files is in inodes.py.
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, NoReturn


class Place(NamedTuple):
    """A name in a directory, in use or not."""

    directory: "DirectoryNode"
    name: str

    def path(self) -> str:
        above = self.directory.place
        return f"{above.path()}/{self.name}" if above is not None else self.directory.lead + self.name

    def node(self) -> "Node | None":
        return self.directory.names.get(self.name)


@dataclass(eq=False, slots=True)
class Node:
    """A file or directory. Without hard links it has at most one current and one durable name."""

    modified_ms: int = 0
    place: Place | None = None
    durable_place: Place | None = None
    # The unsynced changes of its name, in order.
    changes: "list[NameChange]" = field(default_factory=list)


@dataclass(eq=False, slots=True)
class DirectoryNode(Node):
    """A directory: its names, and their unsynced changes."""

    names: dict[str, Node] = field(default_factory=dict)
    durable_names: dict[str, Node] = field(default_factory=dict)
    unsynced: "list[NameChange]" = field(default_factory=list)
    # The prefix of paths, set only for the root.
    lead: str = ""


@dataclass(eq=False, slots=True)
class NameChange:
    """A node got a name (no `old`), was renamed, or lost its name (no `new`)."""

    number: int
    node: Node
    old: Place | None
    new: Place | None
    # The node that had the new name before, and lost it.
    replaced: Node | None = None
    done: bool = False

    def settle(self) -> None:
        """Make this change durable, after the earlier changes without which a file would be lost.

        These include all earlier changes of the same file: if one became durable later, it would move the
        file back.
        """
        if self.done:
            return
        self.done = True
        self.node.changes.remove(self)
        self._settle_earlier(self.node.changes)
        if self.new is None:
            self._settle_removal()
        else:
            self._settle_name(self.new)

    def _settle_removal(self) -> None:
        assert self.old is not None, "a change needs an old or a new name"
        if isinstance(self.node, DirectoryNode):
            # The directory was empty when it was removed, so settle the moves out of it first.
            self._settle_earlier(self.node.unsynced)
        if self.old.directory.durable_names.get(self.old.name) is self.node:
            del self.old.directory.durable_names[self.old.name]
            self.node.durable_place = None

    def _settle_name(self, new: Place) -> None:
        if self.old is not None:
            self._settle_directory(new.directory)
        # Settle the earlier users of this name, or one that became durable later would take the name back.
        self._settle_earlier([change for change in new.directory.unsynced if new in (change.old, change.new)])
        if self.replaced is not None:
            self._settle_earlier(self.replaced.changes)
        occupant = new.directory.durable_names.get(new.name)
        if occupant is not None:
            # The occupant may have been moved away before.
            self._settle_earlier(occupant.changes)
            if isinstance(occupant, DirectoryNode):
                self._settle_earlier(occupant.unsynced)
            occupant = new.directory.durable_names.get(new.name)
        if occupant is not None:
            occupant.durable_place = None
        before = self.node.durable_place
        if before is not None:
            del before.directory.durable_names[before.name]
        new.directory.durable_names[new.name] = self.node
        self.node.durable_place = new

    def _settle_directory(self, directory: DirectoryNode) -> None:
        """Make the target directory of a move durable."""
        if directory.durable_place is None:
            self._settle_earlier(directory.changes)
        if directory.durable_place is not None:
            self._settle_directory(directory.durable_place.directory)

    def _settle_earlier(self, changes: "list[NameChange]") -> None:
        for change in list(changes):
            if change.number < self.number:
                change.settle()


class Names:
    """All directories, from the root. Errors are the same as on Linux.

    A leading slash is optional; paths in results have one if any path had one before.
    """

    def __init__(self) -> None:
        self.root = DirectoryNode()
        self._changes = 0
        self._unsynced: list[NameChange] = []

    def find(self, path: str) -> Node:
        """The node with this path."""
        node: Node = self.root
        for part in self.parts(path):
            if not isinstance(node, DirectoryNode):
                fail(errno.ENOTDIR, path)
            if part not in node.names:
                fail(errno.ENOENT, path)
            node = node.names[part]
        return node

    def parts(self, path: str) -> list[str]:
        if path.startswith("/"):
            self.root.lead = "/"
        return [part for part in path.split("/") if part]

    def directory(self, path: str) -> DirectoryNode:
        node = self.find(path)
        if not isinstance(node, DirectoryNode):
            fail(errno.ENOTDIR, path)
        return node

    def place(self, path: str) -> Place:
        """The directory of a path, which must exist, and the name in it."""
        above, slash, name = path.rstrip("/").rpartition("/")
        return Place(self.directory(above + slash), name)

    def add(self, place: Place, node: Node) -> None:
        self._change(node, None, place)

    def remove(self, place: Place) -> None:
        node = place.node()
        assert node is not None, place.path()
        self._change(node, place, None)

    def rename(self, old: Place, new: Place) -> None:
        """Rename, with the checks of Linux in its order. A node with the new name loses it."""
        node, occupant = old.node(), new.node()
        if node is None:
            fail(errno.ENOENT, old.path())
        if _is_within(new.directory, node):
            fail(errno.EINVAL, new.path())
        if occupant is not None and _is_within(old.directory, occupant):
            fail(errno.ENOTEMPTY, new.path())
        if node is occupant:
            return
        if occupant is not None:
            _need_replaceable(node, occupant, new)
        if isinstance(node, DirectoryNode) and old.directory is not new.directory:
            # Two such moves in the wrong order could nest two directories in each other.
            self._settle_all()
        self._change(node, old, new)

    def sync(self, directory: DirectoryNode) -> None:
        for change in directory.unsynced:
            change.settle()
        directory.unsynced = []
        self._unsynced = [change for change in self._unsynced if not change.done]

    def lose_power(self, rng: Random) -> list[str]:
        """Keep some unsynced changes. Return descriptions of the lost ones."""
        waiting = [change for change in self._unsynced if not change.done]
        mode = rng.choice(("all", "none", "first", "any", "any"))
        if mode == "none":
            kept = []
        elif mode == "first":
            kept = waiting[: rng.randint(0, len(waiting))]
        else:
            kept = [change for change in waiting if mode == "all" or rng.random() < 0.5]
        for change in kept:
            change.settle()
        lost = [_describe(change) for change in waiting if not change.done]
        self._unsynced = []
        _make_current(self.root)
        return lost

    def nodes(self) -> Iterator[tuple[str, Node]]:
        """All nodes with their paths, ordered by name."""
        return _below(self.root.lead, self.root)

    def _change(self, node: Node, old: Place | None, new: Place | None) -> None:
        self._changes += 1
        change = NameChange(self._changes, node, old, new)
        if old is not None:
            del old.directory.names[old.name]
            old.directory.unsynced.append(change)
        if new is not None:
            occupant = new.node()
            if occupant is not None:
                occupant.place = None
                change.replaced = occupant
            new.directory.names[new.name] = node
            if old is None or old.directory is not new.directory:
                new.directory.unsynced.append(change)
        node.place = new
        node.changes.append(change)
        self._unsynced.append(change)

    def _settle_all(self) -> None:
        for change in self._unsynced:
            change.settle()
        self._unsynced = []


def fail(number: int, path: str) -> NoReturn:
    """Raise an OSError as the operating system does."""
    raise OSError(number, os.strerror(number), path)


def _is_within(directory: DirectoryNode, node: Node) -> bool:
    """Whether a directory is this node or below it."""
    above: DirectoryNode | None = directory
    while above is not None and above is not node:
        above = above.place.directory if above.place is not None else None
    return above is node


def _need_replaceable(node: Node, occupant: Node, new: Place) -> None:
    if isinstance(node, DirectoryNode) and not isinstance(occupant, DirectoryNode):
        fail(errno.ENOTDIR, new.path())
    if isinstance(occupant, DirectoryNode):
        if not isinstance(node, DirectoryNode):
            fail(errno.EISDIR, new.path())
        if occupant.names:
            fail(errno.ENOTEMPTY, new.path())


def _describe(change: NameChange) -> str:
    old = change.old.path() if change.old is not None else "nothing"
    new = change.new.path() if change.new is not None else "nothing"
    return f"{old} -> {new}"


def _make_current(node: Node) -> None:
    """Make the durable state the current one."""
    node.place = node.durable_place
    node.changes = []
    if isinstance(node, DirectoryNode):
        node.names = dict(node.durable_names)
        node.unsynced = []
        for below in node.names.values():
            _make_current(below)


def _below(lead: str, directory: DirectoryNode) -> Iterator[tuple[str, Node]]:
    for name, node in sorted(directory.names.items()):
        yield lead + name, node
        if isinstance(node, DirectoryNode):
            yield from _below(f"{lead}{name}/", node)
