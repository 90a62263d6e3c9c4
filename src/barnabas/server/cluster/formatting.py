"""Whose log directories are: reading it, giving new ones their identity, and the cluster its first records.

A directory is formatted from the moment that it has meta.properties, which is written last and in one piece.
Several are formatted together or not at all, as far as their disks let us. Everything here waits for the
disk: it is for tools, and for the time before a broker starts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from random import Random
from typing import Final, NamedTuple

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import Uuid, format_uuid
from barnabas.controller.bootstrap import bootstrap_records
from barnabas.raft.snapshots import BOOTSTRAP, PARTIAL, write_bootstrap
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.directory.checkpoints import RECOVERY_POINTS, write_offsets
from barnabas.storage.directory.log_directory import LOCK, DirectoryInUse
from barnabas.storage.directory.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    WrongDirectory,
    check_together,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.directory.partitions import classify
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import TEMPORARY_SUFFIX, FileSystem

# In the order in which they are written; the last one makes the directory a formatted one.
_WRITTEN: Final = (BOOTSTRAP, RECOVERY_POINTS, META_PROPERTIES)
_UNFINISHED: Final = (PARTIAL, TEMPORARY_SUFFIX)


class NotFormatted(BarnabasError):
    """No log directory says whose it is, or the one with the metadata does not."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(
            f"{', '.join(paths)}: not formatted; "
            "run `barnabas storage format -t $(barnabas storage random-uuid) -c CONFIG` once"
        )
        self.paths = tuple(paths)


class MetadataMissing(BarnabasError):
    """Some directories have an owner, and the one that the metadata log should be in has none."""

    def __init__(self, path: str, formatted: Iterable[str]) -> None:
        super().__init__(
            f"{path}: not formatted, although {', '.join(formatted)} is. This directory should hold the "
            "metadata log: check that its disk is mounted and that log.dirs has the right path"
        )


