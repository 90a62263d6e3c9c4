"""meta.properties: the owner of a log directory. Cluster, node and the directory's own id, written once.

It reveals a directory that is mounted in the wrong place before anything in it is touched.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base import properties
from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid, format_uuid, parse_uuid
from barnabas.base.values import value
from barnabas.storage.errors import CorruptFile, StorageError
from barnabas.storage.files import FileSystem, write_atomically

META_PROPERTIES: Final = "meta.properties"

_VERSION: Final = "1"
# Kafka reserves these ids: they mean "unassigned", "migrating" and "lost".
_RESERVED_IDS: Final = 100
_NODE_ID_MAX: Final = 2**31 - 1
# Replaces node.id in a file of a ZooKeeper cluster, which may lack the version.
_ZOOKEEPER_KEY: Final = "broker.id"
_REMEDY: Final = "restore the file from a backup, or recreate it with version=1, cluster.id and node.id"


class WrongDirectory(StorageError):
    """A log directory of another node, or in a format that this version cannot read."""

    def __init__(self, directory: str, what: str) -> None:
        super().__init__(f"log directory {directory} {what}")
        self.directory = directory


@value(kw_only=True)
class MetaProperties:
    """The content of the file. Directories from before Kafka 3.7 may lack an id."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None
    unknown: tuple[tuple[str, str], ...] = ()


def read_meta_properties(fs: FileSystem, directory: str) -> MetaProperties | None:
    """None if the directory was never formatted."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return None
    try:
        return _parse(properties.parse(content), directory, path)
    except Malformed as error:
        raise CorruptFile(path, str(error)) from None


def write_meta_properties(fs: FileSystem, directory: str, meta: MetaProperties, *, now_ms: int) -> None:
    """Replace the file, with the keys in Kafka's order."""
    entries = [("node.id", str(meta.node_id))]
    if meta.directory_id is not None:
        entries.append(("directory.id", format_uuid(meta.directory_id)))
    entries += [("version", _VERSION), ("cluster.id", meta.cluster_id), *meta.unknown]
    write_atomically(fs, f"{directory}/{META_PROPERTIES}", properties.render(entries, now_ms=now_ms))


def check_owner(directory: str, meta: MetaProperties, *, cluster_id: str, node_id: int) -> None:
    """WrongDirectory unless this node of this cluster formatted the directory."""
    if meta.cluster_id != cluster_id:
        raise WrongDirectory(
            directory, f"belongs to cluster {meta.cluster_id}, not to {cluster_id}; correct log.dirs"
        )
    if meta.node_id != node_id:
        raise WrongDirectory(
            directory, f"belongs to node {meta.node_id}, not to node {node_id}; correct node.id or log.dirs"
        )


def check_together(found: Mapping[str, MetaProperties]) -> None:
    """WrongDirectory if these directories (path to content) cannot belong to one node."""
    first: tuple[str, MetaProperties] | None = None
    seen: dict[Uuid, str] = {}
    for directory, meta in found.items():
        if first is None:
            first = directory, meta
        if (meta.cluster_id, meta.node_id) != (first[1].cluster_id, first[1].node_id):
            raise WrongDirectory(
                directory,
                f"belongs to {_owner(meta)}, but {first[0]} belongs to {_owner(first[1])}; "
                "log.dirs must name directories of one node only",
            )
        if meta.directory_id is None:
            continue
        if meta.directory_id in seen:
            same = f"has the id {format_uuid(meta.directory_id)}, but so has {seen[meta.directory_id]}"
            raise WrongDirectory(directory, f"{same}: one is a copy of the other; remove it from log.dirs")
        seen[meta.directory_id] = directory


def _owner(meta: MetaProperties) -> str:
    return f"node {meta.node_id} in cluster {meta.cluster_id}"


def is_reserved(directory_id: Uuid) -> bool:
    high, low = directory_id[:8], directory_id[8:]
    return not any(high) and int.from_bytes(low, "big", signed=True) < _RESERVED_IDS


def _parse(fields: dict[str, str], directory: str, path: str) -> MetaProperties:
    if not fields:
        raise CorruptFile(path, f"the file is empty; {_REMEDY}")
    version = fields.pop("version", "0" if _ZOOKEEPER_KEY in fields else "").strip()
    if version == "0":
        raise WrongDirectory(
            directory,
            f"has {META_PROPERTIES} of version 0, from a cluster with ZooKeeper; "
            "migrate the cluster to KRaft first, with Kafka 3.9",
        )
    if not version:
        raise CorruptFile(path, f"version is missing; {_REMEDY}")
    if version != _VERSION:
        raise CorruptFile(path, f"version is {version[:80]!r}, expected {_VERSION}; {_REMEDY}")
    cluster_id, node_id = fields.pop("cluster.id", ""), fields.pop("node.id", "")
    if not cluster_id:
        raise CorruptFile(path, f"cluster.id is missing; {_REMEDY}")
    if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= 10 and int(node_id) <= _NODE_ID_MAX):
        raise CorruptFile(path, f"node.id is {node_id[:80]!r}, expected 0 to {_NODE_ID_MAX}; {_REMEDY}")
    text = fields.pop("directory.id", None)
    try:
        directory_id = None if text is None else parse_uuid(text)
    except Malformed as error:
        raise CorruptFile(path, f"directory.id: {error}; {_REMEDY}") from None
    if directory_id is not None and is_reserved(directory_id):
        raise CorruptFile(path, f"directory.id {text} is reserved")
    return MetaProperties(
        cluster_id=cluster_id,
        node_id=int(node_id),
        directory_id=directory_id,
        unknown=tuple(fields.items()),
    )
