"""Without faults the simulated disk behaves as a real one, and a power loss loses no synced data."""

import errno
import tempfile
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.files import File, FileSystem, NotCached

# Names for files and for directories.
PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/d", "d/d/a", "e", "e/d", "a/b", ""])
POSITIONS = st.integers(-1, 10) | st.sampled_from([511, 4096, 5000])
CHUNKS = st.lists(st.binary(max_size=8) | st.sampled_from([bytes(600), b"x" * 4097]), max_size=3)
HANDLES = st.integers(0, 5)


def operations() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    names = st.one_of(
        st.tuples(st.sampled_from(["open", "create", "create"]), PATHS),
        st.tuples(
            st.sampled_from(
                ["read", "entries", "make_directory", "remove_directory", "remove", "sync_directory"]
            ),
            PATHS.filter(bool),
        ),
        st.tuples(st.just("rename"), PATHS.filter(bool), PATHS.filter(bool)),
        st.tuples(st.just("lock"), PATHS),
        st.tuples(st.just("unlock"), HANDLES),
    )
    files = st.one_of(
        st.tuples(st.just("file.write"), HANDLES, POSITIONS, CHUNKS),
        st.tuples(st.sampled_from(["file.read", "file.read_cached", "range"]), HANDLES, POSITIONS, POSITIONS),
        st.tuples(st.just("file.truncate"), HANDLES, POSITIONS),
        st.tuples(st.sampled_from(["file.size", "file.sync", "file.close"]), HANDLES),
        st.tuples(st.just("file.rename"), HANDLES, PATHS.filter(bool)),
    )
    return st.lists(names | files, max_size=40)