class AlreadyFormatted(BarnabasError):
    """It has an owner, and formatting would not change that."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"Log directory {path} is already formatted. Use --ignore-formatted to ignore this directory "
            "and format the others."
        )


class Survey(NamedTuple):
    """What some directories say of themselves, in the order of their paths."""

    formatted: dict[str, MetaProperties]
    empty: list[str]
    failed: dict[str, OSError | CorruptFile]


def survey(fs: FileSystem, paths: Iterable[str]) -> Survey:
    """Look at each. One that is not there is empty: formatting makes it."""
    found = Survey({}, [], {})
    for path in sorted(set(paths)):
        try:
            meta = read_meta_properties(fs, path)
        except (OSError, CorruptFile) as error:
            found.failed[path] = error
            continue
        if meta is None:
            found.empty.append(path)
        else:
            found.formatted[path] = meta
    return found


def directories_of(settings: BrokerSettings) -> list[str]:
    """Every directory of a node. The one with the metadata is the first: others can come later."""
    return list(dict.fromkeys((settings.metadata_log_dir, *settings.log_dirs)))


def read_identity(fs: FileSystem, paths: Sequence[str]) -> MetaProperties | None:
    """What the log directories say of themselves; None if none was formatted. They must agree."""
    found = {path: meta for path in paths if (meta := read_meta_properties(fs, path)) is not None}
    if not found:
        return None
    check_together(found)
    return next(iter(found.values()))


def identity_of(fs: FileSystem, settings: BrokerSettings) -> MetaProperties | None:
    """Who this node is by its directories; None if none was formatted.

    The one with the metadata log must be among those that were, if any was. A broken data directory is no
    reason not to start: the broker does without it.
    """
    found = survey(fs, directories_of(settings))
    problem = found.failed.get(settings.metadata_log_dir)
    if problem is not None:
        raise problem
    if not found.formatted:
        return None
    if settings.metadata_log_dir not in found.formatted:
        raise MetadataMissing(settings.metadata_log_dir, found.formatted)
    check_together(found.formatted)
    return found.formatted[settings.metadata_log_dir]


def check_unused(fs: FileSystem, path: str) -> None:
    """DirectoryInUse if another broker works there. It says nothing of a moment later."""
    _lock(fs, path)()


def metadata_lock(fs: FileSystem, settings: BrokerSettings) -> AbstractContextManager[object]:
    """Hold the directory of the metadata, if it is for nothing else. The log holds those with data."""
    if settings.metadata_log_dir in settings.log_dirs:
        return nullcontext()
    lock = ExitStack()
    lock.callback(_lock(fs, settings.metadata_log_dir))
    return lock


def new_id(rng: Random) -> Uuid:
    """An id that nobody else has, and that a command line does not take for an option."""
    while True:
        fresh = rng.randbytes(16)
        if fresh[0] >> 2 != 62 and any(fresh[:15]):
            return Uuid(fresh)


def new_cluster_id(rng: Random) -> str:
    return format_uuid(new_id(rng))


def format_storage(
    fs: FileSystem, settings: BrokerSettings, *, cluster_id: str, rng: Random, now_ms: int
) -> list[str]:
    """Format the directories that are not yet, for a cluster at the latest level. Return which."""
    empty = [path for path in directories_of(settings) if read_meta_properties(fs, path) is None]
    identities = identities_for(empty, cluster_id=cluster_id, node_id=settings.node_id, rng=rng)
    format_directories(fs, identities, bootstrap_records(), now_ms=now_ms)
    return empty


def identities_for(
    paths: Iterable[str], *, cluster_id: str, node_id: int, rng: Random
) -> dict[str, MetaProperties]:
    """One owner for all of them, and an id for each."""
    return {
        path: MetaProperties(cluster_id=cluster_id, node_id=node_id, directory_id=new_id(rng))
        for path in paths
    }


def format_directories(
    fs: FileSystem,
    identities: Mapping[str, MetaProperties],
    bootstrap: Sequence[object],
    *,
    now_ms: int,
    on_begin: Callable[[str], None] = lambda path: None,
) -> None:
    """Format all of them, or none: what was written is taken back if one fails.

    DirectoryInUse, AlreadyFormatted or WrongDirectory before anything is written, OSError if a disk fails.
    """
    begun: list[str] = []
    with ExitStack() as locks:
        for path in identities:
            fs.make_directory(path)
            locks.callback(_lock(fs, path))
            _check_free(fs, path)
        try:
            for path, meta in identities.items():
                on_begin(path)
                begun.append(path)
                write_bootstrap(fs, path, bootstrap, now_ms=now_ms)
                # From the start, so that later its absence means that it was lost.
                write_offsets(fs, f"{path}/{RECOVERY_POINTS}", {})
                write_meta_properties(fs, path, meta, now_ms=now_ms)
                _sync_above(fs, path)
        except BaseException:
            for path in begun:
                _take_back(fs, path)
            raise


def _lock(fs: FileSystem, path: str) -> Callable[[], None]:
    try:
        return fs.lock(f"{path}/{LOCK}").close
    except BlockingIOError:
        raise DirectoryInUse(path) from None


def _check_free(fs: FileSystem, path: str) -> None:
    if read_meta_properties(fs, path) is not None:
        raise AlreadyFormatted(path)
    for entry in fs.entries(path):
        if entry.is_directory and classify(entry.name) is not None:
            # Somebody's data whose owner cannot be told. It is not made ours by writing our name on it.
            raise WrongDirectory(path, f"holds {entry.name}, but no {META_PROPERTIES}")


def _sync_above(fs: FileSystem, path: str) -> None:
    """See to it that the directory can be found after a power loss, however many above it are new."""
    above = path
    while above:
        above = above.rpartition("/")[0]
        # A directory that may not be read was not made by us.
        with suppress(PermissionError):
            fs.sync_directory(above or "/")


def _take_back(fs: FileSystem, path: str) -> None:
    # The last one first. What cannot be removed leaves a directory that says whose it is, or is unformatted.
    for name in reversed(_WRITTEN):
        for suffix in ("", *_UNFINISHED):
            with suppress(OSError):
                fs.remove(f"{path}/{name}{suffix}")
