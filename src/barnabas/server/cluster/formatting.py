"""Read the identity of log directories, and format new ones with an identity and bootstrap records.

A directory is formatted once it has meta.properties, which is written last and atomically. Several
directories are formatted together or not at all, as far as their disks allow. All functions block on the
disk: they are for tools, and for the time before a broker starts.
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

# In the order in which they are written; with the last one the directory is formatted.
_WRITTEN: Final = (BOOTSTRAP, RECOVERY_POINTS, META_PROPERTIES)
_UNFINISHED: Final = (PARTIAL, TEMPORARY_SUFFIX)


class NotFormatted(BarnabasError):
    """No log directory is formatted, or the one of the metadata log is not."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(
            f"{', '.join(paths)}: not formatted; "
            "run `barnabas storage format -t $(barnabas storage random-uuid) -c CONFIG` once"
        )
        self.paths = tuple(paths)


class MetadataMissing(BarnabasError):
    """Some directories are formatted, but the one of the metadata log is not."""

    def __init__(self, path: str, formatted: Iterable[str]) -> None:
        super().__init__(
            f"{path}: not formatted, although {', '.join(formatted)} is. This directory should hold the "
            "metadata log: check that its disk is mounted and that log.dirs has the right path"
        )


class AlreadyFormatted(BarnabasError):
    """The directory is formatted already."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"Log directory {path} is already formatted. Use --ignore-formatted to ignore this directory "
            "and format the others."
        )


class Survey(NamedTuple):
    """The state of some directories, in the order of their paths."""

    formatted: dict[str, MetaProperties]
    empty: list[str]
    failed: dict[str, OSError | CorruptFile]


def survey(fs: FileSystem, paths: Iterable[str]) -> Survey:
    """Read the identity of each directory. A missing one counts as empty: formatting creates it."""
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
    """All directories of a node. The metadata directory is first, because others can be added later."""
    return list(dict.fromkeys((settings.metadata_log_dir, *settings.log_dirs)))


def read_identity(fs: FileSystem, paths: Sequence[str]) -> MetaProperties | None:
    """The identity in the log directories, which must agree; None if none is formatted."""
    found = {path: meta for path in paths if (meta := read_meta_properties(fs, path)) is not None}
    if not found:
        return None
    check_together(found)
    return next(iter(found.values()))


def identity_of(fs: FileSystem, settings: BrokerSettings) -> MetaProperties | None:
    """The identity of this node in its directories; None if none is formatted.

    If any is formatted, the metadata directory must be, too. A failed data directory does not prevent a
    start: the broker runs without it.
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
    """DirectoryInUse if another broker uses the directory now. One may still start right after this."""
    _lock(fs, path)()


def metadata_lock(fs: FileSystem, settings: BrokerSettings) -> AbstractContextManager[object]:
    """Lock the metadata directory, unless it is also a log directory: LogManager locks those."""
    if settings.metadata_log_dir in settings.log_dirs:
        return nullcontext()
    lock = ExitStack()
    lock.callback(_lock(fs, settings.metadata_log_dir))
    return lock


def new_id(rng: Random) -> Uuid:
    """A random id that is not reserved and, for command lines, does not start with a dash."""
    while True:
        fresh = rng.randbytes(16)
        if fresh[0] >> 2 != 62 and any(fresh[:15]):
            return Uuid(fresh)


def new_cluster_id(rng: Random) -> str:
    return format_uuid(new_id(rng))


def format_storage(
    fs: FileSystem, settings: BrokerSettings, *, cluster_id: str, rng: Random, now_ms: int
) -> list[str]:
    """Format the unformatted directories, for a cluster at the latest level. Return them."""
    empty = [path for path in directories_of(settings) if read_meta_properties(fs, path) is None]
    identities = identities_for(empty, cluster_id=cluster_id, node_id=settings.node_id, rng=rng)
    format_directories(fs, identities, bootstrap_records(), now_ms=now_ms)
    return empty


def identities_for(
    paths: Iterable[str], *, cluster_id: str, node_id: int, rng: Random
) -> dict[str, MetaProperties]:
    """The same cluster and node id for all directories, and a directory id for each."""
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
    """Format all directories or none: if one fails, the written files are removed.

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
                # Written from the start, so that its absence later means that it was lost.
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
            # Partition data of an unknown owner: formatting must not claim it.
            raise WrongDirectory(path, f"holds {entry.name}, but no {META_PROPERTIES}")


def _sync_above(fs: FileSystem, path: str) -> None:
    """Sync all parent directories, so that a new directory survives a power loss."""
    above = path
    while above:
        above = above.rpartition("/")[0]
        # A directory that we may not read was not created by us.
        with suppress(PermissionError):
            fs.sync_directory(above or "/")


def _take_back(fs: FileSystem, path: str) -> None:
    # In reverse order, so that after a failed removal the directory is either formatted or unformatted.
    for name in reversed(_WRITTEN):
        for suffix in ("", *_UNFINISHED):
            with suppress(OSError):
                fs.remove(f"{path}/{name}{suffix}")
