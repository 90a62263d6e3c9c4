"""One log directory: its lock, its identity, its checkpoints, and whether it still works.

What reads or writes waits for the disk and is for the executor: open_directory(), contents(), the write_*
and mark_* methods. Of these only one may be under way at a time. The rest belongs to the event loop. Of what
is in the directory, nothing is touched that is not this node's; logs are opened by recovery.py.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.storage.directory.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    OFFSET_CHECKPOINTS,
    RECOVERY_POINTS,
    START_OFFSETS,
    read_offsets,
    write_offsets,
)
from barnabas.storage.directory.clean_shutdown import (
    CLEAN_SHUTDOWN,
    CleanShutdown,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from barnabas.storage.directory.full_disk import FullDisk
from barnabas.storage.directory.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    WrongDirectory,
    check_owner,
    is_reserved,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.directory.partitions import DirectoryKind, PartitionDirectory, classify
from barnabas.storage.errors import CorruptFile, DirectoryOffline, StorageError
from barnabas.storage.files import TEMPORARY_SUFFIX, File, FileSystem

__all__ = [
    "Checkpoints",
    "Contents",
    "DirectoryInUse",
    "DirectoryKind",
    "LogDirectory",
    "PartitionDirectory",
    "open_directory",
]

LOCK: Final = ".lock"
# What the first records of the metadata log are made from; kafka-storage.sh writes it.
BOOTSTRAP: Final = "bootstrap.checkpoint"
_OWN_FILES: Final = frozenset((LOCK, META_PROPERTIES, CLEAN_SHUTDOWN, BOOTSTRAP, *OFFSET_CHECKPOINTS))


class DirectoryInUse(StorageError):
    """Another broker, of this program or of Kafka, works in the directory."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"log directory {directory} is in use: {LOCK} in it is locked by another broker; "
            "stop that one, or use another directory"
        )
        self.directory = directory


@value
class Contents:
    """What is in a log directory. Strangers are reported and left alone."""

    partitions: tuple[PartitionDirectory, ...]
    strangers: tuple[str, ...]


@value(kw_only=True)
class Checkpoints:
    """The offsets that were found when the directory was opened, and the files that could not be read.

    Logs do without them: recovery then starts at their beginning, and so does everything else.
    """

    recovery_points: dict[TopicPartition, int]
    # Without them nobody can tell what was flushed: then nothing may be cut that could have been.
    recovery_points_known: bool
    start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    cleaner_offsets: dict[TopicPartition, int]
    problems: tuple[CorruptFile, ...]


class LogDirectory:
    """A directory that this node holds the lock of."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        lock: File,
        *,
        meta: MetaProperties,
        checkpoints: Checkpoints,
        clean: CleanShutdown | None,
    ) -> None:
        assert meta.directory_id is not None, f"{path} has no id"
        self.fs: Final = fs
        self.path: Final = path
        self.meta: Final = meta
        self.id: Final[Uuid] = meta.directory_id
        self.checkpoints: Final = checkpoints
        # How the broker before this one stopped; None if it crashed, or if there was none.
        self.clean: Final = clean
        self.full: Final = FullDisk(path)
        self._lock = lock
        # Which partitions each checkpoint file may have a row of.
        self._rows: dict[str, frozenset[TopicPartition]] = {
            RECOVERY_POINTS: frozenset(checkpoints.recovery_points),
            START_OFFSETS: frozenset(checkpoints.start_offsets),
            HIGH_WATERMARKS: frozenset(checkpoints.high_watermarks),
            CLEANER_OFFSETS: frozenset(checkpoints.cleaner_offsets),
        }
        self._offline: str | None = None
        self._on_failure: list[Callable[[LogDirectory], None]] = []

    # Whether it works

    @property
    def offline(self) -> str | None:
        """Why the directory failed; None while it works."""
        return self._offline

    def check(self) -> None:
        if self._offline is not None:
            raise DirectoryOffline(self.path, self._offline)

    def on_failure(self, callback: Callable[["LogDirectory"], None]) -> None:
        """Have it called once, when the directory fails; at once, if it has failed already."""
        if self._offline is not None:
            callback(self)
        else:
            self._on_failure.append(callback)

    def fail(self, why: OSError | str) -> None:
        """Take the directory out of service. The first reason counts; there is no way back but a restart."""
        if self._offline is not None:
            return
        self._offline = str(why)
        for callback in self._on_failure:
            callback(self)

    # What is in it

    def contents(self) -> Contents:
        partitions: list[PartitionDirectory] = []
        strangers: list[str] = []
        for entry in self.fs.entries(self.path):
            found = classify(entry.name) if entry.is_directory else None
            if found is not None:
                partitions.append(found)
            elif entry.is_directory or entry.name.removesuffix(TEMPORARY_SUFFIX) not in _OWN_FILES:
                strangers.append(entry.name)
        return Contents(tuple(partitions), tuple(strangers))

    def write_recovery_points(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._write_offsets(RECOVERY_POINTS, offsets)

    def write_start_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._write_offsets(START_OFFSETS, offsets)

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._write_offsets(HIGH_WATERMARKS, offsets)

    def write_cleaner_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._write_offsets(CLEANER_OFFSETS, offsets)

    def _write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        # Both until it is done: if it fails, the file is the old one or the new one.
        self._rows[name] |= frozenset(offsets)
        write_offsets(self.fs, f"{self.path}/{name}", offsets)
        self._rows[name] = frozenset(offsets)

    def may_have_row(self, tp: TopicPartition) -> bool:
        """Whether a checkpoint on the disk may tell something of this partition."""
        return any(tp in rows for rows in self._rows.values())

    # From start to stop

    def mark_in_use(self) -> None:
        """Before anything is appended or made: from here on a power loss is not a clean stop."""
        remove_clean_shutdown(self.fs, self.path)

    def mark_clean(self, broker_epoch: int) -> None:
        """When every log is flushed and closed and every checkpoint written."""
        self.check()
        write_clean_shutdown(self.fs, self.path, broker_epoch)

    def close(self) -> None:
        """Give up the lock. Its file stays: whoever removed it could remove the next owner's."""
        self._lock.close()


