"""One log directory: its lock, its identity, its checkpoints, and whether it is online.

open_directory(), contents() and the write_* and mark_* methods block on the disk: call them in the executor,
one at a time. The rest belongs to the event loop. Entries that are not this node's are never touched.
recovery.py opens the logs.
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
# The initial records of the metadata log; kafka-storage.sh writes this file.
BOOTSTRAP: Final = "bootstrap.checkpoint"
_OWN_FILES: Final = frozenset((LOCK, META_PROPERTIES, CLEAN_SHUTDOWN, BOOTSTRAP, *OFFSET_CHECKPOINTS))


class DirectoryInUse(StorageError):
    """Another broker, Barnabas or Kafka, has locked the directory."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"log directory {directory} is in use: another broker has locked {LOCK}; "
            "stop that broker or use another directory"
        )
        self.directory = directory


@value
class Contents:
    """The entries of a log directory. Unknown ones (`strangers`) are reported and left untouched."""

    partitions: tuple[PartitionDirectory, ...]
    strangers: tuple[str, ...]


@value(kw_only=True)
class Checkpoints:
    """The offsets read when the directory was opened, and the files that could not be read.

    A log without an entry is recovered from its beginning.
    """

    recovery_points: dict[TopicPartition, int]
    # If false, it is unknown what was flushed, and recovery must not truncate anything that may have been.
    recovery_points_known: bool
    start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    cleaner_offsets: dict[TopicPartition, int]
    problems: tuple[CorruptFile, ...]


class LogDirectory:
    """A directory locked by this node."""

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
        # The previous broker's clean shutdown; None if it crashed, or if there was none.
        self.clean: Final = clean
        self.full: Final = FullDisk(path)
        self._lock = lock
        # The partitions that may have a row in each checkpoint file.
        self._rows: dict[str, frozenset[TopicPartition]] = {
            RECOVERY_POINTS: frozenset(checkpoints.recovery_points),
            START_OFFSETS: frozenset(checkpoints.start_offsets),
            HIGH_WATERMARKS: frozenset(checkpoints.high_watermarks),
            CLEANER_OFFSETS: frozenset(checkpoints.cleaner_offsets),
        }
        self._offline: str | None = None
        self._on_failure: list[Callable[[LogDirectory], None]] = []

    # State

    @property
    def offline(self) -> str | None:
        """Why the directory failed; None while it works."""
        return self._offline

    def check(self) -> None:
        if self._offline is not None:
            raise DirectoryOffline(self.path, self._offline)

    def on_failure(self, callback: Callable[["LogDirectory"], None]) -> None:
        """Call back once when the directory fails, or at once if it has failed already."""
        if self._offline is not None:
            callback(self)
        else:
            self._on_failure.append(callback)

    def fail(self, why: OSError | str) -> None:
        """Take the directory offline until a restart. The first reason is kept."""
        if self._offline is not None:
            return
        self._offline = str(why)
        for callback in self._on_failure:
            callback(self)

    # Contents

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
        # Old and new rows until the write succeeds: after a failure the file may be either.
        self._rows[name] |= frozenset(offsets)
        write_offsets(self.fs, f"{self.path}/{name}", offsets)
        self._rows[name] = frozenset(offsets)

    def may_have_row(self, tp: TopicPartition) -> bool:
        """Whether a checkpoint on the disk may have a row for this partition."""
        return any(tp in rows for rows in self._rows.values())

    # Start and stop

    def mark_in_use(self) -> None:
        """Remove the clean shutdown marker. Call this before anything is appended or created."""
        remove_clean_shutdown(self.fs, self.path)

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean shutdown marker, after all logs are closed and all checkpoints written."""
        self.check()
        write_clean_shutdown(self.fs, self.path, broker_epoch)

    def close(self) -> None:
        """Release the lock. Its file stays: removing it could remove the file of the next owner."""
        self._lock.close()


def open_directory(
    fs: FileSystem, path: str, *, cluster_id: str, node_id: int, new_id: Uuid, now_ms: int
) -> LogDirectory:
    """Lock a directory and read its identity and checkpoints. Create it with the id `new_id` if it is new.

    Raises DirectoryInUse, WrongDirectory or CorruptFile, and OSError if the disk fails.
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
            # The owner of this data is unknown. Writing our own meta.properties would hide that.
            raise WrongDirectory(path, f"holds {entry.name}, but no {META_PROPERTIES}")
    _sync_above(fs, path)
    meta = MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=new_id)
    # Created at once, so that a missing file later means that it was lost.
    write_offsets(fs, f"{path}/{RECOVERY_POINTS}", {})
    write_meta_properties(fs, path, meta, now_ms=now_ms)
    return meta


def _sync_above(fs: FileSystem, path: str) -> None:
    """Sync all parent directories, which may be new, so that the directory survives a power loss."""
    above = path
    while above:
        above = above.rpartition("/")[0]
        # A parent that we may not read was not created by us.
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