class Side:
    """One file system and its open files."""

    def __init__(self, fs: FileSystem, root: str) -> None:
        self.fs = fs
        self.root = root
        self.files: list[File] = []
        self.locks: list[File] = []

    def path(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def run(self, operation: tuple[Any, ...]) -> object:
        """The result, or the kind of the error."""
        try:
            return self._run(*operation)
        except OSError as error:
            return type(error), error.errno

    def _run(self, name: str, *arguments: Any) -> object:
        if name in ("open", "create"):
            self.files.append(self.fs.open(self.path(arguments[0]), create=name == "create"))
            return self.files[-1].path.removeprefix(self.root)
        if name == "lock":
            self.locks.append(self.fs.lock(self.path(arguments[0])))
            return None
        if name == "unlock":
            if self.locks:
                self.locks.pop(arguments[0] % len(self.locks)).close()
            return None
        if name == "entries":
            return [entry[:3] for entry in self.fs.entries(self.path(arguments[0]))]
        if name == "range" or name.startswith("file."):
            return self._run_on_file(name, *arguments)
        return getattr(self.fs, name)(*map(self.path, arguments))

    def _run_on_file(self, name: str, handle: int, *arguments: Any) -> object:
        if not self.files:
            return None
        file = self.files[handle % len(self.files)]
        if name == "range":
            return self.fs.range(file, arguments[0], abs(arguments[1])).read()
        if name == "file.read":
            return file.read(arguments[0], abs(arguments[1]))
        if name == "file.read_cached":
            return read_cached(file, arguments[0], abs(arguments[1]))
        if name == "file.rename":
            file.rename(self.path(arguments[0]))
            return file.path.removeprefix(self.root)
        method: Callable[..., object] = getattr(file, name[5:])
        return method(*arguments)


def read_cached(file: File, at: int, size: int) -> bytes:
    """Read as all callers do, with a retry: a hole, for example, is not cached before its first read."""
    while True:
        try:
            return file.read_cached(at, size)
        except NotCached as cold:
            cold.warm()


def contents(side: Side, directory: str = "") -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for entry in side.fs.entries(side.path(directory)):
        path = f"{directory}/{entry.name}".lstrip("/")
        found[path] = None if entry.is_directory else side.fs.read(side.path(path))
        if entry.is_directory:
            found |= contents(side, path)
    return found


@settings(max_examples=300)
@given(operations())
def test_without_faults_it_behaves_as_a_real_file_system(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        root = f"{parent}/root"
        real, simulated = Side(DiskFileSystem(open_files_max=1), root), Side(SimDisk(Random(1)), root)
        real.fs.make_directory(root)
        simulated.fs.make_directory(root)

        for step in steps:
            expected = simulated.run(step)
            if isinstance(expected, tuple) and expected[1] == errno.ESTALE:
                # The port forbids this use, and a real disk need not detect it.
                continue
            # Opening another file closes the descriptor, so that a removed file cannot be read any more.
            real.fs.open(f"{parent}/other", create=True)

            assert real.run(step) == expected, step

        assert contents(real) == contents(simulated)
        for file in real.files + real.locks:
            file.close()


class Expectation:
    """The state that must survive a power loss, by the rules of the port alone."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.contents: dict[int, bytes] = {}
        self.dirty: set[int] = set()
        self.touched: set[str] = set()
        # Files that had a durable name and have since only been renamed: they must have some name.
        self.anchored: set[int] = set()

    def drop(self, path: str) -> None:
        number = self.names.pop(path, None)
        self.touched.add(path)
        if number is not None:
            self.anchored.discard(number)

    def rename(self, old: str, new: str) -> None:
        number = self.names[old]
        was_anchored = number in self.anchored
        self.drop(new)
        self.drop(old)
        self.names[new] = number
        if was_anchored:
            self.anchored.add(number)

    def sync_directory(self, directory: str) -> None:
        self.touched = {path for path in self.touched if not path.startswith(directory + "/")}
        self.anchored |= {number for path, number in self.names.items() if path not in self.touched}


FILES = st.sampled_from(["d/a", "d/b", "d/c", "e/a", "e/b"])
SAFE_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["write", "write", "truncate", "sync", "sync", "remove"]),
            FILES,
            st.integers(0, 2000),
            st.integers(0, 2000),
        ),
        st.tuples(st.just("rename"), FILES, FILES),
        st.tuples(st.just("sync_directory"), st.sampled_from("de")),
    ),
    max_size=40,
)


def run_safe_step(disk: SimDisk, expected: Expectation, name: str, path: str, *arguments: Any) -> None:
    if name == "sync_directory":
        disk.sync_directory(path)
        expected.sync_directory(path)
        return
    if path not in expected.names:
        if name != "write":
            return
        disk.open(path, create=True)
        number = len(expected.contents)
        expected.touched.add(path)
        expected.names[path] = number
        expected.contents[number] = b""
    number = expected.names[path]
    if name == "remove":
        disk.remove(path)
        expected.drop(path)
    elif name == "rename" and path != arguments[0]:
        disk.rename(path, arguments[0])
        expected.rename(path, arguments[0])
    elif name in ("write", "truncate", "sync"):
        change_content(disk.open(path), expected, number, name, *arguments)


def change_content(file: File, expected: Expectation, number: int, name: str, at: int, size: int) -> None:
    before = expected.contents[number]
    if name == "sync":
        file.sync()
        expected.dirty.discard(number)
        return
    expected.dirty.add(number)
    if name == "write":
        # Different data for every file and every write.
        data = Random(f"{number} {at} {size}").randbytes(size + 8)
        file.write(at, [data])
        expected.contents[number] = before[:at].ljust(at, b"\0") + data + before[at + len(data) :]
    else:
        file.truncate(at)
        expected.contents[number] = before[:at].ljust(at, b"\0")


def test_a_replaced_name_does_not_reappear() -> None:
    disk = SimDisk(Random(0))
    disk.make_directory("d")
    disk.make_directory("e")
    disk.sync_directory("")
    for path in ("d/a", "d/c"):
        disk.open(path, create=True).write(0, [path.encode()])
    disk.rename("d/a", "d/c")
    disk.rename("d/c", "e/a")

    disk.sync_directory("e")
    disk.sync_directory("d")
    disk.crash()

    assert [path for path in disk.tree() if path != "e/a"] == []


def test_a_renamed_file_keeps_its_new_name_when_another_takes_the_old_one() -> None:
    disk = SimDisk(Random(0))
    disk.make_directory("d")
    disk.make_directory("e")
    disk.sync_directory("")
    for path in ("d/a", "e/a"):
        disk.open(path, create=True).write(0, [path.encode()])
    disk.rename("d/a", "d/b")
    disk.open("d/a", create=True)
    disk.rename("e/a", "d/a")

    disk.sync_directory("e")
    disk.sync_directory("d")
    disk.crash()

    assert sorted(disk.tree()) == ["d/a", "d/b"]


@settings(max_examples=300)
@given(SAFE_STEPS, st.integers(0, 10_000))
def test_synced_data_survives_any_power_loss(steps: list[tuple[Any, ...]], seed: int) -> None:
    disk, expected = SimDisk(Random(seed)), Expectation()
    disk.make_directory("d")
    disk.make_directory("e")
    disk.sync_directory("")
    for step in steps:
        run_safe_step(disk, expected, *step)

    lost = disk.crash()

    found = {path: disk.read(path) for path in disk.tree()}
    for path in {"d/a", "d/b", "d/c", "e/a", "e/b"} - expected.touched:
        number = expected.names.get(path)
        assert (path in found) == (number is not None), lost
        if number is not None and number not in expected.dirty:
            assert found[path] == expected.contents[number], lost
    for number in expected.anchored - expected.dirty:
        assert expected.contents[number] in found.values(), lost


@settings(max_examples=200)
@given(operations(), st.integers(0, 10_000), st.integers(1, 40))
def test_a_disk_is_consistent_after_any_power_loss(
    steps: list[tuple[Any, ...]], seed: int, crash_after: int
) -> None:
    disk = SimDisk(Random(seed))
    side = Side(disk, "root")
    disk.make_directory("root")
    disk.crash_after(crash_after)
    with suppress(PowerLoss):
        for step in steps:
            side.run(step)

    twin = disk.branch(Random(seed))
    lost, twin_lost = disk.crash(Random(seed)), twin.crash(Random(seed))

    assert (lost, disk.tree()) == (twin_lost, twin.tree())
    assert disk.used == sum(disk.tree().values())
    # Everything left is durable: another power loss loses nothing.
    left = disk.tree()
    assert disk.crash() == "nothing was lost"
    assert disk.tree() == left
    for path in left:
        disk.open(path).write(0, [b"x"])
        disk.remove(path)
    assert disk.tree() == {}