def open_directory(
    fs: FileSystem, path: str, *, cluster_id: str, node_id: int, new_id: Uuid, now_ms: int
) -> LogDirectory:
    """Lock the directory and read what it says of itself. A new one is made and gets the id `new_id`.

    DirectoryInUse, WrongDirectory or CorruptFile if it cannot be had, and OSError if the disk fails.
    """
    assert path[:1] == "/" != path[-1:], f"{path!r} is not an absolute path"
    assert not is_reserved(new_id), f"{new_id.hex()} cannot be a directory's id"
    fs.make_directory(path)
    try:
        lock = fs.lock(f"{path}/{LOCK}")
    except BlockingIOError:
        raise DirectoryInUse(path) from None
    try:
        meta = read_meta_properties(fs, path)
        if meta is None:
            meta = _format(fs, path, cluster_id=cluster_id, node_id=node_id, new_id=new_id, now_ms=now_ms)
        check_owner(path, meta, cluster_id=cluster_id, node_id=node_id)
        if meta.directory_id is None:
            meta = replace(meta, directory_id=new_id)
            write_meta_properties(fs, path, meta, now_ms=now_ms)
        checkpoints, clean = _read_checkpoints(fs, path), read_clean_shutdown(fs, path)
        return LogDirectory(fs, path, lock, meta=meta, checkpoints=checkpoints, clean=clean)
    except BaseException:
        lock.close()
        raise


def _format(
    fs: FileSystem, path: str, *, cluster_id: str, node_id: int, new_id: Uuid, now_ms: int
) -> MetaProperties:
    for entry in fs.entries(path):
        if entry.is_directory and classify(entry.name) is not None:
            # Somebody's data whose owner cannot be told. It is not made ours by writing our name on it.
            raise WrongDirectory(path, f"holds {entry.name}, but no {META_PROPERTIES}")
    _sync_above(fs, path)
    meta = MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=new_id)
    # From the start, so that later its absence means that it was lost.
    write_offsets(fs, f"{path}/{RECOVERY_POINTS}", {})
    write_meta_properties(fs, path, meta, now_ms=now_ms)
    return meta


def _sync_above(fs: FileSystem, path: str) -> None:
    """See to it that the directory can be found after a power loss, however many above it are new."""
    above = path
    while above:
        above = above.rpartition("/")[0]
        # A directory that may not be read was not made by us.
        with suppress(PermissionError):
            fs.sync_directory(above or "/")


def _read_checkpoints(fs: FileSystem, path: str) -> Checkpoints:
    problems: list[CorruptFile] = []

    def read(name: str) -> dict[TopicPartition, int] | None:
        try:
            return read_offsets(fs, f"{path}/{name}")
        except CorruptFile as problem:
            problems.append(problem)
            return None

    recovery_points = read(RECOVERY_POINTS)
    return Checkpoints(
        recovery_points=recovery_points or {},
        recovery_points_known=recovery_points is not None,
        start_offsets=read(START_OFFSETS) or {},
        high_watermarks=read(HIGH_WATERMARKS) or {},
        cleaner_offsets=read(CLEANER_OFFSETS) or {},
        problems=tuple(problems),
    )
